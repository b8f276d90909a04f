"""The wheel as a user's type checker sees it: it says that it is typed, and the verbs have the types of the docs."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import regard
from regard import Run
from regard.data.records import Records
from regard.decoding.scored_text import ScoredText
from regard.run.picture import Picture
from regard.studies.comparison import Comparison
from regard.tasks.forecast import Forecast
from regard.tasks.verbs import Answer, Report

PROJECT = Path(__file__).parents[1]
SCRIPT = """
import pandas
import pyarrow
import regard

run = regard.train("linear", [("a fine film", "good")], quiet=True, tokens="words")
regard.train("linear", pandas.DataFrame({"text": ["a"], "label": ["b"]}))
regard.train("linear", pyarrow.table({"text": ["a"]}))
regard.train("linear", (text for text in ["a"]))
reveal_type(run)
reveal_type(regard.load("runs/linear"))
reveal_type(run.predict(["a"]))
reveal_type(run.predict_proba(["a"]))
reveal_type(run.classes)
reveal_type(run.embed(["a"], pooling="last"))
reveal_type(run.encode("a"))
reveal_type(run.generate("a"))
reveal_type(run.generate(["a", "b"]))
reveal_type(run.evaluate([("a", "b")]))
reveal_type(run.score("a").log_prob)
reveal_type(run.metrics)
reveal_type(run.plot())
reveal_type(run.to("cpu"))
reveal_type(run.save("copy"))
reveal_type(regard.compare(["ngram"], ["a"]))
run.embed(["a"], pooling="middle")
regard.train("linear", 5)
regard.train("linear", out=5)
"""
REVEALED = [
    *("Run", "Run", "list[Any]", "ndarray", "list[str]", "ndarray", "Tensor", "str", "list[str]", "Report", "float"),
    *("Records", "Picture", "Run", "Path", "Comparison"),
]


def test_everything_that_a_user_meets_says_what_it_is():
    met = (Run, Report, Answer, Comparison, ScoredText, Forecast, Records, Picture, regard.train, regard.compare)
    silent = [one.__qualname__ for one in met if not inspect.getdoc(one)]
    for one in met[:-2]:
        members = {name: value for name, value in inspect.getmembers(one) if not name.startswith("_")}
        own = {name: value for name, value in members.items() if callable(value) or isinstance(value, property)}
        silent += [f"{one.__name__}.{name}" for name, value in own.items() if not inspect.getdoc(value)]
    assert silent == []


@pytest.mark.slow
def test_a_program_that_uses_the_wheel_is_checked_by_its_types(tmp_path: Path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert "regard/py.typed" in packed.namelist()
        packed.extractall(tmp_path / "site")
    (tmp_path / "user.py").write_text(SCRIPT, encoding="utf-8")
    settings = {"include": ["user.py"], "extraPaths": ["site"], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    asked = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(tmp_path)]
    done = subprocess.run(asked, capture_output=True, timeout=120)
    told = json.loads(done.stdout)["generalDiagnostics"]
    revealed = [one["message"].rsplit(' is "', 1)[1] for one in told if one["severity"] == "information"]
    assert [text.partition("[")[0] if text.startswith("ndarray") else text.rstrip('"') for text in revealed] == REVEALED
    wrong = [(one["range"]["start"]["line"], one["rule"]) for one in told if one["severity"] == "error"]
    last = len(SCRIPT.splitlines())
    assert wrong == [(line, "reportArgumentType") for line in range(last - 3, last)], "and nothing else is refused"
