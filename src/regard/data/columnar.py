"""Tables that are no text: Parquet, Arrow and Feather, Excel, and the folders of Hugging Face `datasets`.

They are read by pyarrow and openpyxl (pip install 'regard[tables]'). An Arrow file is mapped; of a Parquet file a
column is read when it is asked for, a group of rows at a time, and kept in a file without a name.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.cell import ArrowColumn, Classed, Typed, cell_of
from regard.data.csv_rows import refuse_columns
from regard.data.packed import Column
from regard.data.source import COMPRESSED, named
from regard.data.table import Lazy
from regard.errors import DataError, UsageError
from regard.storage.regular import open_regular

INFO, SPLITS, STATE = "dataset_info.json", "dataset_dict.json", "state.json"
# The parts of a folder of several data sets by which one is trained, in the order in which they are looked for.
TRAINING = ("train", "training")
Columns = Mapping[str, Column[Any]]


def needed(module: str, what: str) -> Any:
    """A module of the extra `tables`; without it one line says how it is installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UsageError(f"{what} needs {package}, which is not installed; pip install 'regard[tables]'") from None


def read_parquet(path: str, most: int | None = None) -> Columns:
    """The columns of a Parquet file, each read when it is asked for, or the first rows of all."""
    parquet = needed("pyarrow.parquet", "reading Parquet files")
    with _good(path, "Parquet"):
        file = parquet.ParquetFile(path, memory_map=False)
        if most is not None:
            first = next(file.iter_batches(batch_size=most), None)
            found = [] if first is None else [first]
            return arrow_columns(
                needed("pyarrow", "reading Parquet files").Table.from_batches(found, file.schema_arrow)
            )
        names, n_rows, classes = file.schema_arrow.names, file.metadata.num_rows, _classes(file.schema_arrow.metadata)
    refuse_columns(len(names), path)
    found = {name: Lazy(partial(_parquet_column, path, name), n_rows) for name in names}
    return {name: _classed(column, classes.get(name)) for name, column in found.items()}


def read_arrow(path: str, most: int | None = None) -> Columns:  # noqa: ARG001
    """The columns of an Arrow or Feather file, or of a stream of them, mapped where they are not packed."""
    with _good(path, "Arrow"):
        return arrow_columns(_arrow_table(path))


def read_excel(path: str, most: int | None = None) -> tuple[list[str], list[Typed]]:
    """The cells of the first row and the columns below it, of the first sheet of a workbook that has rows."""
    openpyxl = needed("openpyxl", "reading Excel files")
    with _good(path, "Excel"), open_regular(path) as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        rows = next((rows for rows in map(_excel_rows, book.worksheets) if rows is not None), None)
        if rows is None:
            raise DataError(f"{path}: no sheet of it holds rows")
        first = [cell_of(cell) or "" for cell in next(rows)]
        while first and not first[-1]:
            first.pop()
        refuse_columns(len(first), path)
        columns = [Typed() for _ in first]
        for row in islice(rows, most):
            for place, column in enumerate(columns):
                value = row[place] if place < len(row) else None
                column.append(cell_of(value), value)
    return first, columns


def is_saved_dataset(folder: Path) -> bool:
    """Whether a folder is what `datasets` writes with save_to_disk."""
    # A state alone may be another program's, as that of a comparison is.
    stated = (folder / STATE).is_file() and any(folder.glob("*.arrow"))
    return stated or any((folder / name).is_file() for name in (INFO, SPLITS))


def read_saved_dataset(path: str, split: str | None = None) -> Columns:
    """The columns of a folder that `save_to_disk` wrote; of one with several parts, of the training part."""
    folder = Path(path)
    if (folder / SPLITS).is_file():
        folder = folder / _split(path, _json(folder / SPLITS).get("splits", []), split)
    names = [one["filename"] for one in _json(folder / STATE).get("_data_files", [])] if _has(folder, STATE) else []
    files = [folder / name for name in names] or sorted(folder.glob("*.arrow"))
    if not files:
        raise DataError(f"{folder} holds no .arrow files; save the data set again with save_to_disk")
    if any(file.parent != folder for file in files):
        raise DataError(f"{folder / STATE} names files outside of its folder; save the data set again")
    arrow = needed("pyarrow", "reading the folders of Hugging Face datasets")
    with _good(str(folder), "Arrow"):
        whole = arrow.concat_tables([_arrow_table(str(file)) for file in files])
    features = _json(folder / INFO).get("features") if _has(folder, INFO) else None
    columns = arrow_columns(whole)
    return {name: _classed(column, _names_in((features or {}).get(name))) for name, column in columns.items()}


