"""Look: one way to look at a run, and what can be asked of it.

    register_look(Look("mine", "what it shows", mine, fits=lambda can: can.next))

A new look is one such call: in a file of `regard.explain.looks` with one line in `regard.explain.registry`, or in a
module from outside, which is imported by `--import` or by an entry point of the group `regard.looks`.

What can be asked for otherwise: the controls that many looks share, and panels with a value for each token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.decoding.logits_processing import Sampling
from regard.errors import UsageError, nearest
from regard.explain.site import Site
from regard.explain.view import Bars, Control, Curves, Panel, View
from regard.tasks.reading import START, Capabilities, Reading, Side
from regard.terminal.label import label

# What options are called on the command line, where it is not their own name.
FLAGS = {"merge": "words", "scale": "set-sense", "other": "compare"}
LEAST = {"layer": 1, "head": 1, "neuron": 1, "position": 0, "reduce": 0, "seed": 0}
# What a generator takes for a seed, and a tensor for an index.
MOST = 2**63 - 1
# Tokens by what a look costs: it reads the text a few times and may show a map of it, or reads it dozens of times or
# once for each token. With models of the size small that is a few seconds and 0.5 GB at most.
ONE_PASS, MANY_PASSES = 2048, 256
# More bars than these are a line.
MOST_BARS = 48
# Rows of a picture of units or channels.
MOST_ROWS = 24


@dataclass(frozen=True)
class Options:
    """What can be asked for; a look uses what concerns it.

    layer, head      from 1 on; None: the look's own choice, which for heads is their mean.
    neuron           a unit of a feed-forward net, from 1 on; None: the one that writes most.
    side             of a model that reads one thing and writes another: source, target, ...
    position         a token by its number, as `numbers` counts them; None: the last one.
    target           the text that is taken to be written from a source.
    merge            tokens of one word together.
    hide_sink        the first column left out and the rest brought to a sum of 1.
    by_values        weights times the size of the values they bring.
    reduce           of the numbers of a vector the first so many, for reading; 0 for all.
    temperature, top_k, top_p   of the next token.
    seed             of a shuffle, or of tokens that are drawn.
    other, word      a second text, and a word of both.
    scale            of one sense of a word, such as "sick:2=0.0".
    sort             of many maps at once: by layer, name, or something that was measured of each.
    """

    layer: int | None = None
    head: int | None = None
    side: str | None = None
    position: int | None = None
    target: str | None = None
    merge: bool = False
    hide_sink: bool = False
    by_values: bool = False
    reduce: int = 4
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int = 0
    other: str = ""
    word: str = ""
    scale: str = ""
    neuron: int | None = None
    sort: str = ""

    def changed(self, **values: Any) -> Options:
        """The same with some values changed."""
        return dataclasses.replace(self, **values)


class Noted:
    """Options that note which of them were looked at, so that one that a view makes no use of can be refused."""

    def __init__(self, options: Options, used: set[str] | None = None) -> None:
        self.options, self.used = options, set() if used is None else used

    def __getattr__(self, name: str) -> Any:
        self.used.add(name)
        return getattr(self.options, name)

    def changed(self, **values: Any) -> Noted:
        return Noted(self.options.changed(**values), self.used)

    def refuse_unused(self, view: str) -> None:
        """One line where something was asked for that does not concern the view."""
        plain = Options()
        asked = [part.name for part in dataclasses.fields(Options) if part.name != "target"]
        unused = [name for name in asked if getattr(self.options, name) != getattr(plain, name)]
        unused = [FLAGS.get(name, name.replace("_", "-")) for name in unused if name not in self.used]
        if unused:
            raise UsageError(f"the view {view} makes no use of {', '.join(unused)}: leave it out")


@dataclass(frozen=True)
class Look:
    """name   as in `--view`.
    about  what it shows, in a line.
    make   the view of a reading.
    fits   whether there is anything to show of a run of which so much can be asked; else any that learns by gradients.
    max_tokens  of an input that it is made of where one machine answers many questions, as the page of `regard lab`.
    """

    name: str
    about: str
    make: Callable[[Reading, Options], View]
    fits: Callable[[Capabilities], bool] = lambda can: not can.fitted
    max_tokens: int = ONE_PASS


_looks: dict[str, list[Look]] = {}


def register_look(look: Look) -> None:
    """Add a look. A package may have several of one name, for models of different kinds; the first that fits is it."""
    module = look.make.__module__
    package = module.partition(".")[0]
    for other, there in _looks.items():
        if other.partition(".")[0] != package and any(one.name == look.name for one in there):
            raise UsageError(f"the name {look.name!r} of a look is taken by {other}")
    there = _looks.setdefault(module, [])
    there[:] = [one for one in there if one.make.__qualname__ != look.make.__qualname__ or one.name != look.name]
    there.append(look)


def registered_looks() -> dict[str, list[Look]]:
    """Looks by the modules that they come from, as far as these were imported."""
    return dict(_looks)


def options_from(values: dict[str, Any]) -> Options:
    """Options from keywords; an unknown one names the nearest, and one of another type or out of range is refused."""
    known = {part.name: part for part in dataclasses.fields(Options)}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"explain has no option {name!r}{nearest(name, known)}")
        wanted = str(known[name].type)
        fits = value is None if "None" in wanted and value is None else _fits(value, wanted)
        if not fits:
            raise UsageError(f"{name}: expected {wanted.replace(' | None', '')}, found {value!r}")
        if isinstance(value, int) and value > MOST:
            raise UsageError(f"{name}: expected 2^63 - 1 at most")
        if value is not None and name in LEAST and value < LEAST[name]:
            raise UsageError(f"{name}: expected {LEAST[name]} or more, found {value}")
    made = Options(**values)
    Sampling(made.temperature, made.top_k, made.top_p)  # refuses what no token can be drawn with
    return made


def numbers(side: Side) -> list[int]:
    """What positions are called: from 1 on, and 0 for a start symbol."""
    first = 0 if side.labels[:1] == (START,) else 1
    return list(range(first, first + len(side.labels)))


def numbered(token: str, number: int) -> str:
    """A token with its position. Its blanks are made visible here: beside the number they would be taken for a gap.

    >>> numbered(" ", 3), numbered("a", 4)
    ('␣ (3)', 'a (4)')
    """
    return f"{label(token)} ({number})"


def place_of(side: Side, position: int | None) -> int:
    """The index of a position; of the last one when none is asked for."""
    known = numbers(side)
    if position is None:
        return len(known) - 1
    if not known:
        raise UsageError(f"position {position}: the {side.name} is empty and has none")
    if position not in known:
        first = [] if known[0] else ["0, its start"]
        rest = [f"1 to {known[-1]}"] if known[-1] else []
        raise UsageError(f"position {position}: the {side.name} has positions {', and '.join(rest + first)}")
    return known.index(position)


def _fits(value: Any, wanted: str) -> bool:
    if isinstance(value, bool) or "bool" in wanted:
        return isinstance(value, bool) and "bool" in wanted
    if "float" in wanted:
        return isinstance(value, (int, float))
    return isinstance(value, int if "int" in wanted else str)


def layer_control(found: Sequence[Site], side: str, layer: int) -> Control:
    """The layers that there are on a side."""
    known = sorted({site.layer for site in found if site.rows.name == side})
    return Control(name="layer", label="layer", kind="choice", value=layer, values=known)


def position_control(side: Side, number: int | None) -> Control:
    return Control(name="position", label="position", kind="choice", value=number, values=numbers(side))


def side_control(names: Sequence[str], side: str) -> Control:
    return Control(name="side", label="side", kind="choice", value=side, values=list(dict.fromkeys(names)))


def seed_control(seed: int) -> Control:
    return Control(name="seed", label="seed", kind="range", value=seed, low=0, high=99, step=1)


def side_number(reading: Reading, name: str | None, default: int = -1) -> int:
    """The number of a side of tokens among the inputs, from 0 on."""
    return default % len(reading.sides) if name is None else reading.sides.index(reading.side(name))


def by_token(
    side: Side, values: Sequence[float], *, title: str, note: str = "", key: str = "", unit: str = ""
) -> Panel:
    """A value for each position: a bar for each token, or a line where there are many."""
    if len(values) <= MOST_BARS:
        return Bars(title=title, note=note, key=key, names=list(side.labels), values=list(values), unit=unit)
    line = points(numbers(side), values)
    return Curves(title=title, note=note, key=key, lines={unit or title: line}, x="position", y=unit)


def points(x: Iterable[float], y: Iterable[float]) -> Sequence[tuple[float, float]]:
    """A line of a panel of curves."""
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def spread(count: int, most: int = MOST_ROWS) -> list[int]:
    """At most so many numbers below `count`, the first and the last among them, evenly apart.

    >>> spread(3, 4), spread(9, 3)
    ([0, 1, 2], [0, 4, 8])
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
