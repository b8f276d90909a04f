"""What this machine can do, what is missing, and whether the package works at all.

Every finding is a fact with a word on what follows from it. Nothing is downloaded, compiled or left behind, and what
cannot be found out is told as that: a machine that is broken in one place is still examined in the others.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regard.core.memory import host_memory
from regard.core.version import __version__
from regard.errors import LONGEST_TOLD
from regard.run.extras import Extra, broken, extras

LEAST_PYTHON = (3, 11)
REINSTALL = "pip install --force-reinstall regard"
RUNS = "runs"  # where runs are written unless --out says otherwise
LITTLE = 1 << 30  # bytes of disk below which a training may not get far
GIB = 1 << 30
# Browsers by the names that systems give them; elsewhere `webbrowser` knows.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox", "chrome", "msedge")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. is_well: None where nothing is wrong with not having it. advice: what to do."""

    name: str
    value: str
    is_well: bool | None = True
    advice: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All findings, and the extras."""

    findings: tuple[Finding, ...]
    extras: tuple[Extra, ...]

    @property
    def is_well(self) -> bool:
        """Whether what every command needs is there and works."""
        return all(one.is_well is not False for one in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The same for a program."""
        told = [
            {"name": one.name, "for": one.purpose, "installed": not one.lacks, "packages": one.packages}
            | ({"lacks": list(one.lacks), "install": one.install} if one.lacks else {})
            for one in self.extras
        ]
        return {"well": self.is_well, "machine": [asdict(one) for one in self.findings], "extras": told}


def diagnose(runs: Path | None = None) -> Diagnosis:
    """Look at everything. runs: the folder that runs would be written to."""
    looks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python,
        _packages,
        _torch,
        _machine,
        lambda: _disk(runs or Path(RUNS)),
        _compilers,
        _browser,
    )
    found: list[Finding] = []
    for look in looks:
        try:
            found += look()
        except Exception as error:  # one look that fails takes no other with it
            found.append(Finding(getattr(look, "__name__", "disk").strip("_<>"), _told(error), None))
    return Diagnosis(tuple(found), tuple(extras()))


def _python() -> Iterator[Finding]:
    least = ".".join(map(str, LEAST_PYTHON))
    well = sys.version_info[:2] >= LEAST_PYTHON
    yield Finding("regard", __version__)
    yield Finding(
        "python", f"{platform.python_version()}, {sys.executable}", well, "" if well else f"needs {least} or later"
    )
    yield Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}")


def _packages() -> Iterator[Finding]:
    wrong = broken()
    if wrong:
        yield Finding("packages", "; ".join(wrong), False, REINSTALL)
    elif not extras():
        yield Finding("packages", "regard runs from its source and is not installed", None, "pip install .")
    else:
        yield Finding("packages", "all that every command needs")


def _torch() -> Iterator[Finding]:
    """Whether torch computes, on what, and in which number types."""
    try:
        import torch

        product = float((torch.ones(2, 3) @ torch.ones(3, 2)).sum())
        if product != 12.0:
            raise ArithmeticError(f"a product of ones gave {product}, not 12")
    except Exception as error:  # a broken library fails in any way it likes
        yield Finding("torch", _told(error), False, "pip install --force-reinstall torch")
        return
    yield Finding("torch", torch.__version__)
    yield Finding("threads", f"{torch.get_num_threads()} of {os.cpu_count()} cores")
    if torch.cuda.is_available():
        yield from _cards(torch)
    else:
        built = torch.version.cuda
        why = "torch is built for CPUs" if built is None else f"torch is built for CUDA {built}, and finds no card"
        yield Finding("cuda", f"none: {why}", None)
    apple = torch.backends.mps.is_available()
    yield Finding("mps", "Apple's GPU, --device mps" if apple else "none", True if apple else None)


def _cards(torch: Any) -> Iterator[Finding]:
    from regard.training.precision import has

    for index in range(torch.cuda.device_count()):
        card, device = torch.cuda.get_device_properties(index), torch.device("cuda", index)
        types = ", ".join(kind for kind in ("bfloat16", "fp8") if has(kind, device)) or "float32 and float16 alone"
        size = f"{card.total_memory / GIB:.0f} GiB"
        yield Finding(f"cuda:{index}", f"{card.name}, {size}, compute {card.major}.{card.minor}, {types}")


def _machine() -> Iterator[Finding]:
    yield Finding("memory", f"{host_memory() / GIB:.1f} GiB for this process")


def _disk(runs: Path) -> Iterator[Finding]:
    """Room where runs are written: in the nearest folder that exists."""
    there = next(folder for folder in (runs.absolute(), *runs.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    told = f"{free / GIB:.1f} GiB free for {runs}"
    if not os.access(there, os.W_OK):
        yield Finding("disk", f"{there} cannot be written to", None, "name another folder with --out")
    else:
        yield Finding("disk", told, True if free >= LITTLE else None, "" if free >= LITTLE else "make some room")


def _compilers() -> Iterator[Finding]:
    """What makes steps fast where it is there; without it the plain form runs."""
    there = find_spec("triton") is not None
    yield Finding("triton", "installed" if there else "none: the readable kernels run", True if there else None)
    try:
        from regard.kernels.compiled import compiler
    except ImportError as error:  # without torch there are no kernels at all
        yield Finding("compiler", _told(error), None)
        return
    command = compiler()
    advice = "install gcc or clang, or name one with CC" if sys.platform == "linux" else ""
    if command is None:
        yield Finding("compiler", "none: large models take plain steps on a CPU", None, advice)
    else:
        yield Finding("compiler", " ".join(command))


def _browser() -> Iterator[Finding]:
    import webbrowser

    path = os.environ.get("REGARD_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        try:
            path = getattr(webbrowser.get(), "name", "the system's")
        except webbrowser.Error:
            advice = "regard lab prints an address; open it from another machine through ssh -L"
            yield Finding("browser", "none found", None, advice)
            return
    yield Finding("browser", str(path))


def _told(error: Exception) -> str:
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line[:LONGEST_TOLD]
