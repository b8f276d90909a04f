"""Texts with numbers from tables as people have them: what is told from the data, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.rated import read_rated
from regard.errors import DataError, UsageError
from regard.tasks.kind import kind_of

TEXTS = [f"a room with {n} windows and a view" for n in range(60)]
PRICES = [f"{100 + 7.25 * n:.2f}" for n in range(60)]


def table(path: Path, **columns: list[str]) -> str:
    rows = ["\t".join(columns), *("\t".join(row) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("numbers", "task"),
    [
        (PRICES, "regression"),
        ([str(n % 5 + 1) for n in range(60)], "labelled"),  # stars are classes unless somebody says otherwise
        ([f"{n % 3 / 2}" for n in range(60)], "labelled"),  # and so are few halves
    ],
)
@pytest.mark.parametrize("name", ["label", "price"])
def test_many_decimal_numbers_are_numbers_and_few_or_whole_ones_are_classes(
    numbers: list[str], task: str, name: str, tmp_path: Path
):
    assert kind_of(table(tmp_path / "rooms.tsv", text=TEXTS, **{name: numbers})) == task


def test_columns_are_found_by_name_and_by_look_and_a_count_of_rows_is_no_target(tmp_path: Path):
    count = [str(n) for n in range(60)]
    found = read_rated(table(tmp_path / "rooms.tsv", id=count, advert=TEXTS, town=["Bonn"] * 60, rent=PRICES))
    assert found.settings == {"text": "advert", "number": "rent"}
    assert (found[1].text, found[1].number, found[1].where) == (TEXTS[1], 107.25, f"{tmp_path}/rooms.tsv, line 3")
    assert found.account is not None
    assert found.account.ignored == ["id", "town"]


def test_whole_numbers_are_read_where_their_column_is_named(tmp_path: Path):
    file = table(tmp_path / "stars.tsv", text=TEXTS, stars=[str(n % 5) for n in range(60)], year=["2001"] * 60)
    assert [one.number for one in read_rated(file)[:3]] == [0.0, 1.0, 2.0]
    assert read_rated(file, number="year")[0].number == 2001.0
    assert read_rated(file, text="1", number="3")[0].number == 2001.0


@pytest.mark.parametrize("bad", ["cheap", "inf", "1_000", "3,5", "12 EUR"])
def test_what_is_no_number_is_refused_with_its_line(bad: str, tmp_path: Path):
    file = table(tmp_path / "rooms.tsv", text=TEXTS, price=[*PRICES[:4], bad, *PRICES[5:]])
    with pytest.raises(DataError, match=rf"line 6: '{bad}' in column 'price' is no finite number such as 3.5"):
        read_rated(file, number="price")


def test_missing_numbers_are_refused_or_dropped_and_counted(tmp_path: Path):
    file = table(tmp_path / "rooms.tsv", text=TEXTS, price=["NaN", "", *PRICES[2:]])
    with pytest.raises(DataError, match=r"line 2: no number in column 'price' .* 2 of 60 rows lack it"):
        read_rated(file)
    found = read_rated(file, missing="drop")
    assert (len(found), found[0].text) == (58, TEXTS[2])


def test_what_cannot_be_told_names_the_columns_and_the_setting(tmp_path: Path):
    with pytest.raises(UsageError, match=r"several columns hold numbers; .* data.number=NAME"):
        read_rated(table(tmp_path / "a.tsv", text=TEXTS, rent=PRICES, size=PRICES))
    with pytest.raises(UsageError, match=r"no column holds numbers"):
        read_rated(table(tmp_path / "b.tsv", text=TEXTS, town=["Bonn"] * 60))
    with pytest.raises(UsageError, match=r"several columns may be the text"):
        read_rated(table(tmp_path / "c.tsv", one=TEXTS, other=TEXTS, rent=PRICES))
    with pytest.raises(UsageError, match="are both column 'rent'"):
        read_rated(table(tmp_path / "d.tsv", text=TEXTS, rent=PRICES), text="rent", number="rent")
