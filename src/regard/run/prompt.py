"""A prompt that is the name of a file: the content is meant, and not the name."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from regard.data.form import NAMES
from regard.data.source import ONE_BY_ONE, plain
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.run.run import Run


def refuse_file_name(run: Run, prompt: str) -> None:
    """Refuse a file, or what can be nothing but the name of one, where a run reads texts."""
    if run.task.reads_files or not (_is_file(prompt) or _looks_like_file(prompt)):
        return
    which, what = shlex.quote(str(run.path)), shlex.quote(prompt)
    is_there = "is a file" if _is_file(prompt) else "looks like a file, which is not there"
    raise UsageError(
        f"{prompt} {is_there}, and a run of the task {run.task.name} reads texts: regard predict {which} {what} "
        f"answers what is in it, --text takes it as a text"
    )


def _is_file(prompt: str) -> bool:
    try:
        return Path(prompt).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it
        return False


def _looks_like_file(prompt: str) -> bool:
    """A path of one word that ends as data does."""
    has_folder = any(mark in prompt for mark in {"/", os.sep})
    is_data = has_folder and not any(map(str.isspace, prompt))
    return is_data and plain(prompt).suffix.lower() in {*NAMES, *ONE_BY_ONE}
