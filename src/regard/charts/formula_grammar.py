"""The grammar of formulas: rows of atoms with scripts, groups in braces, and where a sign needs room at its sides."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import NamedTuple, TypeAlias

from regard.charts import symbols
from regard.charts.markup import Node

TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|\d+(?:\.\d+)?|\.\d+|.", re.DOTALL)
BLANK = re.compile(r"\s*")
DEEPEST = 40
THIN = 3 / 18  # of an em, as TeX leaves between a function and what it is of
CHARACTERS = {"*": "∗", "-": "−", "+": "+", "=": "=", "<": "<", ">": ">", ":": ":", ",": ",", ";": ";"}
ROLES = {"*": "binary", "-": "binary", "+": "binary", ",": "comma", ";": "comma"}
PLAIN = frozenset("!?./|()[]")
ENDS = frozenset({"", "}", "&", "\\\\", "\\right", "\\end"})  # of a row
SCRIPTS = ("^", "_", "'")
# What a sign may follow without being one between two terms.
BEFORE_A_SIGN = frozenset({"", "binary", "relation", "open", "comma", "function", "large"})


class Atom(NamedTuple):
    """A part of a row. role: term, binary, relation, open, close, comma, function, large, fenced, under, space."""

    node: Node
    role: str = "term"


Meaning: TypeAlias = "Callable[[Parser, str], Atom]"


class Parser:
    """Reads a formula from left to right.

    meanings  what makes an atom of a name of TeX.
    depth     groups that are open.
    """

    def __init__(self, tex: str, meanings: Mapping[str, Meaning]) -> None:
        self.tex = tex
        self.meanings = meanings
        self.place = 0
        self.depth = 0

    def wrong(self, what: str) -> ValueError:
        told = self.tex if len(self.tex) <= 80 else f"{self.tex[:77]}..."
        return ValueError(f"formula {told!r}: {what}")

    def peek(self) -> str:
        """The next token, blanks passed over; nothing at the end."""
        self.place = BLANK.match(self.tex, self.place).end()  # pyright: ignore[reportOptionalMemberAccess]
        found = TOKEN.match(self.tex, self.place)
        return found[0] if found else ""

    def take(self) -> str:
        token = self.peek()
        self.place += len(token)
        return token

    def rows(self, ends: Container[str]) -> list[list[list[Node]]]:
        """Lines of cells up to a token of `ends` or the end."""
        lines: list[list[list[Node]]] = [[]]
        while True:
            lines[-1].append(self.row())
            if self.peek() == "&":
                self.take()
            elif self.peek() == "\\\\":
                self.take()
                if not self.peek() or self.peek() in ends:
                    return lines
                lines.append([])
            else:
                return lines

    def row(self) -> list[Node]:
        """Atoms up to what ends a row, which is left there."""
        atoms: list[Atom] = []
        while self.peek() not in ENDS:
            if self.peek() in ("\\displaystyle", "\\textstyle"):
                shows = self.take() == "\\displaystyle"
                inside = self.row()
                atoms.append(Atom(["mstyle", {"displaystyle": str(shows).lower()}, *inside]))
            elif self.peek() in ("\\limits", "\\nolimits"):
                self.take()
            else:
                atoms.append(self.scripted())
        return arranged(atoms)

    def scripted(self) -> Atom:
        """An atom with what stands above and below at its right."""
        atom = Atom(["mrow", {}]) if self.peek() in SCRIPTS else self.atom()
        below: Node | None = None
        above: Node | None = None
        primes = ""
        while self.peek() in SCRIPTS:
            taken = self.take()
            if taken == "'":
                primes += "′"
            elif taken == "_":
                below = self.script("two subscripts", below)
            else:
                above = self.script("two superscripts", above)
        if primes:
            above = joined([["mo", {}, primes], *([above] if above else [])])
        return _with_scripts(atom, below, above)

    def script(self, what: str, before: Node | None) -> Node:
        if before is not None:
            raise self.wrong(f"{what} at one place")
        return self.argument()

    def argument(self) -> Node:
        """What a name is of: a group, or the next sign alone."""
        if self.peek() == "{":
            return self.group()
        if self.peek()[:1].isdigit():
            self.place += 1
            return ["mn", {}, self.tex[self.place - 1]]
        if self.peek() in ENDS or self.peek() in SCRIPTS:
            raise self.wrong("something is missing" + (f" before {self.peek()}" if self.peek() else " at the end"))
        return self.atom().node

    def group(self) -> Node:
        """What stands between braces; an operator alone in them is a sign without room of its own."""
        self.take()
        self.deeper()
        inside = self.row()
        self.expect("}")
        self.depth -= 1
        if len(inside) == 1 and inside[0][0] == "mo":
            return ["mo", {**inside[0][1], "lspace": "0", "rspace": "0"}, *inside[0][2:]]
        return joined(inside)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.wrong(f"nested more than {DEEPEST} deep")

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self.wrong(f"{token} is missing")
        self.take()

    def words(self) -> str:
        """The letters of a group as they stand."""
        self.expect("{")
        begin, open_braces = self.place, 1
        while open_braces:
            if self.place >= len(self.tex):
                raise self.wrong("} is missing")
            letter = self.tex[self.place]
            self.place += 2 if letter == "\\" else 1
            open_braces += {"{": 1, "}": -1}.get(letter, 0)
        return self.tex[begin : self.place - 1]

    def fence(self) -> str:
        token = self.take()
        name = "Vert" if token == "\\|" else token.removeprefix("\\")
        if token == ".":
            return ""
        if not name or name not in symbols.FENCES:
            raise self.wrong(f"{token or 'the end'} is no fence")
        return symbols.FENCES[name]

    def atom(self) -> Atom:
        token = self.peek()
        if token == "{":
            return Atom(self.group())
        self.take()
        if token.startswith("\\"):
            return self.named(token[1:])
        if token in CHARACTERS:
            return Atom(["mo", {}, CHARACTERS[token]], ROLES.get(token, "relation"))
        if token in PLAIN:
            return sign(token)
        if token == "~":
            return Atom(space(symbols.SPACES["~"]), "space")
        if token[0].isdigit() or len(token) > 1:
            return Atom(["mn", {}, token])
        if token.isalpha() or ord(token) > 127:
            return Atom(["mi", {}, token])
        raise self.wrong(f"{token} means nothing here; the sign itself is \\{token}")

    def named(self, name: str) -> Atom:
        """What a name of TeX stands for."""
        if name not in self.meanings:
            raise self.wrong(f"unknown macro \\{name}")
        self.deeper()
        atom = self.meanings[name](self, name)
        self.depth -= 1
        return atom


def arranged(atoms: list[Atom]) -> list[Node]:
    """Nodes of a row, with thin blanks around functions, and signs told from operators."""
    nodes: list[Node] = []
    before = ""
    for atom in atoms:
        node, role = atom
        if role == "binary" and before in BEFORE_A_SIGN and node[0] == "mo":
            node, role = ["mo", {**node[1], "form": "prefix"}, *node[2:]], "sign"
        is_apart = role == "function" and before in ("term", "close", "fenced", "function")
        if is_apart or (before == "function" and role == "term"):
            nodes.append(space(THIN))
        nodes.append(node)
        before = "binary" if role == "sign" else role
    return nodes


def joined(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else ["mrow", {}, *nodes]


def _with_scripts(atom: Atom, below: Node | None, above: Node | None) -> Atom:
    """Below and above an operator that has limits, otherwise at its right."""
    has_limits = atom.role in ("large", "under") or (atom.role == "function" and atom.node[0] == "mo")
    kinds = ("munder", "mover", "munderover") if has_limits else ("msub", "msup", "msubsup")
    role = "term" if atom.role in ("close", "under") else atom.role
    if below is None and above is None:
        return atom
    if above is None:
        return Atom([kinds[0], {}, atom.node, below], role)
    if below is None:
        return Atom([kinds[1], {}, atom.node, above], role)
    return Atom([kinds[2], {}, atom.node, below, above], role)


def sign(token: str) -> Atom:
    """A sign that keeps its size and takes no room at its sides."""
    role = "open" if token in "([" else "close" if token in ")]" else "term"
    if role == "term":
        return Atom(["mo", {"stretchy": "false", "lspace": "0", "rspace": "0"}, token], role)
    return Atom(["mo", {"stretchy": "false"}, token], role)


def space(width: float) -> Node:
    return ["mspace", {"width": f"{width:.3g}em"}]
