"""A held-out part that is the training file itself measures how much was learnt by heart, and nothing else."""

from __future__ import annotations

from pathlib import Path

from regard.data.settings import DataSettings
from regard.data.source import fingerprint, shown
from regard.data.table import Table
from regard.data.tabular import is_held, open_table
from regard.errors import UsageError


def refuse_training_file(data: DataSettings) -> None:
    """Refuse `data.valid` where it is the file that is learnt from, by its name or by its content."""
    if is_held(data.path) and is_held(data.valid):
        if not _alike(open_table(data.path), open_table(data.valid)):
            return
        raise UsageError(
            "valid is the training data itself, or a copy of it: what is learnt would be tested by what it was learnt "
            "from; leave valid out, so that a part is held out, or give other data"
        )
    train, valid = Path(data.path).expanduser(), Path(data.valid).expanduser()
    if not (train.exists() and valid.exists()):
        pairs = zip(data.path.split(","), data.valid.split(","), strict=False)
        both = [(Path(one), Path(other)) for one, other in pairs if "," in data.path and "," in data.valid]
        if not both or not all(one.is_file() and other.is_file() and _same(one, other) for one, other in both):
            return
    elif not _same(train, valid):
        return
    raise UsageError(
        f"--valid {data.valid} is {shown(data.path)} itself, or a copy of it: what is learnt would be tested by what "
        f"it was learnt from; leave --valid out, so that a part is held out (hash:0.1), or give another file"
    )


def _alike(one: Table, other: Table) -> bool:
    """Whether two tables have the same cells."""
    if len(one) != len(other) or one.names != other.names:
        return False
    return all(a == b for name in one.names for a, b in zip(one.cells[name], other.cells[name], strict=True))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file or folder, or to the same bytes."""
    if one.samefile(other):
        return True
    if not (one.is_file() and other.is_file()) or one.stat().st_size != other.stat().st_size:
        return False
    return fingerprint(str(one)) == fingerprint(str(other))
