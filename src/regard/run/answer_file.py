"""Files in, files out: a run answers every input of a file, and what it says is written beside what was there.

run = regard.load("runs/reviews")
predict_file(run, "reviews.csv", "answers.csv")

Inputs are answered some thousand at a time, always the same ones together, and written in their order: memory does not
grow with the file, and a call that was interrupted goes on to the same bytes.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from regard.core.progress import stage
from regard.data.converted import conversion_for
from regard.data.source import shown
from regard.data.table_writer import RowWriter, writer_for, writer_for_stream
from regard.data.unlabelled import Asked, Unlabelled, limited
from regard.errors import DataError, InputError, UsageError, nearest
from regard.run.settings import checked, data_settings
from regard.storage import manifest
from regard.storage.partial import PartialFile, partial_file
from regard.tasks.verbs import Answer, Generates
from regard.training.run_folder import LOGS

if TYPE_CHECKING:
    from regard.data.settings import DataSettings
    from regard.run.run import Run

LIKELIEST = {"temperature": 0.0}


@dataclass(frozen=True)
class Predicted:
    """What was answered.

    file     where it was written; None of a stream.
    inputs   how many were answered in all, `resumed` of them by an earlier call.
    columns  those that answers have added. notes: what had to be decided.
    """

    file: Path | None
    inputs: int
    resumed: int
    columns: tuple[str, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        plain = {"file": None if self.file is None else str(self.file), "columns": list(self.columns)}
        return {**vars(self), **plain, "notes": list(self.notes)}


def predict_file(
    run: Run,
    data: str | Path,
    out: str | Path,
    *,
    settings: DataSettings | None = None,
    limit: int | None = None,
    resume: bool = False,
    force: bool = False,
    **options: Any,
) -> Predicted:
    """Answer every input of a file, a folder or a table, and write the answers to a file of the form that it is named.

    settings  how the data is read, where it is otherwise than the run's own.
    limit     so many inputs, the first ones. options: of a run that writes texts, such as beam.
    resume    go on with what a call like this one has begun. force: replace `out`, and what was begun of it.
    """
    path, settings = Path(out).expanduser(), settings or run.settings
    convert = conversion_for(path)
    _refuse_same(path, str(data))
    about = {"run": identity_of(run), "settings": dataclasses.asdict(settings), "options": options, "limit": limit}
    begin = time.monotonic()
    with partial_file(path, about, resume=resume, force=force) as file:
        found = limited(run.task.unlabelled(run, str(data), settings), limit)
        work = _Work(run, found, writer_for(path, found), options)
        _refuse_other_data(file, work, data)
        resumed = file.rows
        for text, rows, mark in work.parts(resumed):
            file.add(text, rows, mark)
        file.finish(work.end(), convert)
    return Predicted(path, len(found), resumed, work.added, time.monotonic() - begin, tuple(found.notes))


def predict_stream(
    run: Run,
    data: str,
    stream: BinaryIO,
    *,
    settings: DataSettings | None = None,
    limit: int | None = None,
    as_json: bool = False,
    **options: Any,
) -> Predicted:
    """The same to a stream: a CSV, JSON lines, or the form that the inputs have."""
    begin = time.monotonic()
    found = limited(run.task.unlabelled(run, data, settings or run.settings), limit)
    writer = writer_for_stream(found, as_json=as_json)
    work = _Work(run, found, writer, options)
    for text, _, _ in work.parts(0):
        stream.write(text)
        stream.flush()
    stream.write(work.end())
    return Predicted(None, len(found), 0, work.added, time.monotonic() - begin, tuple(found.notes))


def settings_with(run: Run, changes: Mapping[str, Any]) -> DataSettings:
    """How the run reads data, with changes such as data.text=review; what its task has no use for is refused."""
    known, given = data_settings(), dict[str, Any]()
    for key, value in changes.items():
        section, _, name = key.partition(".")
        if section != "data" or name not in known:
            raise UsageError(f"--set: {key}: data is read by settings such as data.text{nearest(name, known)}")
        given[name] = checked(value, known[name][0], key)
    settings = dataclasses.replace(run.settings, **given)
    run.task.refuse_unused(dataclasses.replace(settings, valid=run.settings.valid))
    return settings


def identity_of(run: Run) -> str:
    """SHA-256 of the run's files, as its manifest has them; of a model in another format, of the files themselves."""
    if not (run.path / manifest.NAME).exists():
        files = [run.path] if run.path.is_file() else sorted(file for file in run.path.rglob("*") if file.is_file())
        return hashlib.sha256(json.dumps([manifest.hash_file(file).sha256 for file in files]).encode()).hexdigest()
    names = sorted((name, record.sha256) for name, record in manifest.read(run.path).files.items() if _matters(name))
    return hashlib.sha256(json.dumps([names, run.weights]).encode()).hexdigest()


