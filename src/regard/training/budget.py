"""Budget: how long a run goes on, in time, steps, tokens or floating-point operations.

    90s  2m  1h   500steps   3Mtokens  3e6tokens   1e15flops

Time is that of the training loop, evaluations and saves included, by a clock that cannot jump. It is carried over
resumes, as every other counter is. Tokens are targets that count in the loss; the operations of each are counted on
the first batch (see `flops`).
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import Literal

from regard.errors import UsageError

UNITS: dict[str, tuple[Literal["seconds", "steps", "tokens", "flops"], float]] = {
    "s": ("seconds", 1),
    "m": ("seconds", 60),
    "h": ("seconds", 3600),
    "step": ("steps", 1),
    "steps": ("steps", 1),
    "token": ("tokens", 1),
    "tokens": ("tokens", 1),
    "flop": ("flops", 1),
    "flops": ("flops", 1),
}
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
WORDS = {"seconds": "s", "sec": "s", "minutes": "m", "min": "m", "hours": "h", "hrs": "h", "iterations": "steps"}
EXAMPLES = "90s, 2m, 1h, 500steps, 3Mtokens, 1e15flops"
TEXT = re.compile(r"\s*([0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*([kMGTP]?)\s*([a-z]+)\s*")
LOOSE = re.compile(r"\s*([0-9]+\.?[0-9]*)\s*([kMGTP]?)\s*([A-Za-z]*)\s*")


@dataclass(frozen=True)
class Budget:
    """An amount of one kind."""

    kind: Literal["seconds", "steps", "tokens", "flops"]
    amount: float

    def spent(self, *, step: float, tokens: float, seconds: float, flops_per_token: float) -> float:
        """How much of the budget's kind is spent."""
        spent = {"seconds": seconds, "steps": step, "tokens": tokens, "flops": tokens * flops_per_token}
        return spent[self.kind]

    def progress(self, *, step: float, tokens: float, seconds: float, flops_per_token: float) -> float:
        """How much of the budget is spent, 0 to 1."""
        spent = self.spent(step=step, tokens=tokens, seconds=seconds, flops_per_token=flops_per_token)
        return min(1.0, spent / self.amount)

    def told(self, amount: float) -> str:
        """An amount of the budget's kind, rounded up, as a person writes it.

        >>> parse("2m").told(22.3), parse("5steps").told(40), parse("3Mtokens").told(1234567)
        ('23s', '40steps', '1.24e+06tokens')
        """
        digits = max(0, len(f"{amount:.0f}") - 3) if self.kind in ("tokens", "flops") else 0
        whole = math.ceil(amount / 10**digits) * 10**digits
        return f"{whole if whole < 1e6 else format(whole, 'g')}{'s' if self.kind == 'seconds' else self.kind}"


def parse(text: str) -> Budget:
    """The budget that `text` names.

    >>> parse("2m"), parse("3Mtokens")
    (Budget(kind='seconds', amount=120.0), Budget(kind='tokens', amount=3000000.0))
    """
    match = TEXT.fullmatch(text) if isinstance(text, str) else None
    # "2m" is two minutes: a lone letter is a unit, never a prefix.
    number, prefix, unit = match.groups() if match else ("0", "", "")
    if unit not in UNITS or (prefix and UNITS[unit][0] == "seconds"):
        raise UsageError(f"train.budget: {text!r} is not a budget{_meant(text)}; write one such as {EXAMPLES}")
    kind, factor = UNITS[unit]
    amount = float(number) * PREFIXES[prefix] * factor
    if not 0 < amount < math.inf:
        raise UsageError(f"train.budget: {text!r} must be above zero and finite; write one such as {EXAMPLES}")
    if kind == "steps" and amount != int(amount):
        raise UsageError(f"train.budget: {text!r} is not a whole number of steps")
    return Budget(kind, amount)


def share(text: str, part: float) -> str:
    """A part of a budget, in its own unit.

    >>> share("1m", 0.25), share("3Mtokens", 0.5), share("100steps", 0.333)
    ('15s', '1.5e+06tokens', '33steps')
    """
    whole = parse(text)
    amount = whole.amount * part
    if whole.kind == "steps":
        amount = float(max(1, int(amount)))
    unit = {"seconds": "s", "steps": "steps", "tokens": "tokens", "flops": "flops"}[whole.kind]
    return f"{amount:g}{unit}"


def _meant(text: object) -> str:
    """A hint for an amount whose unit is written in another way.

    >>> _meant("5 minutes"), _meant("500"), _meant("3 Mtoken s")
    (', did you mean 5m?', ', did you mean 500s or 500steps?', '')
    """
    match = LOOSE.fullmatch(str(text))
    if match is None:
        return ""
    number, prefix, unit = match.groups()
    if not unit:
        other = f"{number}{prefix.lower()}" if prefix == "M" else f"{number}{prefix}steps" if prefix else f"{number}s"
        return f", did you mean {other} or {number}{prefix}{'tokens' if prefix else 'steps'}?"
    close = difflib.get_close_matches(unit.lower(), [*WORDS, *UNITS], n=1, cutoff=0.75)
    name = WORDS.get(close[0], close[0]) if close else ""
    is_odd = not name or (prefix and UNITS[name][0] == "seconds")
    return "" if is_odd else f", did you mean {number}{prefix}{name}?"
