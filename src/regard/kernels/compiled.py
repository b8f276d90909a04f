"""C compiled at run time: the shared library of the C files beside this one, where there is a compiler.

Nothing is compiled before something large is computed on a CPU: a step of decoding of a large model (decode_cpu.py), a
token of a large vocabulary (draw_cpu.py), a product of large matrices (product.py), or the layers of Mamba and Mamba-2
over a text (scan_cpu.py, ssd_cpu.py, convolution_cpu.py, gated_norm_cpu.py).

The library is kept in a folder of the user alone (`$XDG_CACHE_HOME/regard/compiled`, else `~/.cache/regard/compiled`)
under a name that the sources, the compiler and the processor make: whoever finds it there takes it. It is written under
another name and then renamed, so that two processes that compile at once do no harm. A folder or a library that others
may write to is not used (compiled_file.py).

The compiler is `$CC`, else `cc`; `CC=false` turns all of it off. Threads are those of torch's own OpenMP, whose names
the library finds in the process: there is one pool of threads and one number of them.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

from regard.kernels.compiled_file import cache_folder, current_user, is_kept, publish, require_own
from regard.kernels.operators import count_fallback

SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in ("convolution.c", "decode_cpu.c", "draw.c", "gated_norm.c", "product.c", "scan.c", "ssd.c")
)
READ = (*SOURCES, *(Path(__file__).with_name(name) for name in ("tile.h", "vectors.h")))
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fopenmp", "-fPIC")
SECONDS = 120  # that a compiler may take
NAME = "compiled code on a CPU"
ADDRESS, COUNT, NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
FUNCTIONS: dict[str, list[type]] = {
    "linear_float": [*[ADDRESS] * 4, *[COUNT] * 3],
    "linear_int8": [*[ADDRESS] * 5, *[COUNT] * 3],
    "linear_blocks": [*[ADDRESS] * 4, *[COUNT] * 4],
    "norm_rms": [*[ADDRESS] * 3, *[COUNT] * 3, NUMBER],
    "product": [ADDRESS] * 5,
    "scan": [ADDRESS] * 7,
    "scan_pieces": [COUNT],
    "scan_groups": [COUNT],
    "scan_gradients": [ADDRESS] * 9,
    "scan_room": [ADDRESS],
    "draw_pieces": [COUNT],
    "draw": [*[ADDRESS] * 7, *[COUNT] * 2],
    "panels": [*[ADDRESS] * 2, *[COUNT] * 2],
    "size_of_panels": [COUNT] * 2,
    "convolve": [ADDRESS] * 6,
    "convolve_back": [ADDRESS] * 8,
    "convolve_blocks": [COUNT],
    "convolve_room": [ADDRESS],
    "gated_norm": [*[ADDRESS] * 5, NUMBER],
    "gated_norm_blocks": [COUNT],
    "gated_norm_back": [*[ADDRESS] * 6, NUMBER],
    "ssd_forward": [ADDRESS] * 5,
    "ssd_backward": [ADDRESS] * 6,
    "ssd_room": [ADDRESS, COUNT],
    "attend": [*[ADDRESS] * 12, NUMBER, NUMBER],
    "attend_bfloat16": [*[ADDRESS] * 12, NUMBER, NUMBER],
}
COUNTED = (
    "convolve_blocks", "convolve_room", "draw_pieces", "gated_norm_blocks", "scan_groups", "scan_pieces", "scan_room",
    "size_of_panels", "ssd_room",
)  # fmt: skip
RESULTS = {"attend": ctypes.c_int, "attend_bfloat16": ctypes.c_int, **dict.fromkeys(COUNTED, COUNT)}


@cache
def library() -> ctypes.CDLL | None:
    """The functions of those files; None where they cannot be made, which is counted (`fallbacks`)."""
    try:
        found = _opened(_built())
    except (OSError, subprocess.SubprocessError, AttributeError, RuntimeError, ValueError):
        # Without a compiler the plain form is what a machine has: nothing is wrong with it.
        count_fallback(NAME)
        return None
    return found


def compiler() -> list[str] | None:
    """The command of the C compiler, or None without one."""
    words = shlex.split(os.environ.get("CC") or "cc")
    found = shutil.which(words[0]) if words else None
    return None if found is None or sys.platform != "linux" else [found, *words[1:]]


def _opened(path: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(path))
    for name, types in FUNCTIONS.items():
        function = getattr(found, name)
        function.argtypes, function.restype = types, RESULTS.get(name)
    return found


def _built() -> Path:
    """The library in the cache, made where it is not there as it was written."""
    command = compiler()
    if command is None:
        raise RuntimeError("no C compiler")
    kept = cache_folder() / f"cpu-{_fingerprint(command)}.so"
    if not is_kept(kept, current_user()):
        _make(command, kept)
    return kept


def _make(command: list[str], kept: Path) -> None:
    folder = kept.parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        user = os.stat(work).st_uid  # whom the file system takes us for, which over a network may be another
        require_own(folder, user)
        if not is_kept(kept, user):
            publish(_linked(command, Path(work)), kept)
        require_own(kept, user)


def _linked(command: list[str], work: Path) -> Path:
    """A new library."""
    made, objects = work / "made.so", [str(work / f"{source.stem}.o") for source in SOURCES]
    with ThreadPoolExecutor() as pool:  # whoever needs them first waits for the longest alone
        list(pool.map(partial(_compile, command), SOURCES, objects))
    # Linked without OpenMP's library: torch has brought its own.
    _run([*command, "-shared", "-Wl,-z,now", "-o", str(made), *objects, "-lm"])
    return made


def _compile(command: list[str], source: Path, compiled: str) -> None:
    _run([*command, *FLAGS, "-c", str(source), "-o", compiled])


def _fingerprint(command: list[str]) -> str:
    """Of the source, the compiler and the processor that it compiles for."""
    told = _run([*command, "-v", "-march=native", "-E", "-x", "c", os.devnull]).stderr
    parts = [*(source.read_bytes() for source in READ), " ".join([*command, *FLAGS]).encode(), told]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, check=True, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
