"""Chat templates: what somebody says, written as a model was taught to read it.

A template is a program (jinja2) that comes with a model. It is run in a process of its own, in a sandbox that shows it
plain values alone, for a few seconds, within little memory, and says a text of bounded size or nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regard.errors import LONGEST_TOLD, CheckpointError, UsageError

SECONDS, MEMORY = 2, 1 << 29
LONGEST_TEMPLATE, LONGEST_TEXT = 1 << 18, 1 << 20  # characters
PACKAGES = ("jinja2", "markupsafe")  # the second is what the first is made of
Message = Mapping[str, Any]


def rendered(template: str, messages: str | Sequence[Message], special: Mapping[str, str]) -> str:
    """The text of a conversation, up to where the model is to answer. messages: what a person says, or all turns with
    their `role` and `content`. special: tokens by the names that templates have for them, such as bos_token."""
    if len(template) > LONGEST_TEMPLATE:
        raise CheckpointError(f"the chat template has {len(template):,} characters, too many for one")
    turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(one) for one in messages]
    values = {"messages": turns, "tools": None, "documents": None, "add_generation_prompt": True, **special}
    asked = {"template": template, "values": values, "memory": MEMORY, "seconds": SECONDS, "longest": LONGEST_TEXT}
    asked["folders"] = {name: folder for name in PACKAGES if (folder := _folder_of(name)) is not None}
    try:
        found = subprocess.run(
            [sys.executable, "-I", str(Path(__file__).with_name("chat_sandbox.py"))],
            input=json.dumps(asked),
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS + 8,
            check=False,
        )
        told = json.loads(found.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        raise CheckpointError(
            f"the chat template asks for more than {SECONDS} seconds or {MEMORY >> 20} MB and was stopped"
        ) from None
    if "lacks" in told:
        raise UsageError(f"a chat template is rendered by jinja2: {told['lacks']}; pip install jinja2")
    if "text" not in told:
        reason = " ".join(str(told.get("error", "")).split())[:LONGEST_TOLD]
        raise CheckpointError(f"the chat template is refused: {reason}")
    return told["text"]


def _folder_of(package: str) -> str | None:
    """Where a package is that this process could import: its own path may be longer than that of an isolated one.

    The working folder is no such place, as it is none to the isolated process: what lies there is data.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).absolute().parent.parent
    return None if folder == Path.cwd() else str(folder)
