"""The C library: made once, in a folder of the user alone, by whoever comes first; done without where it cannot be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from regard.core import registry
from regard.decoding.ending import Limits
from regard.decoding.generate import PACKING_REPAYS, generate
from regard.kernels import compiled, packed
from regard.kernels.operators import fallbacks

needs_compiler = pytest.mark.skipif(compiled.library() is None, reason="no C compiler")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "regard"


@needs_compiler
def test_two_that_compile_at_once_leave_one_library(own_cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: compiled._built(), range(2))
    assert first == second
    assert [path.name for path in own_cache.iterdir()] == [first.name]
    assert first.stat().st_mode & 0o077 == 0
    written = first.stat().st_mtime_ns
    assert compiled._built().stat().st_mtime_ns == written
    compiled._opened(first)


@needs_compiler
def test_a_folder_that_others_may_write_to_is_not_used(own_cache: Path) -> None:
    own_cache.mkdir()
    own_cache.chmod(0o777)
    before = fallbacks().get(compiled.NAME, 0)
    assert compiled.library.__wrapped__() is None
    assert fallbacks()[compiled.NAME] == before + 1
    assert not list(own_cache.iterdir())


@pytest.mark.parametrize("command", ["false", "/no/such/compiler", "", 'cc "'])
def test_without_a_compiler_nothing_is_compiled_and_that_is_counted(
    command: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", command)
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None if name in ("cc", "/no/such/compiler") else name)
    before = fallbacks().get(compiled.NAME, 0)
    assert compiled.library.__wrapped__() is None
    assert fallbacks()[compiled.NAME] == before + 1


def test_a_small_model_asks_for_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise AssertionError("a small model compiles")

    monkeypatch.setattr(packed, "library", refused)
    model = registry.build("gpt", vocab_size=11, size="tiny").eval()
    (text,) = generate(model, [torch.tensor([1, 2])], limits=Limits(PACKING_REPAYS))
    assert len(text.tokens) == PACKING_REPAYS
