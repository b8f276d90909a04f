"""What a program holds in memory: every kind of table comes to the same cells, and what is none gets one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import datasets
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import torch

from regard.data.tabular import table_of
from regard.errors import RegardError

TEXTS, LABELS = ["größer", "a, b\nc", "x"], ["ja", "nein", "ja"]
COLUMNS = {"text": TEXTS, "label": LABELS}
NAMED: dict[str, Callable[[], Any]] = {
    "a mapping of columns": lambda: COLUMNS,
    "arrays": lambda: {name: np.array(values) for name, values in COLUMNS.items()},
    "pandas": lambda: pandas.DataFrame(COLUMNS),
    "polars": lambda: polars.DataFrame(COLUMNS),
    "Arrow": lambda: pyarrow.table(COLUMNS),
    "a data set": lambda: datasets.Dataset.from_dict(COLUMNS),
    "a data set that is streamed": lambda: datasets.Dataset.from_dict(COLUMNS).to_iterable_dataset(),
    "mappings": lambda: [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)],
    "an iterator": lambda: ({"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)),
}


def cells(data: Any) -> dict[str, list[str | None]]:
    return {name: list(column) for name, column in table_of(data).cells.items()}


@pytest.mark.parametrize("kind", NAMED)
def test_tables_of_every_kind_have_the_same_cells(kind: str):
    assert cells(NAMED[kind]()) == COLUMNS


@pytest.mark.parametrize(
    "data",
    [TEXTS, tuple(TEXTS), iter(TEXTS), np.array(TEXTS), pandas.Series(TEXTS), polars.Series(TEXTS)],
    ids=["list", "tuple", "iterator", "array", "pandas", "polars"],
)
def test_texts_alone_are_a_column_of_that_name(data: Any):
    assert cells(data) == {"text": TEXTS}


def test_tuples_are_columns_without_names_and_lists_in_them_are_kept_as_lists():
    table = table_of(list(zip(TEXTS, LABELS, strict=True)))
    assert (table.named, cells(table)) == (False, {"1": TEXTS, "2": LABELS})
    assert cells([(["a", "b c"], ["D", "N"])]) == {"1": ['["a", "b c"]'], "2": ['["D", "N"]']}


def test_what_is_missing_is_no_text():
    assert cells(pandas.Series(["a", np.nan, None])) == {"text": ["a", None, None]}
    assert cells([{"text": "a"}, {"label": "x"}]) == {"text": ["a", None], "label": [None, "x"]}


def test_times_of_an_index_and_of_arrays_are_times():
    times = np.array(["2024-01-31T22", "2024-01-31T23"], "datetime64[ns]")
    expected = ["2024-01-31 22:00:00", "2024-01-31 23:00:00"]
    assert cells({"when": times}) == {"when": expected}
    frame = pandas.DataFrame({"price": [1.5, 2.0]}, index=pandas.DatetimeIndex(times))
    assert cells(frame) == {"time": expected, "price": ["1.5", "2"]}
    assert list(cells(frame.rename_axis("hour"))) == ["hour", "price"]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "found None"),
        (5, "found the number 5"),
        (b"bytes", "found bytes"),
        ("a text", "found the text 'a text'"),
        (object(), "found an object"),
        ([], "holds no rows"),
        ({}, "holds no rows"),
        ({"text": []}, "holds no rows"),
        ([1, 2], "row 1: expected a text, a mapping or a tuple, found the number 1"),
        ([None, None], "row 1: expected a text, a mapping or a tuple, found None"),
        (["a", ("b", "c")], "row 2: expected a text as in the first row, found a tuple"),
        ([("a", "x"), ("b",)], "row 2: 1 values, and the first row has 2"),
        ([{"a": 1}, "b"], "row 2: expected a mapping as in the first row, found the text 'b'"),
        ({"text": "abc"}, "text: expected the values of a column in a list, found the text 'abc'"),
        ({"a": [1], "b": [1, 2]}, "not equally long: a 1, b 2"),
        (np.zeros((2, 3)), "found 2 x 3; give a column of it"),
        (torch.zeros(3), "found a tensor"),
        ((TEXTS, LABELS), r'give them by name, such as \{"text": X, "label": y\}, or as list\(zip\(X, y\)\)'),
        (datasets.DatasetDict(train=datasets.Dataset.from_dict(COLUMNS)), "train is a table of its own"),
        (pandas.DataFrame([["a", "b"]], columns=["x", "x"]), "2 columns called 'x'"),
    ],
)
def test_what_is_no_table_gets_one_line(data: Any, told: str):
    with pytest.raises(RegardError, match=told) as caught:
        table_of(data, "data")
    assert "\n" not in str(caught.value)


def test_a_list_that_changes_afterwards_changes_no_table():
    texts, labels = list(TEXTS), list(LABELS)
    alone, together = table_of(texts), table_of({"text": texts, "label": labels})
    texts.clear()
    labels[0] = "other"
    assert cells(alone) == {"text": TEXTS}
    assert cells(together) == COLUMNS


def test_a_column_of_a_frame_that_nobody_reads_is_not_touched():
    class Frame:
        columns, shape = ("text", "heavy"), (3, 2)

        def __len__(self) -> int:
            return 3

        def __getitem__(self, name: str) -> list[str]:
            assert name == "text"
            return TEXTS

    assert list(table_of(Frame()).cells["text"]) == TEXTS