@dataclass
class _Work:
    """Answers to what was found, as text. added: the columns that answers have, once there was one."""

    run: Run
    found: Unlabelled
    writer: RowWriter
    options: Mapping[str, Any]
    added: tuple[str, ...] = ()

    def parts(self, first: int) -> Iterator[tuple[bytes, int, str]]:
        """From input `first` on: text, how many inputs are answered with it, and what those are known again by."""
        size = self.run.task.at_once
        self.found.release()
        with _unwatched(), stage("answering", len(self.found) - first, "inputs") as advance:
            for start in range(first, len(self.found), size):
                part = self.found.part(np.arange(start, min(start + size, len(self.found))))
                yield self._text(part, start), start + len(part.inputs), self.found.digest(part)
                advance(len(part.inputs))
                self.found.release()

    def digests(self, stops: Sequence[int]) -> Iterator[str]:
        """What the inputs up to each of some numbers are known again by."""
        first = 0
        for stop in stops:
            yield self.found.digest(self.found.part(np.arange(first, min(stop, len(self.found)))))
            first = stop

    def end(self) -> bytes:
        return self.writer.end().encode()

    def _text(self, part: Asked, first: int) -> bytes:
        columns = part.beside([self.run.task.answer_rows(answer) for answer in self._answers(part, first)])
        self.added = tuple(columns)[len(part.columns) :]
        text = self.writer.begin(list(columns)) if first == 0 else ""
        return (text + self.writer.rows(columns, first)).encode("utf-8", "replace")

    def _answers(self, part: Asked, first: int) -> list[Answer]:
        options = dict(self.options)
        if "temperature" in options:
            # Each block has a seed of its own: by one for all the n-th texts of every block would be drawn alike.
            options["seed"] = options.get("seed", 0) + first
        elif isinstance(self.run.task, Generates) and "beam" not in options:
            options = LIKELIEST | options
        try:
            return self.run.answers(part.inputs, **options)
        except InputError as error:
            raise DataError(f"{self.found.places.value(first + error.number)}: the input {error.reason}") from None


@contextmanager
def _unwatched() -> Iterator[None]:
    """What is in memory by now is not gone through for garbage again and again, as thousands of answers come and go."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _refuse_same(path: Path, data: str) -> None:
    with suppress(OSError, ValueError):
        if path.exists() and path.samefile(data):
            raise UsageError(f"{path} is the data itself; choose another --out")


def _refuse_other_data(file: PartialFile, work: _Work, data: object) -> None:
    """Refuse to go on where the inputs that are answered already are not those of the data."""
    stops = [part.rows for part in file.parts]
    for part, digest in zip(file.parts, work.digests(stops), strict=True):
        if part.mark != digest or part.rows > len(work.found):
            raise UsageError(
                f"{file.place} was begun with other data than {shown(str(data))}: its first {part.rows:,} inputs are "
                f"not the same; begin anew with --force"
            )


def _matters(name: str) -> bool:
    """Whether answers depend on a file of a run folder; logs grow when a training goes on."""
    return name not in LOGS
