r"""Formulas: TeX of the kind that lectures need, as MathML, which browsers set without any library.

    mathml(r"h_t = \tanh(W_h h_{t-1} + W_i x_t)")

Fractions, roots, sums, scripts, fences, accents, matrices, cases and aligned lines, Greek and bold letters, words
(`\text`, `\operatorname`); the names are those of `symbols.py`. A name that is not there is a ValueError that says it.
`\\` and `&` outside of any environment make aligned lines.
"""

from __future__ import annotations

import re
from functools import partial

from regard.charts import symbols
from regard.charts.formula_grammar import Atom, Meaning, Parser, joined, space
from regard.charts.markup import Node, text_of

SIZES = {"big": 1.2, "Big": 1.8, "bigg": 2.4, "Bigg": 3.0}  # em
SIGN_IN_TEXT = re.compile(r"\\([%#$&_{} ])")
BRACES = {"underbrace": ("munder", "⏟"), "overbrace": ("mover", "⏞")}


def mathml(tex: str, block: bool = False) -> Node:
    """A formula as a node; `block`: on a line of its own, with limits above and below sums."""
    parser = Parser(tex, MEANINGS)
    rows = parser.rows(())
    if parser.peek():
        raise parser.wrong(f"{parser.peek()} without its beginning")
    lines = len(rows) > 1 or len(rows[0]) > 1
    inside = [_table(rows, "aligned")] if lines else rows[0][0]
    return ["math", {"display": "block"} if block else {}, *inside]


def _table(rows: list[list[list[Node]]], name: str) -> Node:
    """Lines of cells; those of aligned lines end and begin at one place."""
    has_cells = max(map(len, rows)) > 1
    sides = ("left",) if name in symbols.ALIGNED or name == "cases" else ()
    sides = ("right", "left") if name in symbols.ALIGNED and has_cells else sides
    lines = []
    for row in rows:
        given = [{"columnalign": sides[place % len(sides)]} if sides else {} for place in range(len(row))]
        lines.append(["mtr", {}, *(["mtd", about, *cell] for about, cell in zip(given, row, strict=True))])
    about = {"class": "aligned", "displaystyle": "true"} if name in symbols.ALIGNED else {}
    return ["mtable", about, *lines]


def _fraction(parser: Parser, name: str) -> Atom:
    above, below = parser.argument(), parser.argument()
    if name == "binom":
        inside: Node = ["mfrac", {"linethickness": "0"}, above, below]
        return Atom(["mrow", {}, ["mo", {}, "("], inside, ["mo", {}, ")"]])
    node: Node = ["mfrac", {}, above, below]
    return Atom(node if name == "frac" else ["mstyle", {"displaystyle": str(name == "dfrac").lower()}, node])


def _root(parser: Parser, _name: str) -> Atom:
    if parser.peek() != "[":
        return Atom(["msqrt", {}, parser.argument()])
    end = parser.tex.find("]", parser.place)
    if end < 0:
        raise parser.wrong("] is missing")
    degree = mathml(parser.tex[parser.place + 1 : end])[2:]
    parser.place = end + 1
    return Atom(["mroot", {}, parser.argument(), joined(degree)])


def _fenced(parser: Parser, _name: str) -> Atom:
    before = parser.fence()
    inside = parser.row()
    parser.expect("\\right")
    after = parser.fence()
    return Atom(_between(before, inside, after), "fenced")


def _between(before: str, inside: list[Node], after: str) -> Node:
    """Between fences that grow with what they hold."""
    left: list[Node] = [["mo", {"stretchy": "true", "form": "prefix"}, before]] if before else []
    right: list[Node] = [["mo", {"stretchy": "true", "form": "postfix"}, after]] if after else []
    return ["mrow", {}, *left, *inside, *right]


def _environment(parser: Parser, _name: str) -> Atom:
    name = parser.words()
    if name not in symbols.ENVIRONMENTS:
        raise parser.wrong(f"unknown environment {name}")
    if name == "array":
        parser.words()
    rows = parser.rows(("\\end",))
    parser.expect("\\end")
    if parser.words() != name:
        raise parser.wrong(f"\\end{{{name}}} is missing")
    before, after = symbols.ENVIRONMENTS[name]
    table = _table(rows, name)
    return Atom(_between(before, [table], after) if before or after else table)


def _word(_parser: Parser, name: str) -> Atom:
    """A function by its name; what is wanted below a maximum stands below it."""
    if name in symbols.LIMITS:
        return Atom(_limited({"argmax": "arg max", "argmin": "arg min"}.get(name, name)), "function")
    return Atom(_upright(name), "function")


def _operator_name(parser: Parser, _name: str) -> Atom:
    has_limits = parser.peek() == "*"
    if has_limits:
        parser.take()
    word = _plain_text(parser.words())
    return Atom(_limited(word) if has_limits else _upright(word), "function")


def _limited(word: str) -> Node:
    return ["mo", {"movablelimits": "true", "form": "prefix", "lspace": "0", "rspace": "0"}, word]


def _upright(word: str) -> Node:
    return ["mi", {"mathvariant": "normal"} if len(word) == 1 else {}, word]


def _styled(parser: Parser, name: str) -> Atom:
    style = symbols.STYLED[name]
    if style == "upright":
        return Atom(_upright(_plain_text(parser.words())))
    node = parser.argument()
    return Atom(node if style == "italic" else _with_letters(node, style))


