"""The looks: which ways there are to look at a run, and the view that is asked for.

views(run)                         {"attention": "which token looks at which", ...}
view(run, "attention", "the dog", layer=2)
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from regard.core.plugin import load_entry_points
from regard.core.tap import plain
from regard.errors import TooLong, UsageError, nearest
from regard.explain.inputs import length_of, positions_of, read, target_length
from regard.explain.layers import has_stream
from regard.explain.look import Look, Noted, Options, options_from, registered_looks
from regard.explain.site import shown_by
from regard.explain.view import View
from regard.tasks.reading import Capabilities

# The files in `regard.explain.looks`; each registers one look or more. The first that fits a run is its own.
FILES = (
    "backoff",
    "evidence",
    "number",
    "lags",
    "neighbours",
    "senses",
    "contributions",
    "forecast",
    "alignment",
    "pooling",
    "attention",
    "grid",
    "gates",
    "states",
    "tagging",
    "next_token",
    "gap",
    "lens",
    "neurons",
    "induction",
    "forgetting",
    "meaning",
    "what_if",
    "flow",
    "steps",
)


def looks() -> list[Look]:
    """Every way to look at a run, built-in ones first."""
    built_in = [f"regard.explain.looks.{name}" for name in FILES]
    for module in built_in:
        importlib.import_module(module)
    load_entry_points("regard.looks")
    known = registered_looks()
    return [look for module in dict.fromkeys([*built_in, *known]) for look in known[module]]


def views(run: Any) -> dict[str, str]:
    """The names of the looks that fit a run, and what each shows."""
    return {look.name: look.about for look in fitting(run)}


def view(run: Any, name: str | None, given: str, **options: Any) -> View:
    """The view of one input that `name` asks for, or that tells most of such a run.

    An option that does not concern the view is refused.
    """
    return shown(run, name, given, options_from(options), strict=True)


def shown(
    run: Any, name: str | None, given: Any, options: Options, strict: bool = False, kept: dict[str, Any] | None = None
) -> View:
    """The same with options that were checked; unless it is strict, those that do not concern the view are ignored.

    kept  what was seen of the same input before, which is added to.
    """
    look = _chosen(run, name)
    reading = replace(read(run, given, options.target), can=capabilities(run), kept=kept)
    noted = Noted(options)
    made = look.make(reading, noted)  # pyright: ignore[reportArgumentType]  # it answers like options
    if strict:
        noted.refuse_unused(look.name)
    text = given if isinstance(given, str) else reading.given
    about = {"run": str(run.path), "model": run.config["model"].get("name"), "text": text} | made.about

    def remake(changed: dict[str, Any]) -> View:
        return shown(run, name, given, options_from(vars(options) | changed))

    return replace(made, name=look.name, about=about, remake=remake)


def limits(run: Any) -> dict[str, int]:
    """How many tokens of an input each look that fits a run takes on a page, and the model has positions for."""
    room = positions_of(run)
    most = {look.name: look.max_tokens for look in fitting(run)}
    return most if room is None else {name: min(count, room) for name, count in most.items()}


def refuse_long(run: Any, name: str | None, given: Any, options: Options) -> None:
    """Refuse what a look takes too long for, before anything is computed: the input, or another text beside it."""
    look = _chosen(run, name)
    most = limits(run)[look.name]
    why = f"the view {look.name} takes at most" if most == look.max_tokens else "the model has positions for"
    counts = {
        "text": length_of(run, given),
        "other text": length_of(run, options.other),
        "target": target_length(run, options.target or ""),
    }
    for what, count in counts.items():
        if count is not None and count > most:
            fits = _fitting(run, given, count, most) if what == "text" else 0
            raise TooLong(f"the {what} has {count:,} tokens, and {why} {most:,}: give a shorter one", most, fits)


def _fitting(run: Any, text: str, count: int, most: int) -> int:
    """How many characters from the first on make at most `most` tokens, of a text that makes `count`."""
    low, high = 0, min(len(text), 2 * len(text) * most // count + 1)
    while (length_of(run, text[:high]) or 0) <= most and high < len(text):
        low, high = high, min(len(text), 2 * high)
    while low + 1 < high:
        middle = (low + high) // 2
        fits = (length_of(run, text[:middle]) or 0) <= most
        low, high = (middle, high) if fits else (low, middle)
    return low


def _chosen(run: Any, name: str | None) -> Look:
    there = fitting(run)
    if not there:
        raise UsageError(f"{run.path}: there is nothing to look at in a {run.config['model'].get('name')} model")
    if name is None:
        return there[0]
    for look in there:
        if look.name == name:
            return look
    every = dict.fromkeys(look.name for look in looks())  # looks of several kinds of models may have one name
    can = f"this run can show {', '.join(look.name for look in there)}"
    if name in every:
        raise UsageError(f"a {run.config['model'].get('name')} model has no {name} to show; {can}")
    raise UsageError(f"unknown view {name!r}{nearest(name, every)}; {can}")


def fitting(run: Any) -> list[Look]:
    """The looks that have something to show of a run."""
    can = capabilities(run)
    return [look for look in looks() if look.fits(can)]


def capabilities(run: Any) -> Capabilities:
    """What can be asked of a run, found without reading anything."""
    model = plain(run.model)
    inside = getattr(model, "looks_inside", True)
    fitted = bool(getattr(getattr(model, "config", None), "fitted", False)) or not inside
    shows = frozenset().union(*(shown_by(part) for part in model.modules() if inside))
    shows |= {"stream"} if inside and has_stream(model) else set()
    shows |= getattr(model, "shows_whole", frozenset())
    answers = getattr(getattr(model, "head", None), "n_answers", 1) > 0
    return replace(run.task.can, answers=answers, fitted=fitted, shows=shows)