def load_from_hub(address: str, split: str | None = None) -> Columns:
    """The columns of `hf:NAME` or `hf:NAME:CONFIG`, fetched or found by the library of the hub."""
    name, _, config = address.removeprefix("hf:").partition(":")
    if not name:
        raise UsageError("hf: needs the name of a data set, such as hf:imdb")
    try:
        datasets = importlib.import_module("datasets")
    except ImportError:
        raise UsageError(
            f"{address} needs the library of the hub, which is not installed; pip install datasets"
        ) from None
    for noisy in ("huggingface_hub", "datasets"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    try:
        found = datasets.load_dataset(name, config or None)
    except Exception as error:
        reason = (str(error).partition("\n")[0] or type(error).__name__)[:200]
        raise DataError(
            f"{address} cannot be loaded ({reason}); check the name and the network, or load it elsewhere, "
            f"save_to_disk, and give that folder"
        ) from None
    return dataset_columns(found[_split(address, list(found), split)])


def dataset_columns(dataset: Any) -> Columns:
    """The columns of a `datasets.Dataset` as it is seen, classes by their names."""
    dataset = dataset.with_format(None)
    whole = dataset.flatten_indices() if getattr(dataset, "_indices", None) is not None else dataset
    columns = arrow_columns(whole.data.table)
    names = {name: getattr(_inner(feature), "names", None) for name, feature in dataset.features.items()}
    return {name: _classed(column, names.get(name)) for name, column in columns.items()}


def arrow_columns(table: Any) -> Columns:
    """The columns of an Arrow table."""
    refuse_columns(len(table.column_names), "the table")
    classes = _classes(table.schema.metadata)
    found = {name: ArrowColumn(table.column(name)) for name in table.column_names}
    return {name: _classed(column, classes.get(name)) for name, column in found.items()}


def _parquet_column(path: str, name: str) -> Column[Any]:
    parquet, column = needed("pyarrow.parquet", "reading Parquet files"), Typed()
    with _good(path, "Parquet"):
        for batch in parquet.ParquetFile(path).iter_batches(columns=[name]):
            for value in batch.column(0).to_pylist():
                column.append(cell_of(value), value)
    return column


def _arrow_table(path: str) -> Any:
    arrow, ipc = needed("pyarrow", "reading Arrow files"), needed("pyarrow.ipc", "reading Arrow files")
    if Path(path).suffix.lower() in COMPRESSED:
        raise DataError(f"{path} is packed; unpack it: Arrow files pack their own columns")
    source = arrow.memory_map(path)
    try:
        return ipc.open_file(source).read_all()
    except arrow.ArrowInvalid:
        source.seek(0)
        return ipc.open_stream(source).read_all()


def _excel_rows(sheet: Any) -> Iterator[tuple[Any, ...]] | None:
    rows = (row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row))
    first = next(rows, None)
    if first is None:
        return None

    def every() -> Iterator[tuple[Any, ...]]:
        yield first
        yield from rows

    return every()


def _split(path: str, names: list[str], wanted: str | None) -> str:
    """The part of a data set that is meant."""
    chosen = wanted or next((name for name in TRAINING if name in names), names[0] if len(names) == 1 else None)
    if chosen not in names:
        raise UsageError(f"{path} has the parts {', '.join(names)}: say which, {path}#NAME")
    return chosen


def _classes(metadata: Any) -> dict[str, list[str]]:
    """The names of classes that a file of Hugging Face tells beside its columns."""
    try:
        told = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    found = {name: _names_in(feature) for name, feature in told.items()}
    return {name: names for name, names in found.items() if names}


def _names_in(feature: Any) -> list[str] | None:
    inner = feature.get("feature", feature) if isinstance(feature, dict) else None
    names = inner.get("names") if isinstance(inner, dict) else None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def _inner(feature: Any) -> Any:
    return getattr(feature, "feature", feature)


def _classed(column: Column[Any], names: list[str] | None) -> Column[Any]:
    return column if not names or isinstance(column, Classed) else Classed(column, names)


def _has(folder: Path, name: str) -> bool:
    return (folder / name).is_file()


def _json(file: Path) -> dict[str, Any]:
    from regard.storage.regular import read_regular

    with named(str(file)):
        data = read_regular(file, 1 << 26)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{file} is no good JSON; save the data set again with save_to_disk")
    return found


@contextmanager
def _good(path: str, kind: str) -> Iterator[None]:
    """Whatever a damaged file leads its library to, as one line."""
    with named(path):
        try:
            yield
        except (DataError, UsageError, MemoryError, FileNotFoundError):
            raise
        except Exception as error:
            reason = str(error).partition("\n")[0][:200] or type(error).__name__
            raise DataError(f"{path} cannot be read as {kind} ({reason}); make or copy it again") from None


READERS: dict[str, Callable[[str, int | None], Columns]] = {"parquet": read_parquet, "arrow": read_arrow}