def _with_letters(node: Node | str, style: str) -> Node:
    """The same with letters and numbers of another kind."""
    tag, about, *inside = node
    if tag in ("mi", "mn"):
        return [tag, about, symbols.styled(text_of(node), style)]
    return [tag, about, *(_with_letters(one, style) if isinstance(one, list) else one for one in inside)]


def _text(parser: Parser, name: str) -> Atom:
    """Words, in which a formula may stand between dollars."""
    parts = re.split(r"(?<!\\)\$", parser.words())
    if len(parts) % 2 == 0:
        raise parser.wrong("a $ in \\text has no end")
    nodes: list[Node] = []
    for place, part in enumerate(parts):
        if place % 2:
            nodes += mathml(part)[2:]
        elif part:
            words = _plain_text(part)
            # Blanks at the ends of an element would be left out.
            begin, end = ("\u00a0" if words.startswith(" ") else ""), ("\u00a0" if words.endswith(" ") else "")
            words = f"{begin}{words.strip()}{end}" if words.strip() else "\u00a0"
            tag = symbols.TEXTS[name]
            nodes.append(["mtext", {}, [tag, {}, words] if tag else words])
    return Atom(joined(nodes))


def _plain_text(raw: str) -> str:
    return SIGN_IN_TEXT.sub(r"\1", raw)


def _accent(parser: Parser, name: str) -> Atom:
    about = {"stretchy": "true" if name in symbols.STRETCHED else "false"}
    return Atom(["mover", {"accent": "true"}, parser.argument(), ["mo", about, symbols.ACCENTS[name]]])


def _brace(parser: Parser, name: str) -> Atom:
    tag, sign = BRACES[name]
    return Atom([tag, {}, parser.argument(), ["mo", {"stretchy": "true"}, sign]], "under")


def _underlined(parser: Parser, _name: str) -> Atom:
    return Atom(["munder", {}, parser.argument(), ["mo", {"stretchy": "true"}, "_"]])


def _set(parser: Parser, name: str) -> Atom:
    """Something small above a sign, or below it."""
    small, base = parser.argument(), parser.argument()
    role = "relation" if base[0] == "mo" else "term"
    return Atom(["munder" if name == "underset" else "mover", {}, base, small], role)


def _middle(parser: Parser, _name: str) -> Atom:
    about = {"stretchy": "true", "lspace": "0.278em", "rspace": "0.278em"}
    return Atom(["mo", about, parser.fence()], "relation")


def _sized(parser: Parser, name: str) -> Atom:
    """A fence of a size of its own."""
    size = SIZES[name.rstrip("lrm")]
    sign = parser.fence()
    about = {"stretchy": "true", "symmetric": "true", "minsize": f"{size}em", "maxsize": f"{size}em"}
    return Atom(["mo", about, sign], "open" if sign in symbols.OPENS else "close")


def _fence_alone(_parser: Parser, name: str) -> Atom:
    sign = symbols.FENCES["Vert" if name == "|" else name]
    opens = sign in symbols.OPENS or name in ("lvert", "lVert")
    return Atom(["mo", {"stretchy": "false", "lspace": "0", "rspace": "0"}, sign], "open" if opens else "close")


def _letter(_parser: Parser, name: str, letters: dict[str, str], about: dict[str, str]) -> Atom:
    letter = letters[name]
    return Atom(["mi", about if len(letter) == 1 else {}, letter])


def _operator(_parser: Parser, name: str, signs: dict[str, str], role: str) -> Atom:
    room = {"lspace": "0.278em", "rspace": "0.278em", "stretchy": "false"} if name == "mid" else {}
    return Atom(["mo", room, signs[name]], role)


def _blank(_parser: Parser, name: str) -> Atom:
    return Atom(space(symbols.SPACES[name]), "space")


def _meanings() -> dict[str, Meaning]:
    """What makes an atom of each name."""
    found: dict[str, Meaning] = {}
    found |= dict.fromkeys(symbols.FENCES.keys() - {"(", ")", "[", "]", "/"}, _fence_alone)
    found |= dict.fromkeys(symbols.LETTERS, partial(_letter, letters=symbols.LETTERS, about={}))
    upright = {"mathvariant": "normal"}
    found |= dict.fromkeys(symbols.CAPITALS, partial(_letter, letters=symbols.CAPITALS, about=upright))
    found |= dict.fromkeys(symbols.BINARY, partial(_operator, signs=symbols.BINARY, role="binary"))
    found |= dict.fromkeys(symbols.RELATIONS, partial(_operator, signs=symbols.RELATIONS, role="relation"))
    found |= dict.fromkeys(symbols.LARGE, partial(_operator, signs=symbols.LARGE, role="large"))
    found |= dict.fromkeys(symbols.FUNCTIONS | symbols.LIMITS, _word)
    found |= dict.fromkeys(symbols.SPACES, _blank) | dict.fromkeys(symbols.ACCENTS, _accent)
    found |= dict.fromkeys(symbols.STYLED, _styled) | dict.fromkeys(symbols.TEXTS, _text)
    found |= dict.fromkeys(BRACES, _brace) | dict.fromkeys(("overset", "underset", "stackrel"), _set)
    found |= dict.fromkeys([size + side for size in SIZES for side in ("", "l", "r", "m")], _sized)
    found |= dict.fromkeys(("frac", "dfrac", "tfrac", "binom"), _fraction)
    more: dict[str, Meaning] = {"sqrt": _root, "left": _fenced, "middle": _middle, "begin": _environment}
    return found | more | {"operatorname": _operator_name, "underline": _underlined}


MEANINGS = _meanings()
