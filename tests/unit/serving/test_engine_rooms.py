"""Which runs are in memory, and whose weights answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from look_run import text_run
from regard.run.run import Run
from regard.serving.engine import rooms
from regard.serving.engine.rooms import Rooms
from regard.serving.engine.sizing import Sizes

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
    """Rooms and what is posted to them."""

    def __init__(self, folders: Folders, names: str, sizes: Sizes = SMALL) -> None:
        self.inbox: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.paths = {name: folders.place / name for name in names}
        self.rooms = Rooms(self.paths, sizes, "cpu", 3600.0, self.inbox.put)

    def take(self, before: Callable[[], Any] = lambda: None) -> None:
        """Wait until a run is loaded, and take it into a room. before: what happens in between."""
        message = self.inbox.get(timeout=LATE)
        before()
        self.rooms.loaded(message["run"], message["room"], message["spare"], message["error"])


def test_while_a_new_folder_is_loaded_nobody_gets_the_old_weights_for_the_new_ones(folders: Folders) -> None:
    """What is lent is known by when its folder was written, and would be lent again under that."""
    folders.write("a")
    opened = Opened(folders, "a")
    opened.rooms.begin("a")
    opened.take()
    path, versions = opened.paths["a"], list[Any]()
    folders.write("a")
    opened.rooms._renew("a")
    opened.take(before=lambda: versions.append(opened.rooms.twin(path).config["version"]))
    versions.append(opened.rooms.twin(path).config["version"])
    assert versions == [2, 2]
    spare = opened.rooms.spares["a"].run.model
    assert next(opened.rooms.twin(path).model.parameters()) is next(spare.parameters())
