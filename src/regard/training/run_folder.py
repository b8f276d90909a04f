"""The run folder: what a run leaves behind, written so that a reader never meets half of anything.

    run/
      .lock               held by the one writer for as long as it lives
      config.json         model, data, training settings, versions
      tokenizer.json
      model.safetensors   the weights to use: the best on held-out data, or the last without any
      metrics.jsonl       one line a record while training
      calibration.json    of a run that tells classes: the temperature of its chances
      before_refit.safetensors   of one that has learnt its held-out part at last: before_refit.py
      samples.txt         what the model wrote while training
      track/              what trackers were told, where they keep it here
      checkpoints/STEP/   everything needed to go on, see checkpoint.py
      manifest.json       size and SHA-256 of the files above

A file is replaced in four steps, and a kill between any two leaves a folder that verifies: (1) the new file is written
beside the old one and synced; (2) the manifest says that the file is the new one or still the old one; (3) the new file
takes the name; (4) the manifest says that it is the new one. Logs grow: they are in the manifest of a run that ended.
"""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError, LockedError, UsageError, blamed_on
from regard.storage import disk, manifest
from regard.storage.lock import LOCK, only_writer, writer_of
from regard.storage.manifest import FileRecord, Manifest, canonical
from regard.training.saved_config import checked_config
from regard.training.track import FOLDER as TRACKED

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
WEIGHTS = "model.safetensors"
METRICS = "metrics.jsonl"
SAMPLES = "samples.txt"
LOGS = (METRICS, SAMPLES)
CALIBRATION = "calibration.json"  # of the weights as they are: a training that goes on takes it out of the manifest
CHECKPOINTS = disk.CHECKPOINTS
TEMPORARY = (".tmp-", ".trash-")


