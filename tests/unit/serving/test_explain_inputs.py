"""Looks at runs of files: what they look at comes inside the request, and no file of the machine is opened."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import regard
from regard.errors import UsageError
from regard.serving.engine.side import Side
from regard.serving.provider import RunProvider

Image = pytest.importorskip("PIL.Image")
HOURS = 24 * 21


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    folder = tmp_path_factory.mktemp("explained")
    rows = [f"{time},{load}\n" for time, load in zip(*table().values(), strict=True)]
    (folder / "load.csv").write_text("time,load\n" + "".join(rows), encoding="utf-8")
    how: dict[str, Any] = {"budget": "2steps", "size": "tiny", "device": "cpu"}
    regard.train("forecaster", str(folder / "load.csv"), out=str(folder / "series"), **how)
    regard.train("captioner", "world:shapes", out=str(folder / "captions"), **how)
    names = {name: folder / name for name in ("series", "captions")}
    provider = RunProvider(lambda: names, "cpu")
    found = Side(provider, lambda message: None)
    yield found
    found.shutdown()
    provider.close()


def table() -> dict[str, list[Any]]:
    """Two columns of a load that has a day."""
    times = np.datetime64("2024-01-01T00:00") + np.arange(HOURS).astype("timedelta64[h]")
    load = 10 + np.sin(np.arange(HOURS) * 2 * np.pi / 24)
    return {"time": [str(time).replace("T", " ") for time in times], "load": load.round(3).tolist()}


def picture() -> str:
    content = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)).save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()


def explained(side: Side, run: str, given: Any, *, html: bool = False, **options: Any) -> Any:
    asked = {"input": given, "view": None, "options": options, "html": html}
    return side._found({"verb": "explain", "run": run, "asked": asked})  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("run", "made"), [("series", table), ("captions", picture)])
def test_a_view_of_what_comes_in_the_request(side: Side, run: str, made: Any) -> None:
    told = explained(side, run, made())
    assert told["panels"]
    assert told["about"]["run"] == run
    assert len(json.dumps(told["about"])) < 1000, "what was given is not handed back"
    assert explained(side, run, made(), html=True).startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("run", "given"),
    [("series", "load.csv"), ("series", ""), ("series", "world:electricity"), ("captions", "a.png"), ("captions", "")],
)
def test_the_name_of_a_file_is_refused(side: Side, run: str, given: str) -> None:
    with pytest.raises(UsageError, match=r"input 1: expected a (table as an object|picture)"):
        explained(side, run, given)


def test_another_input_is_no_file_either(side: Side) -> None:
    with pytest.raises(UsageError, match="opens none that a client names"):
        explained(side, "series", table(), other="load.csv")
