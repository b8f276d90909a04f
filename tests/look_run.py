"""Runs that were never trained, in memory: small models in float64 over a few words, to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.core import registry
from regard.core.data_spec import DataSpec
from regard.data.tokenizer.word import WordTokenizer
from regard.explain.inputs import read
from regard.explain.look import Options, options_from
from regard.explain.view import View
from regard.run.run import Run
from regard.tasks import task_named
from regard.tasks.labelled import LabelProcessor
from regard.tasks.masked import MaskedProcessor
from regard.tasks.pairs import PairProcessor
from regard.tasks.reading import Reading
from regard.tasks.text import PlainText, TextProcessor
from regard.tasks.vocabulary import TagProcessor

WORDS = ["the", "dog", "cat", "sees", "a", "small", "tree", "runs"]
TEXT = "the small dog sees a cat"
TOKENIZER = WordTokenizer(WORDS, spaced_lines=False, has_lines=False)
CLASSES = ("good", "bad", "so-so")
SIZE = TOKENIZER.vocab_size


def text_run(name: str, **settings: Any) -> Run:
    torch.manual_seed(1)
    model = registry.build(name, vocab_size=SIZE, size="tiny", **settings)
    return Run(Path("run"), _config(name, "text"), PlainText(length=32), _sharpened(model), TextProcessor(TOKENIZER))


def masked_run(name: str = "bert", **settings: Any) -> Run:
    return _task_run(name, "masked", MaskedProcessor(TOKENIZER), DataSpec(SIZE + 1), settings)


def pair_run(name: str, **settings: Any) -> Run:
    return _task_run(name, "pairs", PairProcessor(TOKENIZER, TOKENIZER), DataSpec(SIZE), settings)


def class_run(**settings: Any) -> Run:
    processor = LabelProcessor(TOKENIZER, CLASSES)
    return _task_run("classifier", "labelled", processor, DataSpec(SIZE, n_classes=len(CLASSES)), settings)


def tag_run(**settings: Any) -> Run:
    processor = TagProcessor(TOKENIZER, CLASSES)
    return _task_run("tagger", "tagged", processor, DataSpec(SIZE, n_classes=len(CLASSES)), settings)


def seen(
    run: Run,
    make: Callable[[Reading, Options], View],
    text: str = TEXT,
    target: str | None = None,
    **rest: Any,
) -> View:
    """The view that a look makes of a text."""
    return make(read(run, text, target), options_from(rest))


def _task_run(name: str, task: str, processor: Any, spec: DataSpec, settings: dict[str, Any]) -> Run:
    torch.manual_seed(1)
    model: Any = registry.entry(name).config(spec, size="tiny", **settings).build()
    return Run(Path("run"), _config(name, task), task_named(task), _sharpened(model), processor)


def _config(name: str, task: str) -> dict[str, Any]:
    return {"model": {"name": name}, "data": {"task": task}, "train": {"length": 32, "seed": 0}}


def _sharpened(model: torch.nn.Module) -> Any:
    """The model in float64, its maps enlarged so that what it says depends on what it reads."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("weight") and parameter.dim() >= 2:
                parameter.mul_(1.5)
    return model.double().eval()