class RunFolder:
    """A run folder that this process alone may write. Made by `claim`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / CHECKPOINTS
        self.manifest = manifest.read(path) if (path / manifest.NAME).exists() else Manifest()
        with disk.reported("read", path):
            for name in LOGS:
                if os.path.lexists(path / name) and not disk.is_plain_file(path / name):
                    raise CheckpointError(f"{path / name}: is no regular file; move it away")
            self._settle()

    @property
    def is_new(self) -> bool:
        return CONFIG not in self.manifest.files

    def config(self) -> dict[str, Any]:
        """What config.json says, checked against the manifest."""
        return read_config(self.path)

    def publish(self, files: Mapping[str, Iterable[Any]], without: Iterable[str] = ()) -> None:
        """Replace files so that each is, at every moment, wholly old or wholly new. without: files no longer listed."""
        temporary = {name: self.path / f".tmp-{os.getpid()}-{name}" for name in files}
        with disk.reported("write", self.path):
            self._settle()
            for path in temporary.values():
                disk.discard(path)
            try:
                written = {name: manifest.write_file(temporary[name], chunks) for name, chunks in files.items()}
                self._announce(written)
                for name in files:
                    disk.replace(temporary[name], self.path / name)
                disk.sync_folder(self.path)
                left = {name: record for name, record in self.manifest.files.items() if name not in set(without)}
                self._write_manifest({**left, **written})
            except BaseException:
                for path in temporary.values():
                    disk.discard(path)
                raise

    def open_logs(self) -> None:
        """Take the logs, and what was said of an ended run, out of the manifest: from now on they change."""
        files = {name: record for name, record in self.manifest.files.items() if name not in (*LOGS, CALIBRATION)}
        if files.keys() != self.manifest.files.keys() or self.manifest.facts:
            self._write_manifest(files, {})

    def rewrite(self, name: str, chunks: Iterable[Any]) -> None:
        """Replace a file that the manifest does not list: itself, or a log that grows."""
        temporary = self.path / f".tmp-{os.getpid()}-{name}"
        with disk.reported("write", self.path):
            disk.discard(temporary)
            try:
                manifest.write_file(temporary, chunks)
                disk.replace(temporary, self.path / name)
                disk.sync_folder(self.path)
            except BaseException:
                disk.discard(temporary)
                raise

    def close_logs(self, facts: Mapping[str, Any]) -> None:
        """Put the logs, now whole, into the manifest with what is to be said of the run."""
        with disk.reported("write", self.path):
            logs = {name: manifest.hash_file(self.path / name) for name in LOGS if (self.path / name).exists()}
            self._write_manifest({**self.manifest.files, **logs}, facts)

    def _settle(self) -> None:
        """Find out which of old and new a file is whose replacement was cut short."""
        files = {name: _actual(self.path / name, record) for name, record in self.manifest.files.items()}
        self.manifest = replace(self.manifest, files={name: record for name, record in files.items() if record})

    def _announce(self, written: Mapping[str, FileRecord]) -> None:
        """Say that each file is the new one, or still what it was."""
        old = self.manifest.files
        coming = {name: replace(record, replacing=True, previous=old.get(name)) for name, record in written.items()}
        self._write_manifest({**old, **coming})

    def _write_manifest(self, files: Mapping[str, FileRecord], facts: Mapping[str, Any] | None = None) -> None:
        new = Manifest(dict(files), self.manifest.facts if facts is None else facts)
        self.rewrite(manifest.NAME, [new.to_bytes()])
        self.manifest = new


@contextmanager
def claim(path: Path) -> Iterator[RunFolder]:
    """The run folder at `path`, made when there is none, for this process alone until the block ends.

    What a dead writer left unfinished is removed: the lock proves that it is dead.
    """
    with disk.reported("make the run folder", path):
        refuse_file(path)
        _refuse_foreign(path)
    with only_writer(path, frozenset({CHECKPOINTS})):
        with disk.reported("write", path):
            _refuse_links(path)
            if not (path / CHECKPOINTS).exists():
                disk.make_folder(path / CHECKPOINTS)
                disk.sync_folder(path)
            for folder in (path, path / CHECKPOINTS):
                for name in disk.names(folder):
                    if name.startswith(TEMPORARY):
                        disk.remove_tree(folder / name)
        yield RunFolder(path)


def read_config(path: Path) -> dict[str, Any]:
    """config.json of a run, checked against the manifest, every value of the type that its reader expects."""
    content = manifest.read_json(verified(path, CONFIG))
    with blamed_on(path / CONFIG):
        return checked_config(content)


def verified_weights(path: Path) -> Path:
    """The file of the weights to use, checked against the manifest."""
    weights_hash(path)
    return verified(path, WEIGHTS)


def weights_hash(path: Path) -> str:
    """What the manifest says of the weights, by which a run that has changed is told; none yet: refused."""
    require_run(path)
    if (record := manifest.read(path).files.get(WEIGHTS)) is None:
        _refuse_begun(path)
        raise CheckpointError(f"{path}: has no weights yet; continue the training with --resume")
    return record.sha256


def verified_tokenizer(path: Path) -> Path:
    """The file of the tokenizer, checked against the manifest."""
    return verified(path, TOKENIZER)


def has(path: Path, name: str) -> bool:
    """Whether the manifest of a run lists a file of that name."""
    require_run(path)
    return name in manifest.read(path).files


def verify_run(path: Path) -> dict[str, str]:
    """Every file of a run and of its checkpoints, with "ok" or what is wrong. Nothing is raised for a damaged file."""
    require_run(path)
    report = {}
    for folder in (path, *_checkpoint_folders(path)):
        try:
            names = list(manifest.read(folder).files)
        except CheckpointError as error:
            report[(folder / manifest.NAME).relative_to(path).as_posix()] = str(error)
            continue
        for name in names:
            report[(folder / name).relative_to(path).as_posix()] = _outcome(folder, name)
    return report


def require_run(path: Path) -> None:
    """Refuse what is no run folder."""
    if path.is_file():
        raise CheckpointError(
            f"{path}: is a file, not a run folder; regard train {shlex.quote(str(path))} makes a run of a text"
        )
    if not path.is_dir():
        raise CheckpointError(f"{path}: no such run folder{near_runs(path)}")
    if not (path / manifest.NAME).exists():
        _refuse_begun(path)
        inside = [path / name for name in disk.names(path) if (path / name / manifest.NAME).exists()]
        named = f"; name a run in it, such as {inside[0]}" if inside else ""
        raise CheckpointError(f"{path}: not a run folder, it has no {manifest.NAME}{named}")


def near_runs(path: Path) -> str:
    """A hint with the run whose name is nearest, among those beside a folder that is not there and under ./runs."""
    found = {}
    for folder in (path.parent, Path("runs")):
        with suppress(OSError):
            found |= {name: folder / name for name in disk.names(folder) if (folder / name / manifest.NAME).exists()}
    close = difflib.get_close_matches(path.name, found, n=1)
    return f", did you mean {found[close[0]]}?" if close else ""


def _refuse_begun(path: Path) -> None:
    """Say of a run that has nothing to use yet who is training it, if somebody is."""
    holder = writer_of(path)
    if holder is not None:
        raise LockedError(f"{path}: {holder} is training it, and there are no weights to use yet; wait a little")


def refuse_file(path: Path) -> None:
    """Refuse a place for a run that is a file or lies below one."""
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise UsageError(f"{part}: is a file, not a folder; choose another --out")


def json_file(content: Any) -> list[bytes]:
    """The chunks of a JSON file, for `publish`."""
    return [canonical(content)]


def verified(path: Path, name: str) -> Path:
    """A file checked against the manifest, twice when a running training replaced it while it was read."""
    require_run(path)
    before = manifest.read(path)
    try:
        manifest.verify(path, [name], extras=False)
    except CheckpointError:
        if manifest.read(path) == before:
            raise
        manifest.verify(path, [name], extras=False)
    return path / name


def _outcome(folder: Path, name: str) -> str:
    try:
        manifest.verify(folder, [name], extras=False)
    except CheckpointError as error:
        return str(error)
    return "ok"


def checkpoint_steps(path: Path) -> list[int]:
    """Steps of which a run has a checkpoint, whole or not, in order."""
    return sorted(int(name) for name in disk.names(path / CHECKPOINTS) if name.isdigit())


def _checkpoint_folders(path: Path) -> list[Path]:
    return [path / CHECKPOINTS / name for name in disk.names(path / CHECKPOINTS) if name.isdigit()]


def _actual(path: Path, record: FileRecord) -> FileRecord | None:
    """The record of what is on disk while `record` leaves two possibilities; None when nothing came to be there."""
    if not record.replacing:
        return record
    if record.previous is None and not path.exists():
        return None
    is_old = record.previous is not None and path.exists() and manifest.hash_file(path) == record.previous
    return record.previous if is_old else replace(record, replacing=False, previous=None)


def _refuse_links(path: Path) -> None:
    """Refuse what would lead a writer out of the folder."""
    for name in (CHECKPOINTS, TRACKED):
        if os.path.lexists(path / name) and not disk.is_plain_folder(path / name):
            raise CheckpointError(f"{path / name}: is a link or no folder; move it away")


def _refuse_foreign(path: Path) -> None:
    """Leave a folder of other things alone. Before its first manifest a run has nothing but what is named here."""
    names = disk.names(path)
    own = (LOCK, CHECKPOINTS, TRACKED)
    foreign = [name for name in names if name not in own and not name.startswith(TEMPORARY)]
    if foreign and manifest.NAME not in names:
        raise UsageError(f"{path}: not empty and not a run folder (it has {foreign[0]}); choose another --out")
