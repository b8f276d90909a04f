"""The model card of what is exported: README.md with what it is, its data, settings, scores and licence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from regard.core.version import __version__
from regard.run.card import held_out, short_name

if TYPE_CHECKING:
    from regard.run.run import Run

UNSAID = "not said: whoever passes this on has to say it"
PLAIN = re.compile(r"[A-Za-z0-9._+-]+")


def model_card(run: Run, *, to: str, licence: str | None, notes: Sequence[str] = ()) -> str:
    """to: the format. notes: what a reader of this format has to know."""
    config = run.config
    data, understood = config.get("data", {}), config.get("understood", {})
    n_parameters = sum(part.numel() for part in run.model.parameters())
    imported = config.get("imported", {})
    facts = {
        "task": f"{run.task.name} ({run.task.shape})",
        "model": short_name(run),
        "parameters": f"{n_parameters:,}",
        "made by": f"regard {__version__}",
        "taken over from": imported.get("source"),
        "revision": imported.get("revision"),
    }
    learnt = {
        "data": understood.get("data") or data.get("path"),
        "target": understood.get("target"),
        "learnt from": f"{understood['train']:,} {understood['unit']}" if understood.get("train") else None,
        "tokens": data.get("tokens"),
    }
    settings = {f"model.{key}": value for key, value in config.get("model", {}).get("settings", {}).items()}
    if not imported:
        settings |= {key: origin for key, origin in _said(config) if key.startswith("train.")}
    scores = {name: f"{value:.4g}" for name, value in held_out(run).items() if isinstance(value, (int, float))}
    parts = [
        _front(licence, to),
        f"# {run.path.name or 'model'}\n",
        _listed("", facts),
        _listed("Data", learnt, "It came from elsewhere; its data is told there." if imported else "Not told."),
        _listed("Scores", scores, "None were measured here."),
        _listed("Settings", {key: json.dumps(value) for key, value in settings.items()}, "Those of its architecture."),
        "## Use\n\n" + "".join(f"- {note}\n" for note in notes) if notes else "",
        f"## Licence\n\n{licence or UNSAID}\n",
    ]
    return "\n".join(part for part in parts if part)


def _said(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings that are not as they always are."""
    for key in config.get("origins", {}):
        section, _, name = key.partition(".")
        yield key, config.get(section, {}).get(name)


def _front(licence: str | None, to: str) -> str:
    """What hubs read."""
    spelt = [] if licence is None else [f"license: {licence if PLAIN.fullmatch(licence) else 'other'}"]
    return "\n".join(["---", *spelt, "tags:", "- regard", f"- {to}", "---", ""])


def _listed(title: str, facts: dict[str, Any], otherwise: str = "") -> str:
    told = [f"- {name}: {value}" for name, value in facts.items() if value not in (None, "")]
    head = f"## {title}\n\n" if title else ""
    return head + ("\n".join(told) or otherwise) + "\n"
