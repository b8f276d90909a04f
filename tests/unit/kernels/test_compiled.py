"""The C library: made once, in a folder of the user alone, by whoever comes first; done without where it cannot be."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from regard.core import registry
from regard.decoding.ending import Limits
from regard.decoding.generate import PACKING_REPAYS, generate
from regard.kernels import compiled, compiled_file, packed
from regard.kernels.operators import fallbacks

needs_compiler = pytest.mark.skipif(compiled.library() is None, reason="no C compiler")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "regard" / "compiled"


@pytest.fixture
def linked(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is compiled in its own cache, without the seconds that it takes: the library of this process again."""
    found, right = [], Path(compiled.library()._name).read_bytes()[: -compiled_file.DIGEST]

    def link(_command: list[str], work: Path) -> Path:
        found.append(work / "made.so")
        found[-1].write_bytes(right)
        return found[-1]

    monkeypatch.setattr(compiled, "_linked", link)
    return found


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
    own_cache.mkdir(parents=True)
    own_cache.chmod(0o777)
    before = fallbacks().get(compiled.NAME, 0)
    assert compiled.library.__wrapped__() is None
    assert fallbacks()[compiled.NAME] == before + 1
    assert not list(own_cache.iterdir())


@needs_compiler
@pytest.mark.usefixtures("linked")
def test_a_cache_of_data_that_a_group_may_write_to_does_no_harm(own_cache: Path) -> None:
    own_cache.parent.mkdir()
    own_cache.parent.chmod(0o775)
    assert compiled.library.__wrapped__() is not None
    assert own_cache.stat().st_mode & 0o077 == 0


@needs_compiler
@pytest.mark.usefixtures("linked")
def test_a_folder_in_the_place_of_the_own_one_is_not_used(own_cache: Path) -> None:
    kept = compiled._built()
    assert compiled_file.is_kept(kept, compiled_file.current_user())
    assert not compiled_file.is_kept(kept, compiled_file.current_user() + 1)
    own_cache.rename(own_cache.with_name("other"))
    own_cache.symlink_to("other")
    assert not compiled_file.is_kept(kept, compiled_file.current_user())
    assert compiled.library.__wrapped__() is None


@needs_compiler
def test_a_damaged_library_is_made_again(linked: list[Path]) -> None:
    kept = compiled._built()
    right = kept.read_bytes()
    for wrong in (b"", right[:100], right[: len(right) // 2], right[:-1], right[:5000] + b"?" + right[5001:]):
        kept.write_bytes(wrong)
        assert compiled._built() == kept
        assert kept.read_bytes() == right
    assert len(linked) == 6
    compiled._opened(kept)


@needs_compiler
@pytest.mark.usefixtures("linked")
def test_what_is_kept_is_found_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = compiled._built()

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(compiled.tempfile, "TemporaryDirectory", refused)
    monkeypatch.setattr(Path, "mkdir", refused)
    assert compiled._built() == kept


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
