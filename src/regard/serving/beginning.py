"""What the page begins with: an input of a kind that the run was trained on, and has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.data.worlds import PREFIX, text_world, world_of
from regard.errors import RegardError
from regard.storage.regular import read_regular
from regard.tasks import TEXT
from regard.training.run_folder import SAMPLES

MASKED = "masked"
CHOSEN_BY_READER = ("captions", "series")  # a look at no input takes the first held-out one
SAMPLED_WITH_INPUT = (TEXT, "pairs", "labelled")  # a line of the samples begins with what was given
EXAMPLE = 60  # characters
LOOKED_THROUGH = 20  # held-out examples, for one that is not too long
LARGEST = 2_000_000  # bytes of files that are read again
LARGEST_SAMPLES = 1 << 28


def example_input(run: Any) -> str:
    """The first held-out input that is not too long; the last sample where the data is large or gone; or nothing."""
    task = run.config["data"].get("task", TEXT)
    if task in CHOSEN_BY_READER:
        return ""
    try:
        held_out = _held_out(run, task)
    except (RegardError, OSError):
        held_out = []
    texts = [text.strip() for text in held_out if text.strip()]
    if texts:
        return next((text for text in texts if len(text) <= EXAMPLE), _cut(texts[0]))
    return _cut(_last_sample(run.path)) if task in SAMPLED_WITH_INPUT else ""


def _held_out(run: Any, task: str) -> list[str]:
    """Some held-out inputs as a person would type them; none where it would take long to make them again."""
    about, seed = run.config["data"], run.config["train"]["seed"]
    path = about.get("path") or ""
    if path.startswith(PREFIX):
        return _of_world(run, task, path, seed)
    if _size(about) > LARGEST:
        return []
    if task == TEXT:
        shard, _ = run.held_out("valid")
        return [_first_line(run.tokenizer.decode(shard.document(0)[: 4 * EXAMPLE]))]
    return [run.task.typed(one) for one in run.held_out("valid")[:LOOKED_THROUGH]]


def _of_world(run: Any, task: str, path: str, seed: int) -> list[str]:
    """A world makes its first examples without the rest."""
    from regard.tasks.filling import Passage

    if task == TEXT:
        return [_first_line(text) for text in text_world(path, seed).documents("valid", 1)]
    if task == MASKED:
        processor = run.processor
        texts = text_world(path, seed).documents("valid", 1)
        return [run.task.typed(Passage(processor.framed(text), 0, processor.tokenizer)) for text in texts]
    return [run.task.typed(one) for one in world_of(path, task, seed).examples("valid", LOOKED_THROUGH)]


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
    return _first_line("\n".join(lines[start + 1 :])).partition(" -> ")[0]


def _first_line(text: str) -> str:
    return next((line for line in text.split("\n") if line.strip()), "")


def _cut(text: str) -> str:
    """As many whole words as there is room for."""
    if len(text) <= EXAMPLE:
        return text
    return text[:EXAMPLE].rpartition(" ")[0] or text[:EXAMPLE]
