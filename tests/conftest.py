"""What all tests share: one thread, fixed seeds, shape annotations checked, real data and a GPU where there are any."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections import defaultdict
from collections.abc import Generator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import config as shape_checks
from jaxtyping import install_import_hook

# One browser for all tests of a process: it cannot start a second one.
from browsing import browser, open_page  # noqa: F401
from limits import LIMIT, SLOW_LIMIT, default_signals, limited

# The same examples every time, so that what is red today is red tomorrow; how long one takes depends on the machine.
settings.register_profile("regard", derandomize=True, deadline=None)
settings.load_profile("regard")

REAL_STDERR = pytest.StashKey[int]()
REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def modules_with_shapes(*packages: str) -> list[str]:
    """The modules of regard whose signatures carry shapes. To check the others too would double the suite's time."""
    spec = importlib.util.find_spec("regard")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    files = [path for package in packages for path in sorted((root / package).rglob("*.py"))]
    names = [".".join(("regard", *path.relative_to(root).with_suffix("").parts)) for path in files]
    return [name for name, path in zip(names, files, strict=True) if "from jaxtyping import" in path.read_text()]


# The hook acts on what is imported after it, so that it stands before any test is read.
install_import_hook(modules_with_shapes("core", "mixers", "layers", "models"), "beartype.beartype")


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    """One thread and one seed for every test, whatever ran before it."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def unchecked_shapes() -> Generator[None]:
    """For what is compiled: a compiler that reads the checks of shapes too would end in them."""
    shape_checks.update("jaxtyping_disable", True)
    yield
    shape_checks.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets that lies beside the repository."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real data: ../shared/data does not lie beside the repository")
    return REAL_DATA


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="every case of every sweep, and not one of some of them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test under `sweep(N)` one case of N is run, the same ones every time."""
    if config.getoption("--full"):
        return
    swept: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep") is not None:
            swept[item.nodeid.partition("[")[0]].append(item)
    left: set[pytest.Item] = set()
    for cases in swept.values():
        mark = cases[0].get_closest_marker("sweep")
        assert mark is not None
        cases.sort(key=lambda item: hashlib.sha256(item.nodeid.encode()).digest())
        left |= set(cases[-(-len(cases) // mark.args[0]) :])
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=list(left))


def pytest_configure(config: pytest.Config) -> None:
    default_signals()
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        config.stash[REAL_STDERR] = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """No test takes for ever."""
    is_slow = item.get_closest_marker("slow") is not None
    with limited(SLOW_LIMIT if is_slow else LIMIT, item.config.stash[REAL_STDERR]):
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
