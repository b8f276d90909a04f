"""Files are data, never code: what could run what it reads does not occur in the package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import regard

SOURCE = Path(regard.__file__).parent
BANNED_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "yaml"}
BANNED_CALLS = {"torch.load", "eval", "exec", "yaml.load", "numpy.load", "np.load", "torch.jit.load", "os.system"}


# A lecture is a program: a person asks by its name that it be run, and says no more than `python FILE` would.
RUNS_LECTURES = SOURCE / "lectures" / "execution.py"
BETWEEN_OWN_PROCESSES = SOURCE / "studies" / "pool" / "parcel.py"  # which says what may come there: never a file


def breaches(text: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in BANNED_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in BANNED_MODULES:
            found.append(node.module)
        elif isinstance(node, ast.Call):
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            safe = isinstance(keywords.get("allow_pickle"), ast.Constant) and keywords["allow_pickle"].value is False
            name = ast.unparse(node.func)
            if (name in BANNED_CALLS and not (name.endswith("np.load") and safe)) or "weights_only" in keywords:
                found.append(name)
            if name == "subprocess.run" and "shell" in keywords:
                found.append(name)
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_in_the_package_can_run_what_it_reads(path):
    allowed = {BETWEEN_OWN_PROCESSES: {"pickle"}, RUNS_LECTURES: {"exec", "eval"}}
    assert set(breaches(path.read_text(encoding="utf-8"))) == allowed.get(path, set())


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from pickle import loads", "import torch\ntorch.load('x')", "eval('1')", "exec('1')",
        "import numpy as np\nnp.load('x', allow_pickle=True)", "np.load('x')", "f(weights_only=False)",
        "subprocess.run('x', shell=True)",
    ],
)  # fmt: skip
def test_the_ban_notices(text):
    assert breaches(text)


def test_the_ban_allows_arrays_without_pickle():
    assert breaches("np.load('x', allow_pickle=False)") == []
    assert breaches("model.eval()") == []


def test_training_never_asks_the_wall_clock_or_the_age_of_a_file():
    for path in (SOURCE / "training").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for word in ("time.time(", "datetime", "st_mtime", "getmtime"):
            assert word not in text, f"{path.name}: {word}"
