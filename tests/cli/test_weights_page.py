"""The commands and the lines of Python of docs/weights.md do what it says, on tiny random models of transformers."""

from __future__ import annotations

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from calling import TEXT, call_here
from safetensors.torch import load_file, save_file

import regard
from foreign_models import tiny_folder
from piece_models import translator_folder
from regard.interop.architectures import ARCHITECTURES

PAGE = Path(__file__).parents[2] / "docs" / "weights.md"
WEIGHTS = "model.safetensors"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for kind, block in found if kind == language]


def make_files(here: Path) -> None:
    words = {word for line in TEXT.splitlines() for word in line.split()} | {"is", "new", "old", "the", "cat"}
    lines = [f"{word} {' '.join(str((len(word) + n) % 7 - 3) for n in range(16))}" for word in sorted(words)]
    (here / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = "".join(f"the {one}\tdie {two}\n" for one, two in (("cat", "Katze"), ("dog", "Hund")) for _ in range(3))
    (here / "pairs.tsv").write_text("source\ttarget\n" + pairs, encoding="utf-8")


def make_folders(here: Path) -> None:
    translator_folder(here / "models" / "marian", "marian")
    tiny_folder(here / "models" / "chat", "llama", "byte_level")
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    (here / "models" / "chat" / "chat_template.jinja").write_text(template, encoding="utf-8")
    for name, model, kind in (("gpt2",) * 2 + ("byte_level",), ("bert",) * 2 + ("word_piece",), SENTENCES):
        tiny_folder(here / "models" / name, model, kind)
    file = here / "models" / "sentences" / WEIGHTS
    save_file({name: value for name, value in load_file(file).items() if not name.startswith("cls")}, file)


SENTENCES = ("sentences", "bert", "word_piece")


def has_onnx() -> bool:
    return all(find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime"))


@pytest.mark.usefixtures("unchecked_shapes")
def test_every_command_of_the_page_works_in_its_order(here: Path):
    make_folders(here)
    make_files(here)
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    rows = "".join(f"the {thing} is {word}\t{word}\n" for thing in "abcdefghijkl" for word in ("new", "old"))
    (here / "reviews.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    outcomes = {}
    commands = [shlex.split(line)[1:] for block in blocks("") for line in block.splitlines()]
    assert len(commands) == 40
    for argv in commands:
        if "onnx" in argv and not has_onnx():
            continue
        short = ["--budget", "1steps", "--device", "cpu"] if argv[0] in ("train", "compare") else []
        outcome = call_here(*argv, *short)
        assert outcome.code == 0, (argv, outcome.err)
        outcomes[" ".join(argv)] = outcome.out
    assert "source" in outcomes["show runs/gpt2"]
    assert "models/gpt2" in outcomes["show runs/gpt2"]
    assert "largest difference 0.0e+00" in outcomes["export runs/gpt2 gpt2.gguf"]
    assert "license: MIT" in (here / "out" / "gpt2" / "README.md").read_text(encoding="utf-8")
    before, after = (load_file(here / "runs" / name / WEIGHTS) for name in ("gpt2", "again"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert "runs/gpt2?lora=4 (pretrained)" in outcomes["show runs/ladder"]
    assert len(json.loads(outcomes["generate runs/sentences the cat sat --json"])["answers"][0]["vector"]) == 16
    names = {"regard": regard}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["vectors"]) == 2  # pyright: ignore[reportArgumentType]


def test_the_table_names_every_architecture():
    named = re.findall(r"^\| `(\w+)` \| (?!models \|)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert named == list(dict.fromkeys(named))
    assert set(named) == set(ARCHITECTURES)


def test_a_folder_that_is_no_model_is_told_in_a_line(here: Path):
    (here / "empty").mkdir()
    outcome = call_here("import", "empty", "--out", "runs/none")
    assert (outcome.code, outcome.err.count("\n")) == (4, 1)
    assert "no config.json with a model_type" in outcome.err
    assert not (here / "runs").exists()
