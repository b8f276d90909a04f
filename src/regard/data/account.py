"""Account: what was understood of data before anything is learnt from it, for people and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHOWN = 60  # characters of a cell


@dataclass(frozen=True)
class Account:
    """What data was taken for.

    task       what it is for.
    data       its name. form: what it was read as, such as "CSV".
    target     what is to be told or written: a column, or what else it is.
    columns    by what they are for, such as text or label. ignored: the others.
    unit       what is counted: rows, sentences, characters.
    read       so many were there; `dropped` of them left out, by what they lack.
    train      of the rest are learnt from; `valid` and `test` held out, by the rule `held_out_by`.
    is_about   whether these three are estimates: a large file was not gone through for them.
    facts      more that can be said in a number, such as classes.
    first      the first one as it was understood.
    """

    task: str = ""
    data: str = ""
    form: str = ""
    target: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()
    unit: str = "rows"
    read: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    train: int | None = None
    valid: int | None = None
    test: int = 0
    held_out_by: str = ""
    is_about: bool = False
    facts: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values in plain keys; what was never counted is left out."""
        found = {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}
        plain = {key: _plain(value) for key, value in found.items() if value is not None}
        return plain | {"kept": self.kept}

    @property
    def kept(self) -> int:
        return self.read - sum(self.dropped.values())

    def lines(self) -> list[str]:
        """The same for people: what is learnt from what, how much of it there is, and the first one."""
        used = ", ".join(f"{role} = {name}" for role, name in self.columns.items() if name != self.target)
        ignored = f"ignored: {', '.join(self.ignored)}" if self.ignored else ""
        facts = ", ".join(f"{count:,} {name if count != 1 else _one(name)}" for name, count in self.facts.items())
        what = "; ".join(filter(None, [f"target: {self.target}" if self.target else "", used, facts, ignored]))
        first = " | ".join(f"{role}: {_brief(value)}" for role, value in self.first.items())
        source = f"{self.data} ({self.form})" if self.form else self.data
        lines = [f"{self.task}: {what}" if what else self.task, f"{source}: {self.counts}"]
        return [*lines, f"first: {first}"] if first else lines

    @property
    def counts(self) -> str:
        """How many were read, dropped, held out and are learnt from, for people."""
        parts = [f"{self.read:,} {_one(self.unit) if self.read == 1 else self.unit} read"]
        if self.dropped:
            lacks = ", ".join(f"{count:,} without a {role}" for role, count in self.dropped.items())
            parts.append(f"{sum(self.dropped.values()):,} dropped ({lacks})")
        about = "about " if self.is_about else ""
        if self.valid is not None:
            rule = f" ({self.held_out_by})" if self.held_out_by else ""
            parts.append(f"{about}{self.valid:,} held out{rule}")
        if self.test:
            parts.append(f"{about}{self.test:,} set apart for a test")
        if self.train is not None:
            parts.append(f"{about}{self.train:,} to learn from")
        return ", ".join(parts)


def account_from(told: Mapping[str, Any]) -> Account | None:
    """What `to_dict` gave; None of nothing."""
    names = {part.name for part in dataclasses.fields(Account)}
    return Account(**{key: value for key, value in told.items() if key in names}) if told else None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _one(name: str) -> str:
    """What is counted, where there is one of it."""
    return name if name.endswith("series") else name.removesuffix("es" if name.endswith("sses") else "s")


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:SHOWN]}..." if len(line) > SHOWN else line or '""'
