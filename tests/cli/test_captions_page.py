"""Captions from the shell: every command of docs/captions.md, pictures of one's own, and bad ones."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from calling import TINY, call_here
from PIL import Image

PAGE = Path(__file__).parents[2] / "docs" / "captions.md"
SHORT = (*TINY, "--budget", "2steps", "--quiet")
COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200), "white": (255, 255, 255)}
SMALL = "world:shapes?train=12&valid=8"


@pytest.fixture
def pictures(here: Path) -> Path:
    """A folder of pictures, each of one colour in one of two sizes, with captions and categories."""
    folder = here / "pictures"
    folder.mkdir()
    rows = []
    for number, (name, colour) in enumerate(sorted(COLOURS.items()) * 2):
        file, size = f"{name}{number}.png", "large" if number < len(COLOURS) else "small"
        Image.new("RGB", (24, 40) if size == "large" else (8, 8), colour).save(folder / file)
        rows.append(f"{file}\ta {size} {name} one\t{size}\n")
    Image.new("RGB", (50, 30), "brown").save(folder / "dog.png")
    (folder / "captions.tsv").write_text("".join([*rows, "dog.png\ta dog\tlarge\n"]), encoding="utf-8")
    return folder


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


@pytest.mark.usefixtures("pictures")
def test_every_command_of_the_page_works_in_its_order():
    found = commands()
    assert len(found) == 11
    for argv in found:
        argv = [SMALL if word == "world:shapes" else word for word in argv]
        outcome = call_here(*argv, *(SHORT if argv[0] == "train" else ()))
        assert outcome.code == 0, (argv, outcome.err)
        assert outcome.out


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = tmp_path_factory.mktemp("runs") / "shapes"
    outcome = call_here("train", SMALL, "--out", str(run), *SHORT)
    assert outcome.code == 0, outcome.err
    return str(run)


def test_paths_are_answered_line_by_line_and_a_folder_by_name(pictures: Path, captioner: str):
    names = sorted(str(file.relative_to(pictures.parent)) for file in pictures.glob("*.png"))
    whole = json.loads(call_here("generate", captioner, "pictures", "--json").out)["answers"]
    assert [answer["picture"] for answer in whole] == names
    piped = json.loads(call_here("generate", captioner, "--json", stdin="\n".join(names) + "\n").out)["answers"]
    assert [answer["text"] for answer in piped] == [answer["text"] for answer in whole]
    lines = call_here("generate", captioner, names[0]).out
    assert lines == whole[0]["text"] + "\n"
    searched = call_here("generate", captioner, names[0], "--beam", "3", "--json")
    assert json.loads(searched.out)["answers"][0]["log_prob"] >= whole[0]["log_prob"] - 1e-4


@pytest.mark.usefixtures("pictures")
def test_other_pictures_are_evaluated_by_category(captioner: str):
    report = json.loads(call_here("evaluate", captioner, "pictures", "--json").out)
    assert report["captions"] == 9
    assert {row["category"]: row["captions"] for row in report["by_category"]} == {"large": 5, "small": 4}
    assert {"exact_match", "chrf", "bleu"} <= report.keys()
    shown = call_here("evaluate", captioner, "pictures").out
    assert "By category" in shown
    own = json.loads(call_here("evaluate", captioner, "--json").out)
    assert {row["category"]: row["captions"] for row in own["by_category"]} == {"one": 5, "two": 1, "unseen": 2}


def test_the_card_ends_with_captions_and_a_command_that_works(here: Path):
    outcome = call_here("train", SMALL, "--out", "run", *TINY, "--budget", "2steps", "--json")
    card = json.loads(outcome.out)
    assert card["task"] == "captions"
    assert card["best_possible"] == {"exact_match": 1.0}
    assert card["sample"].count("\n") == 2
    first = shlex.split(card["next"][0])
    assert first[:2] == ["regard", "generate"]
    assert len(call_here(*first[1:]).out.splitlines()) == 3


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("generate", "RUN", "none.png"), 3, "there is no picture none.png"),
        (("generate", "RUN", "pictures/captions.tsv"), 3, "cannot be read as a picture (of no known format)"),
        (("generate", "RUN", "broken.png"), 3, "broken.png cannot be read as a picture"),
        (("generate", "RUN", "empty"), 3, "the folder empty holds no picture"),
        (("generate", "RUN", "none.npz"), 3, "there is no file none.npz"),
        (("generate", "RUN", "broken.npz"), 3, "is no good .npz file"),
        (("generate", "RUN", "world:dates"), 2, "holds pairs, not captions"),
        (("generate", "RUN"), 2, "nothing to answer"),
        (("evaluate", "RUN", "empty"), 3, "has no captions"),
        (("train", "pictures", "--set", "data.size=30"), 2, "2 widths halve"),
        (("train", "pictures", "--set", "data.tag=x"), 2, "data.tag means nothing to the task captions"),
        (("train", "pictures", "--set", "data.caption=de"), 2, "no header"),
        (("train", "pictures", "--model", "lstm"), 2, "choose --model nearest_picture or captioner"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    pictures: Path, captioner: str, argv: tuple[str, ...], code: int, words: str
):
    (pictures.parent / "empty").mkdir()
    whole = (pictures / "dog.png").read_bytes()
    (pictures.parent / "broken.png").write_bytes(whole[: len(whole) // 2])
    (pictures.parent / "broken.npz").write_bytes(b"PK")
    outcome = call_here(*[captioner if word == "RUN" else word for word in argv])
    assert outcome.code == code, outcome.err
    assert not outcome.out
    last = outcome.err.strip().splitlines()[-1]
    assert last.startswith("regard: error: ")
    assert words in last
    assert not Path("runs").exists()


@pytest.mark.usefixtures("pictures")
def test_one_bad_path_among_good_ones_is_named(captioner: str):
    outcome = call_here("generate", captioner, stdin="pictures/dog.png\npictures/cat.png\n")
    assert outcome.code == 3
    assert outcome.err == "regard: error: there is no picture pictures/cat.png\n"
    assert "line 2 is empty" in call_here("generate", captioner, stdin="pictures/dog.png\n\n\n").err
