"""Data is looked at as the csv module reads it, whatever stands in it, and before anything that learns is imported."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.parity import odd_so_far
from regard.run.inspect import inspect_data
from regard.run.settings import Origin
from regard.tasks import task_named
from regard.tasks.kinds import KINDS

ROWS = [(f'she said "no {n}",\nand left; 1|2', f"class {n % 3}") for n in range(40)]
CODE = """
import contextlib, io, json, sys
from regard.cli.main import main
told = {}
for path in sys.argv[1:]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["inspect", path, "--json"]) == 0, path
    told[path] = json.loads(out.getvalue())["task"]
print(json.dumps([told, "torch" in sys.modules]))
"""


def looked_at(path: Path, **said: str):
    changes = {"data.path": Origin(str(path), "test")}
    return inspect_data(changes | {f"data.{key}": Origin(value, "test") for key, value in said.items()})


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_rows_are_counted_and_shown_as_the_csv_module_reads_them(mark: str, end: str, start: str, tmp_path):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=mark, lineterminator=end, quoting=csv.QUOTE_ALL)
    rows = [(one.replace("\n", end), label) for one, label in ROWS]
    writer.writerows([("text", "label"), *rows])
    path = tmp_path / "any.csv"
    path.write_bytes((start + text.getvalue() + end).encode())
    found = looked_at(path)
    assert (found.task, found.read, found.facts["classes"]) == ("labelled", len(rows), 3)
    # A carriage return that ends the lines of a file is a line's end everywhere in it.
    first = rows[0][0].replace("\r", "\n") if end == "\r" else rows[0][0]
    assert found.first == {"text": first, "label": "class 0"}
    assert (found.train or 0) + (found.valid or 0) == len(rows)


def test_what_is_looked_at_is_what_the_task_itself_would_read(tmp_path):
    path = tmp_path / "any.csv"
    path.write_text("text,label\n" + "".join(f'"a, {n}",x{n % 2}\n' for n in range(60)), encoding="utf-8")
    found = looked_at(path, valid="hash:0.2")
    changes = {"data.path": str(path), "data.task": "labelled", "data.valid": "hash:0.2", "model.name": "linear"}
    assert inspect_data({key: Origin(value, "test") for key, value in changes.items()}) == found
    task = task_named("labelled")
    dataset = task.ready(task_settings(path), 0)
    assert dataset.account is not None
    assert (dataset.account.train, dataset.account.valid) == (found.train, found.valid)
    assert replace(dataset.account, held_out_by=found.held_out_by) == found


def task_settings(path: Path):
    from regard.data.settings import DataSettings

    return DataSettings(path=str(path), task="labelled", valid="hash:0.2")


def test_torch_is_not_imported_to_look_at_data(tmp_path):
    files = {
        "labelled.csv": "text,label\n" + "good film,pos\nbad film,neg\n" * 30,
        "pairs.tsv": "".join(f"one {n} two\tein {n} zwei\n" for n in range(40)),
        "rated.csv": "text,score\n" + "".join(f"a film of {n} parts,{n / 7:.2f}\n" for n in range(60)),
        "several.csv": "text,topics\n" + "a war at sea,war|sea\na day at home,home\n" * 30,
        "tags.conll": "".join(f"the\tDET\ncat{n}\tNOUN\n\n" for n in range(30)),
        "plain.txt": "".join(f"a line of text, {n}\n" for n in range(400)),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", CODE, *files], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told, has_torch = json.loads(done.stdout)
    kinds = ("labelled", "pairs", "regression", "multilabel", "tagged", "text")
    assert (tuple(told.values()), has_torch) == (kinds, False)


def test_every_built_in_task_has_its_kind():
    for name, kind in KINDS.items():
        assert isinstance(task_named(name), kind)


@given(st.lists(st.booleans(), max_size=400))
def test_flags_are_counted_by_their_parity(flags):
    assert odd_so_far(np.array(flags, bool)).tolist() == [bool(sum(flags[: n + 1]) % 2) for n in range(len(flags))]
