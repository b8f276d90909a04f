"""A signal in any phase of any verb: a documented exit code at once, nothing said that is wrong, nothing left behind.

A run folder is absent, whole, or goes on with --resume. Moments are counted, so that every run of the test is the same.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from verb_nursery import Ended, Request, to_line

from regard.storage import manifest
from regard.training import checkpoint, run_folder

HERE = Path(__file__).parent
SOURCE = Path(checkpoint.__file__).parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AT_ONCE = 2.0  # the processor's seconds between a signal and the end
TEXT = "".join(
    f"the {one} sat on the {two} and sang to the {three} .\n"
    for one, two, three in itertools.product(("cat", "dog", "bird", "fox"), ("mat", "log", "hill"), ("hen", "cow"))
)
TINY = ("--size", "tiny", "--device", "cpu", "--set", "train.length=16", "--set", "train.batch_size=4")
TRAIN = ("train", "my.txt", "--out", "new", "--budget", "6steps", "--set", "train.evaluate_every=2", *TINY)
COUNT = ("train", "my.txt", "--model", "ngram", "--out", "new", "--memory", "16M")
WHILE_TRAINING = {"step": (1, 4), "evaluation": (1, 3), "operation": (1, 30)}
WORLDS = {
    "pairs": "translation?train=30&valid=4",
    "captions": "shapes?train=12&valid=8",
    "labelled": "reviews?train=30&valid=6",
    "tagged": "tags?train=20&valid=4",
    "series": "electricity?train=21&valid=3",
    "masked": "stories?train=20&valid=3",
}
Ask = Callable[..., Ended]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and nothing else; the children's temporary files go beside it."""
    (tmp_path_factory.getbasetemp() / "children").mkdir()
    place = tmp_path_factory.mktemp("signals")
    (place / "my.txt").write_text(TEXT, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def nursery(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """A function that runs a command in a child and tells how it ended."""
    changes = {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(HERE)]), "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    changes["TMPDIR"] = str(tmp_path_factory.getbasetemp() / "children")
    process = subprocess.Popen(
        [sys.executable, str(HERE / "verb_nursery.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | changes,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(*words: str, moment: str = "", n: int = 1, number: int = 0) -> Ended:
        process.stdin.write(to_line(Request(words, str(place), moment, n, number)))
        process.stdin.flush()
        ended = Ended(**json.loads(process.stdout.readline()))
        assert "Traceback" not in ended.err, ended.err
        assert "a bug of regard" not in ended.err, ended.err
        left = [name for name in os.listdir(changes["TMPDIR"]) if not name.startswith("torch")]
        assert left == []
        return ended

    yield ask
    process.stdin.close()
    process.wait(timeout=60)


@pytest.fixture(scope="module")
def runs(nursery: Ask, place: Path) -> Path:
    """A tiny run of each of two families, to be used."""
    for words in ((*TRAIN[:2], "--out", "gpt", "--budget", "2steps", *TINY), (*COUNT[:4], "--out", "counted")):
        assert nursery(*words).code == 0
    return place


@pytest.fixture
def new(place: Path) -> Iterator[Path]:
    """The folder of a run that a test may make."""
    before = set(place.iterdir())
    yield place / "new"
    for made in set(place.iterdir()) - before - {place / name for name in (".note", ".out", ".err")}:
        subprocess.run(["rm", "-rf", str(made)], check=True, timeout=60)


def require_end(ended: Ended, number: signal.Signals, *, saves: bool = False) -> None:
    """The signal came, and the end with it."""
    assert ended.seconds is not None, "the moment never came"
    assert ended.seconds < AT_ONCE
    assert ended.code == (75 if saves else 128 + number), (ended.code, ended.err)
    if saves:
        assert ended.err.splitlines()[-1].startswith("regard: new: stopped by ")
        assert ended.err.splitlines()[-1].endswith("regard train --resume --out new")
    else:
        assert "error" not in ended.err


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("moment", ["start", "prepare"])
def test_a_training_that_has_not_begun_leaves_no_folder(nursery: Ask, new: Path, moment: str, number: signal.Signals):
    require_end(nursery(*TRAIN, moment=moment, number=number), number)
    assert not new.exists()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("verb", ["bench", "list", "new", "show"])
def test_a_command_that_has_not_begun_says_nothing(nursery: Ask, verb: str):
    ended = nursery(verb, moment="start", number=signal.SIGTERM)
    require_end(ended, signal.SIGTERM)
    assert (ended.out, ended.err) == ("", "")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    ("moment", "n"),
    [("step", 1), ("step", 4), ("evaluation", 1), ("evaluation", 3), ("operation", 1), ("operation", 30)],
)
def test_a_training_saves_and_can_be_resumed(nursery: Ask, new: Path, moment: str, n: int, number: signal.Signals):
    require_end(nursery(*TRAIN, moment=moment, n=n, number=number), number, saves=True)
    manifest.verify(new, extras=False)
    assert checkpoint.newest(new / "checkpoints", fall_back=False)[0] is not None
    assert not [name for name in [*os.listdir(new), *os.listdir(new / "checkpoints")] if name.startswith(".tmp")]
    if number == signal.SIGHUP:
        resumed = nursery("train", "--resume", "--out", "new")
        assert resumed.code == 0, resumed.err
        assert set(run_folder.verify_run(new).values()) == {"ok"}


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("task", "number"), list(zip(WORLDS, itertools.cycle(SIGNALS), strict=False)))
def test_a_training_of_every_task_saves(nursery: Ask, new: Path, task: str, number: signal.Signals):
    model = ("--model", "bert") if task == "masked" else ()
    words = ("train", f"world:{WORLDS[task]}", *model, "--out", "new", "--budget", "9steps", *TINY)
    for moment, n in (("prepare", 1), ("step", 2)):
        ended = nursery(*words, moment=moment, n=n, number=number)
        require_end(ended, number, saves=moment == "step")
    assert checkpoint.steps(new / "checkpoints") == [2]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    ("moment", "n"), [("prepare", 1), ("counting", 1), ("reading", 1), ("operation", 4), ("operation", 12)]
)
def test_a_count_leaves_nothing(nursery: Ask, new: Path, moment: str, n: int, number: signal.Signals):
    require_end(nursery(*COUNT, moment=moment, n=n, number=number), number)
    assert not new.exists() or set(run_folder.verify_run(new).values()) == {"ok"}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", SIGNALS)
def test_the_training_of_a_tokenizer_is_left(nursery: Ask, new: Path, number: signal.Signals):
    words = ("--set", "data.tokens=bpe", "--set", "data.vocab_size=300")
    require_end(nursery(*TRAIN, *words, moment="tokenizer", number=number), number)
    assert not new.exists()


USES = {
    "generate": ("generate", "gpt", "the cat"),
    "beam": ("generate", "gpt", "the cat", "--beam", "3", "--max-tokens", "5"),
    "score": ("score", "gpt", "the cat sat"),
    "evaluate": ("evaluate", "gpt"),
    "explain": ("explain", "gpt", "the cat sat"),
    "explain steps": ("explain", "gpt", "the cat sat", "--steps"),
    "check": ("check", "lstm"),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("use", "number"), list(zip(USES, itertools.cycle(SIGNALS))) + [("evaluate", n) for n in SIGNALS]
)
@pytest.mark.parametrize("moment", ["start", "module"])
def test_a_use_of_a_run_ends_with_one_line_at_most(
    nursery: Ask, runs: Path, use: str, moment: str, number: signal.Signals
):
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if ".note .out .err".find(path.name) < 0}
    ended = nursery(*USES[use], moment=moment, number=number)
    require_end(ended, number)
    # Who pressed Ctrl-C is told that it was heard; who sent another signal is not looking.
    assert re.fullmatch(r"(regard: stopped(; nothing was written)?\n)?" if number == signal.SIGINT else "", ended.err)
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", SIGNALS)
def test_a_study_leaves_no_temporary_folder(nursery: Ask, new: Path, number: signal.Signals):
    words = ("reproduce", "mask", "--out", "new")
    ended = nursery(*words, moment="module", n=20, number=number)
    assert ended.code in (75, 128 + number), ended.err
    assert ended.seconds is not None
    assert ended.seconds < AT_ONCE
    assert not list(new.rglob("*.json"))


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("moment", "n", "number"),
    [
        ("start", 1, signal.SIGHUP),
        ("operation", 2, signal.SIGINT),
        ("counting", 1, signal.SIGTERM),
        ("step", 3, signal.SIGINT),
        ("step", 3, signal.SIGHUP),
        ("operation", 60, signal.SIGTERM),
    ],
)
def test_a_comparison_ends(nursery: Ask, new: Path, moment: str, n: int, number: signal.Signals):
    words = ("compare", "my.txt", "--models", "ngram,lstm", "--budget", "12steps", "--out", "new", *TINY)
    ended = nursery(*words, moment=moment, n=n, number=number)
    assert ended.code in (75, 128 + number), ended.err
    assert ended.seconds is not None
    assert ended.seconds < AT_ONCE


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", SIGNALS)
def test_the_lab_ends(nursery: Ask, runs: Path, number: signal.Signals):
    ended = nursery("lab", "--port", "0", moment="serving", number=number)
    assert ended.code in (0, 128 + number)
    assert ended.err == ""


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", SIGNALS)
def test_an_export_is_whole_or_absent(nursery: Ask, runs: Path, new: Path, number: signal.Signals):
    require_end(nursery("export", "counted", "new.arpa", moment="operation", n=2, number=number), number)
    assert not list(runs.glob("*.arpa*"))
    assert not list(runs.glob(".tmp*"))
