"""`python -m regard.cli.index` writes the index of built-in parts anew, after one came, went or changed its words."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from regard.cli.list_ import everything
from regard.core.registry import MODELS
from regard.run.index import FILE, facts_of
from regard.run.summary import described_model
from regard.tasks import BUILT_IN, task_named


def index() -> dict[str, Any]:
    """What the built-in parts say of themselves; parts from outside must not be there."""
    found = {
        "listed": everything(),
        "models": {name: described_model(name) for name in MODELS},
        "tasks": {name: asdict(facts_of(task_named(name))) for name in BUILT_IN},
    }
    return json.loads(json.dumps(found))


def written(found: dict[str, Any]) -> str:
    """The file, a part a line, so that two changes meet only where they are of one part."""
    lines = []
    for section, parts in found.items():
        pairs = [f"  {json.dumps(key)}: {_rows(part)}" for key, part in parts.items()]
        lines.append(f" {json.dumps(section)}: {{\n" + ",\n".join(pairs) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rows(part: Any) -> str:
    if not isinstance(part, list):
        return json.dumps(part, ensure_ascii=False)
    return "[\n" + ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in part) + "\n  ]"


if __name__ == "__main__":
    FILE.write_text(written(index()), encoding="utf-8")
