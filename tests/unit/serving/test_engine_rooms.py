"""Which runs are in memory, and whose weights answer."""

from __future__ import annotations

import gc
import os
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from weakref import ref

import pytest

from look_run import text_run
from regard.errors import UsageError
from regard.run.run import Run
from regard.serving.engine import rooms
from regard.serving.engine.rooms import Rooms
from regard.serving.engine.sizing import Sizes
from regard.serving.pool import RunPool

LATE = 60.0  # seconds that anything is waited for
SMALL = Sizes(slots=1)


class Folders:
    """Folders of runs, and the runs that are read from them: of each the name of its model is the version."""

    def __init__(self, place: Path) -> None:
        self.place, self.versions = place, dict[str, int]()

    def write(self, name: str) -> None:
        """Write a folder anew."""
        version = self.versions[name] = self.versions.get(name, 0) + 1
        config = self.place / name / "config.json"
        config.parent.mkdir(exist_ok=True)
        config.write_text("{}", encoding="utf-8")
        os.utime(config, ns=(version, version))

    def load(self, path: Path, device: str) -> Run:
        run = text_run("lstm")
        run.config["version"] = self.versions[path.name]
        run.path = path
        return run


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    found = Folders(tmp_path)
    monkeypatch.setattr(rooms, "load", lambda path, device: found.load(path, device))
    return found


class Opened:
    """Rooms, what is posted to them, and runs lent from them as beside an engine."""

    def __init__(self, folders: Folders, names: str, sizes: Sizes = SMALL) -> None:
        self.inbox: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.paths = {name: folders.place / name for name in names}
        for name in names:
            folders.write(name)
        self.rooms = Rooms(self.paths, sizes, "cpu", 3600.0, self.inbox.put)
        self.pool = self.rooms.pool = RunPool(self.rooms.twin)
        self.threads = ThreadPoolExecutor(2)

    def take(self) -> list[dict[str, Any]]:
        """Do what is posted next; what is to be told."""
        message = self.inbox.get(timeout=LATE)
        if message["do"] == "twin":
            self.rooms.lend(message["run"], message["promise"])
            return []
        return self.rooms.loaded(message["run"], message["room"], message["spare"], message["error"])

    def open(self, name: str) -> list[dict[str, Any]]:
        self.rooms.begin(name)
        return self.take()

    def lend(self, name: str) -> Future[Run]:
        """A run that is asked for in a thread, and handed back when it has come."""

        def lent() -> Run:
            with self.pool.lent(self.paths[name]) as run:
                return run

        return self.threads.submit(lent)

    def lent(self, name: str) -> Run:
        """The same, with all that is posted meanwhile."""
        found = self.lend(name)
        while not wait([found], 0.01).done:
            with suppress(Empty):
                self.inbox.put(self.inbox.get_nowait())
                self.take()
        return found.result()


def weights(run: Run) -> set[int]:
    return {one.data_ptr() for one in run.model.parameters()}


def nbytes(folders: Folders) -> int:
    """Of a run in its room."""
    opened = Opened(folders, "x")
    opened.open("x")
    return opened.rooms.open["x"].nbytes


def test_while_a_new_folder_is_loaded_nobody_gets_the_old_weights_for_the_new_ones(folders: Folders) -> None:
    """What is lent is known by when its folder was written, and would be lent again under that."""
    opened = Opened(folders, "a")
    opened.open("a")
    folders.write("a")
    opened.rooms._renew("a")
    loaded = opened.inbox.get(timeout=LATE)
    found = opened.lend("a")
    opened.take()  # the question of the thread, before the engine has heard that the new run is there
    assert not found.done()
    opened.inbox.put(loaded)
    opened.take()
    assert found.result(LATE).config["version"] == 2
    assert opened.lent("a").config["version"] == 2


def test_a_folder_that_is_written_while_it_is_loaded_is_loaded_again_for_who_asks_then(folders: Folders) -> None:
    opened = Opened(folders, "a")
    opened.rooms.begin("a")
    loaded = opened.inbox.get(timeout=LATE)
    folders.write("a")
    found = opened.lend("a")
    opened.take()
    opened.inbox.put(loaded)
    opened.take()
    assert opened.rooms.spares["a"].run.config["version"] == 1
    opened.take()
    assert found.result(LATE).config["version"] == 2


def test_what_is_lent_beside_the_engines_has_the_weights_of_a_room_and_no_others(folders: Folders) -> None:
    """Also of a run that no engine was asked for."""
    opened = Opened(folders, "a")
    lent = opened.lent("a")
    assert weights(lent) == weights(opened.rooms.open["a"].run)
    assert lent.model is not opened.rooms.open["a"].run.model


def test_a_run_that_makes_room_for_another_leaves_no_weights_behind(folders: Folders) -> None:
    opened = Opened(folders, "ab", Sizes(memory=nbytes(folders) * 3 // 2, slots=1))
    gone = ref(opened.lent("a").model)
    assert gone() is not None
    assert opened.open("b") == []
    gc.collect()
    assert gone() is None
    assert set(opened.rooms.open) == {"b"}


def test_a_run_that_a_question_has_makes_room_for_none(folders: Folders) -> None:
    opened = Opened(folders, "ab", Sizes(memory=nbytes(folders) * 3 // 2, slots=1))
    opened.lent("a")
    with opened.pool.lent(opened.paths["a"]):
        opened.rooms.when_loaded("b", {"id": 1})
        [told] = opened.take()
        assert (told["status"], set(opened.rooms.open)) == (503, {"a"})
    assert opened.open("b") == []
    assert set(opened.rooms.open) == {"b"}


@pytest.mark.parametrize("is_beside", [False, True])
def test_a_run_that_never_fits_is_refused_for_good(folders: Folders, is_beside: bool) -> None:
    size = nbytes(folders)
    opened = Opened(folders, "a", Sizes(memory=size - 1, slots=1))
    told = f"a takes {size:,} bytes of weights and slots, and --memory allows {size - 1:,} for all runs"
    if is_beside:
        with pytest.raises(UsageError, match=told):
            opened.lent("a")
        return
    opened.rooms.when_loaded("a", {"id": 1})
    assert opened.take() == [{"refused": 1, "status": 400, "kind": "invalid_request_error", "message": told}]


def test_a_run_that_is_asked_for_beside_the_engines_alone_stays_when_others_are_let_go_of(folders: Folders) -> None:
    opened = Opened(folders, "ab")
    opened.lent("a")
    opened.open("b")
    opened.rooms.idle = 10.0
    for room in opened.rooms.open.values():
        room.used -= 20.0
    opened.rooms.let_go()
    assert set(opened.rooms.open) == {"a"}
    opened.pool.asked.clear()
    opened.open("b")
    opened.rooms.let_go()
    assert set(opened.rooms.open) == {"b"}


@pytest.mark.parametrize("is_lent", [False, True])
def test_of_a_folder_that_was_written_anew_the_old_weights_go(folders: Folders, is_lent: bool) -> None:
    """Where a question still has them, with the next one that comes after it."""
    opened = Opened(folders, "a")
    gone = ref(opened.lent("a").model)
    with opened.pool.lent(opened.paths["a"]) if is_lent else nullcontext():
        folders.write("a")
        opened.rooms._renew("a")
        opened.take()
        opened.rooms.step()
    assert opened.lent("a").config["version"] == 2
    gc.collect()
    assert gone() is None
