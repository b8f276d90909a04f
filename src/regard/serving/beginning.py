"""What the page begins with: an input of a kind that the run was trained on, and has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.worlds import PREFIX
from regard.errors import RegardError
from regard.storage.regular import read_regular
from regard.tasks.dataset import first_line
from regard.training.run_folder import SAMPLES

if TYPE_CHECKING:
    from regard.run.run import Run

EXAMPLE = 60  # characters
LOOKED_THROUGH = 20  # held-out examples, for one that is not too long
LARGEST = 2_000_000  # bytes of files that are read again
LARGEST_SAMPLES = 1 << 28


def example_input(run: Run) -> str:
    """The first held-out input that is not too long; the last sample where the data is large or gone; or nothing."""
    if run.task.reads_files:
        return ""
    try:
        held_out = _held_out(run)
    except (RegardError, OSError):
        held_out = []
    texts = [text.strip() for text in held_out if text.strip()]
    if texts:
        return next((text for text in texts if len(text) <= EXAMPLE), _cut(texts[0]))
    return _cut(_last_sample(run.path)) if run.task.echoes else ""


def _held_out(run: Run) -> list[str]:
    """Some held-out inputs as a person would type them; none where it would take long to make them again."""
    about = run.config["data"]
    path = about.get("path") or ""
    if path.startswith(PREFIX):
        return run.task.openings_of_world(path, run.seed, run.processor, LOOKED_THROUGH)
    return [] if _size(about) > LARGEST else run.task.openings(run.held_out("valid"), LOOKED_THROUGH)


def _size(about: dict[str, Any]) -> int:
    """Bytes of the files that a run's data is made of."""
    named = [about.get(key) or "" for key in ("path", "target", "valid")]
    paths = [Path(part) for name in named for part in name.split(",") if part]
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if file.is_file())


def _last_sample(path: Path) -> str:
    """The start of the last sample that the run wrote, or the input that it answered there."""
    try:
        lines = read_regular(path / SAMPLES, LARGEST_SAMPLES, links=False).decode(errors="replace").splitlines()
    except OSError:
        return ""
    start = max((place for place, line in enumerate(lines) if line.startswith("--- ")), default=-1)
    return first_line("\n".join(lines[start + 1 :])).partition(" -> ")[0]


def _cut(text: str) -> str:
    """As many whole words as there is room for."""
    if len(text) <= EXAMPLE:
        return text
    return text[:EXAMPLE].rpartition(" ")[0] or text[:EXAMPLE]
