"""Where the page gets its views from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from regard.errors import UsageError, nearest
from regard.explain.view import View
from regard.serving.beginning import example_input
from regard.serving.curves import learning_curves
from regard.serving.shelf import facts

IN_MEMORY = 4  # runs


class Provider(Protocol):
    """What a page asks for. A run is named as in `runs`."""

    def runs(self) -> list[dict[str, Any]]:
        """Every run: name, label, path, model, task; or an error instead of model and task."""
        ...

    def offer(self, run: str) -> dict[str, Any]:
        """The views of a run with what each shows, and a text to begin with."""
        ...

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View: ...

    def examples(self) -> dict[str, str]:
        """Worked examples and what each shows."""
        ...

    def example(self, name: str) -> View: ...

    def curves(self, runs: Sequence[str], options: Mapping[str, Any]) -> View: ...


class RunProvider:
    """Views of runs in folders. A run is loaded when it is first looked into; questions are answered one by one."""

    def __init__(self, paths: Mapping[str, Path], device: str = "auto") -> None:
        self.paths = paths
        self.device = device
        self.lock = Lock()
        self._load = lru_cache(IN_MEMORY)(self._loaded)

    def runs(self) -> list[dict[str, Any]]:
        return [facts(name, path) for name, path in self.paths.items()]

    def offer(self, run: str) -> dict[str, Any]:
        from regard.explain import offer

        self._path(run)
        with self.lock:
            loaded = self._load(run)
            return {"views": offer.views(loaded), "example": example_input(loaded)}

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View:
        from regard.explain.look import options_from
        from regard.explain.offer import shown

        self._path(run)
        # A knob of one view may still stand when another is chosen: what does not concern it is ignored.
        with self.lock:
            return shown(self._load(run), name, text, options_from(dict(options)))

    def examples(self) -> dict[str, str]:
        from regard.explain import steps

        return steps.examples()

    def example(self, name: str) -> View:
        from regard.explain import steps

        return steps.example(name)

    def curves(self, runs: Sequence[str], options: Mapping[str, Any]) -> View:
        return learning_curves({name: self._path(name) for name in runs}, **options)

    def _loaded(self, run: str) -> Any:
        from regard.run import load

        return load(self.paths[run], device=self.device)

    def _path(self, run: str) -> Path:
        if run not in self.paths:
            raise UsageError(f"no run {run!r} here{nearest(run, self.paths)}")
        return self.paths[run]
