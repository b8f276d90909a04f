"""The page of all statements: what lectures say of these models, where it was shown, and what became of it.

    python docs/statements.py

It is read off the tables at the ends of the lectures, so that a verdict is changed there. Every verdict leads to its
study or its worked example.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from regard.explain.worked import examples
from regard.lectures.catalogue import lectures
from regard.lectures.notebook import Lecture
from regard.studies.registry import BUILT_IN

DOCS = Path(__file__).parent
PAGE = DOCS / "statements.md"
ROW = re.compile(r"\| (?P<said>[^|]+) \| (?P<verdict>[^|]+) \|")
NAME = re.compile(r"`([a-z_-]+)`")
HEAD = ("What was said", "---")
ABOVE = "shown above"
MEANING = {
    "shown": "the lecture shows it, in a run or by a calculation",
    "exact": "a worked example has its numbers",
    "holds": "a study with a rule that was fixed before found so, on the CPU and on the GPU",
    "in part": "a study whose rule is not met as a whole, of which this is the part that is",
    "not settled": "seeds disagree, or the CPU and the GPU do",
    "does not hold": "the rule of the study was broken, on both",
    "reference": "a paper, a page or a date",
    "no statement": "a notice, or a drawing that is lost",
}
OPENING = """# All statements

Everything that five sets of lecture material say of these models, in plain words: in which [lecture](lectures.md) it
stands, and what became of it. Verdicts are those of [studies](reproduce.md), numbers those of
[worked examples](inside.md#worked-examples).
"""


def rows(lecture: Lecture) -> list[tuple[str, str]]:
    """Statement and verdict of every row of a lecture's last table, in plain Markdown."""
    text = "\n".join(cell.source for screen in lecture.screens if screen.kind == "statements" for cell in screen.cells)
    return [
        (found["said"].strip(), found["verdict"].strip())
        for found in ROW.finditer(text)
        if found["said"].strip() not in HEAD
    ]


def linked(verdict: str) -> str:
    """A verdict whose names lead to their pages; what a lecture shows above its table is not above this one.

    >>> linked("exact in `ab`, and holds: `mask`")
    'exact in [`ab`](steps/ab.md), and holds: [`mask`](reproduce.md#what-came-out)'
    >>> linked("shown above: parity")
    'shown in the lecture: parity'
    """

    def link(name: re.Match[str]) -> str:
        if name[1] in examples():
            return f"[{name[0]}](steps/{name[1]}.md)"
        return f"[{name[0]}](reproduce.md#what-came-out)" if name[1] in BUILT_IN else name[0]

    return NAME.sub(link, verdict.replace(ABOVE, "shown in the lecture"))


def page() -> str:
    """The whole page."""
    told = lectures()
    counts = Counter(verdict for lecture in told for verdict in lecture.statements.values())
    parts = [OPENING, "| verdict | statements | |\n| --- | --- | --- |"]
    parts[-1] += "".join(f"\n| {verdict} | {counts[verdict]} | {means} |" for verdict, means in MEANING.items())
    for lecture in told:
        lines = [f"| {said} | {linked(verdict)} |" for said, verdict in rows(lecture)]
        if lines:
            parts.append(f"## {lecture.number}. [{lecture.title}](lectures/{lecture.name}.md)\n\n{lecture.question}")
            parts.append("\n".join(["| What was said | Verdict |", "| --- | --- |", *lines]))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
