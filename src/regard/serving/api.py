"""The questions of the page and their answers."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from regard.errors import TooLong
from regard.explain.flow import Flow
from regard.explain.packed import MOST_EXACT, MOST_WHOLE, packed
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import Heat, Links, Panel, View
from regard.serving.guard import Refused
from regard.serving.provider import Provider
from regard.training.follow import Place

KEPT = 6  # views whose rows may be asked for
LONGEST = 200_000  # characters of a text
KINDS = {str: "a text", dict: "an object", list: "a list", int: "a whole number", bool: "true or false"}
MOST_RUNS = 60  # whose trainings are followed by one page


class Api:
    """Answers by path. A question that is no good raises `Refused` or a `RegardError`."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.kept: OrderedDict[str, View] = OrderedDict()
        self.lock = Lock()
        self.gets: dict[str, Callable[[], dict[str, Any]]] = {
            "/api/runs": lambda: {"runs": provider.runs()},
            "/api/examples": lambda: {"examples": provider.examples()},
            "/api/lectures": lambda: {"lectures": provider.lectures()},
        }
        self.posts: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "/api/run": lambda asked: provider.offer(_field(asked, "run", str)),
            "/api/tokens": lambda asked: {"tokens": provider.tokens(_field(asked, "run", str), _text(asked))},
            "/api/view": lambda asked: self._view(asked).to_page(MOST_WHOLE),
            "/api/example": lambda asked: self._view({"example": _field(asked, "name", str)}).to_page(MOST_WHOLE),
            "/api/progress": self._progress,
            "/api/row": self._row,
            "/api/lecture": lambda asked: provider.sitting(
                _field(asked, "name", str), _field(asked, "again", bool) if "again" in asked else False
            ),
            "/api/lecture/view": self._view_of_lecture,
        }

    def _view(self, asked: dict[str, Any]) -> View:
        """The view that is asked for, kept for a while: rows of it may be asked for next."""
        key = json.dumps(asked, sort_keys=True)
        view = self.kept.get(key)
        if view is None:
            view = replace(self._made(asked), remake=None)  # which holds on to the model
            with self.lock:
                self.kept[key] = view
                while len(self.kept) > KEPT:
                    self.kept.popitem(last=False)
        return view

    def _made(self, asked: dict[str, Any]) -> View:
        if "example" in asked:
            return self.provider.example(_field(asked, "example", str))
        name = asked.get("view")
        if name is not None:
            name = _field(asked, "view", str)
        run, text, options = _field(asked, "run", str), _field(asked, "text", str), _field(asked, "options", dict)
        if len(text) > LONGEST:
            self._refuse_huge(run, name, text, options)
        return self.provider.view(run, name, text, options)

    def _refuse_huge(self, run: str, name: str | None, text: str, options: dict[str, Any]) -> None:
        """Refuse a text that nobody counts the tokens of, with how much of it the view takes."""
        told = f"the text has {len(text):,} characters, and"
        try:
            self.provider.view(run, name, text[:LONGEST], options)
        except TooLong as error:
            takes = f"{told} the view takes at most {error.most:,} tokens: give a shorter one"
            raise TooLong(takes, error.most, error.fits) from None
        raise Refused(413, f"{told} {LONGEST:,} are the most: give a shorter one")

    def _progress(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What came to some trainings: of each its name, and the place up to which its numbers are known."""
        runs = _field(asked, "runs", list)
        if len(runs) > MOST_RUNS or not all(isinstance(run, dict) for run in runs):
            raise Refused(400, f"runs: expected at most {MOST_RUNS}, each with name, offset and mark")
        places = {_field(run, "name", str): Place(_field(run, "offset", int), _field(run, "mark", str)) for run in runs}
        return {"runs": self.provider.progress(places)}

    def _view_of_lecture(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A view of the lecture that was sat last, with other values of its controls."""
        place = _field(asked, "place", list)
        if len(place) != 3 or not all(type(number) is int for number in place):
            raise Refused(400, "place: expected the numbers of a screen, a cell and an output")
        return self.provider.view_of_lecture(_field(asked, "name", str), place, _field(asked, "values", dict))

    def _row(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Some rows of a map in full, which the page got in eight bits a weight, or as a smaller map."""
        view = self._view(_field(asked, "of", dict))
        place, row = _field(asked, "panel", int), _field(asked, "row", int)
        count = _field(asked, "count", int) if "count" in asked else 1
        weights = _map(view.panels[place], asked) if 0 <= place < len(view.panels) else None
        if weights is None:
            raise Refused(400, f"panel {place} is no map whose rows can be had")
        rows, columns = weights.shape
        if not (0 <= row < rows and 1 <= count <= rows - row):
            raise Refused(400, f"rows {row} to {row + count - 1}: the map has rows 0 to {rows - 1}")
        if count > max(1, MOST_EXACT // columns):
            raise Refused(400, f"{count} rows of {columns} weights are too many at once")
        return {"weights": packed(weights[row : row + count])}


def _map(panel: Panel, asked: dict[str, Any]) -> np.ndarray | None:
    """The matrix of a panel that is asked for: of many small maps one, of a diagram a part of one of its nodes."""
    match panel:
        case Heat() | Links():
            return panel.weights
        case Flow():
            return panel.matrix(_field(asked, "node", str), _field(asked, "part", int))
        case Thumbnails() if panel.block == 1:
            number = _field(asked, "map", int)
            return panel.maps[number] if 0 <= number < len(panel.maps) else None
    return None


def _text(asked: dict[str, Any]) -> str:
    text = _field(asked, "text", str)
    if len(text) > LONGEST:
        raise Refused(413, f"the text has {len(text):,} characters, and {LONGEST:,} are the most")
    return text


def _field(asked: dict[str, Any], name: str, kind: type) -> Any:
    value = asked.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Refused(400, f"{name}: expected {KINDS[kind]}")
    return value
