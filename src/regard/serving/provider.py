"""Where the page gets its views from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from regard.errors import UsageError, nearest
from regard.explain.view import View
from regard.serving import wanted
from regard.serving.beginning import example_input
from regard.serving.curves import progress
from regard.serving.lecture_room import LectureRoom
from regard.serving.pool import COPIES, RunPool, Turns
from regard.serving.shelf import facts
from regard.training.follow import Place

SHORT = 400  # characters of a text that is looked at without waiting for a turn


class Provider(Protocol):
    """What a page asks for. A run is named as in `runs`."""

    def runs(self) -> list[dict[str, Any]]:
        """Every run: name, label, path, model, task; or an error instead of model and task."""
        ...

    def offer(self, run: str) -> dict[str, Any]:
        """The views of a run with what each shows and how many tokens each takes, and a text to begin with."""
        ...

    def tokens(self, run: str, text: str) -> int | None:
        """How many tokens a text has for a run; None where what is typed is no text."""
        ...

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View: ...

    def examples(self) -> dict[str, str]:
        """Worked examples and what each shows."""
        ...

    def example(self, name: str) -> View: ...

    def progress(self, asked: Mapping[str, Place]) -> dict[str, Any]:
        """What came to the trainings of runs since a place in their metrics; see `regard.serving.curves`."""
        ...

    def lectures(self) -> list[dict[str, Any]]:
        """Every lecture: name, number, title, question, and is_ready where it need not be run first."""
        ...

    def sitting(self, name: str, again: bool) -> dict[str, Any]:
        """A `sitting` of a lecture with is_live, whether its views answer; or how far it is: screen, of, waits_for."""
        ...

    def view_of_lecture(self, name: str, place: list[int], values: dict[str, Any]) -> dict[str, Any]:
        """A view of the lecture that was sat last, by the numbers of screen, cell and output, as `View.to_page`."""
        ...

    def close(self) -> None:
        """End what runs beside the page."""
        ...


class RunProvider:
    """Views of runs in folders. A run is loaded when it is first looked into.

    find  looks for runs, by their names; asked whenever the page lists them, so that new ones appear.
    load  gives the run of a folder, which nobody else uses; None reads the folder.
    copies  of one run that are lent at a time.
    """

    def __init__(
        self,
        find: Callable[[], Mapping[str, Path]],
        device: str = "auto",
        load: Callable[[Path], Any] | None = None,
        copies: int = COPIES,
    ) -> None:
        self.find = find
        self.device = device
        self.load = load
        self.paths: Mapping[str, Path] = {}
        self.pool = RunPool(self._loaded, copies)
        self.turns = Turns()
        self.kept: WeakKeyDictionary[Any, tuple[Any, dict[str, Any]]] = WeakKeyDictionary()
        self.room = LectureRoom()

    def runs(self) -> list[dict[str, Any]]:
        self.paths = self.find()
        return [facts(name, path) for name, path in self.paths.items()]

    def offer(self, run: str) -> dict[str, Any]:
        from regard.explain import registry

        with self.lent(run) as loaded:
            views, limits = registry.views(loaded), registry.limits(loaded)
            return {"views": views, "limits": limits, "example": example_input(loaded)}

    def tokens(self, run: str, text: str) -> int | None:
        from regard.explain.inputs import length_of

        with self.lent(run) as loaded:
            return length_of(loaded, text)

    def view(self, run: str, name: str | None, text: Any, options: Mapping[str, Any]) -> View:
        """text: or what else the run's task takes, such as a table; nothing is kept of that."""
        from regard.explain.look import options_from
        from regard.explain.registry import refuse_long, shown

        # A knob of one view may still stand when another is chosen: what does not concern it is ignored.
        chosen = options_from(dict(options))
        is_text = isinstance(text, str)
        is_short = is_text and len(text) + len(chosen.other) + len(chosen.target or "") <= SHORT
        path = self._path(run)
        with nullcontext() if is_short else self.turns.taken(), self.pool.lent(path) as loaded:
            refuse_long(loaded, name, text, chosen)
            return shown(loaded, name, text, chosen, kept=self._kept(loaded, (text, chosen.target)) if is_text else {})

    def examples(self) -> dict[str, str]:
        from regard.explain import worked

        return worked.examples()

    def example(self, name: str) -> View:
        from regard.explain import worked

        return worked.example(name)

    def progress(self, asked: Mapping[str, Place]) -> dict[str, Any]:
        if not set(asked) <= set(self.paths):
            self.paths = self.find()
        return progress(self.paths, asked)

    def lectures(self) -> list[dict[str, Any]]:
        return self.room.lectures()

    def sitting(self, name: str, again: bool) -> dict[str, Any]:
        return self.room.sitting(name, again)

    def view_of_lecture(self, name: str, place: list[int], values: dict[str, Any]) -> dict[str, Any]:
        return self.room.view(name, place, values)

    def close(self) -> None:
        self.room.close()

    def _kept(self, run: Any, of: tuple[str, str | None]) -> dict[str, Any]:
        """What was seen of a run while it read this; of what it read before that nothing is kept."""
        if self.kept.get(run, (None, {}))[0] != of:
            self.kept[run] = (of, {})
        return self.kept[run][1]

    def _loaded(self, path: Path) -> Any:
        from regard.run.run import load

        run = load(path, device=self.device) if self.load is None else self.load(path)
        wanted.watched(run.model)
        return run

    def lent(self, run: str) -> AbstractContextManager[Any]:
        """The run of a name, for as long as the block runs."""
        return self.pool.lent(self._path(run))

    def _path(self, run: str) -> Path:
        if run not in self.paths:
            self.paths = self.find()
        if run not in self.paths:
            raise UsageError(f"no run {run!r} here{nearest(run, self.paths)}")
        return self.paths[run]
