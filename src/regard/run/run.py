"""A run: a trained model with its tokenizer, in memory and in its folder.

run = regard.train("lstm", "my.txt", budget="5m")
run = regard.load("runs/lstm")
print(run.generate("Today is a", top_p=0.9))
run.score("Today is a great day").show()
run.evaluate()
run.encode("the bank of the river")      (T, D)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data import tokenizer as tokenizers
from regard.data.corpus import Corpus, prepare
from regard.data.shard import TokenShard, ends_lines, make_shard, stream_shard
from regard.data.stream import Files
from regard.data.worlds import PREFIX, text_world
from regard.decoding.logits import device_of as device_of_model
from regard.decoding.text import ScoredText, Text, TextGenerator, options_from
from regard.errors import CheckpointError, DataError, UsageError
from regard.evaluation.language import Habit, LanguageReport
from regard.evaluation.language import evaluate as evaluate_language
from regard.run.task_run import load_task_run
from regard.tasks import TASKS, TEXT
from regard.tasks.task import require_task
from regard.training import run_folder
from regard.training.loop import device_of
from regard.training.saved_model import saved_model
from regard.training.settings import TrainSettings

if TYPE_CHECKING:
    from regard.core.trace import Trace
    from regard.data.tokenizer import Tokenizer
    from regard.data.worlds.base import World
    from regard.explain.view import View
    from regard.models.language import LanguageModel


class Run:
    """A trained model ready for use.

    path       its folder.
    config     what config.json says: model, data, training settings and where each came from.
    model      in evaluation mode.
    tokenizer  the one it was trained with.
    """

    def __init__(self, path: Path, config: dict[str, Any], model: LanguageModel, tokenizer: Tokenizer) -> None:
        self.path = path
        self.config = config
        self.model = model
        self.tokenizer = tokenizer
        self.corpus: Corpus | None = None

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, model={self.config.get('model', {}).get('name')!r})"

    @property
    def writer(self) -> TextGenerator:
        grows = getattr(getattr(self.model, "stack", self.model), "state_grows", False)
        return TextGenerator(self.model, self.tokenizer, self.config["train"]["length"] if grows else None)

    def generate(self, prompt: str = "", **options: Any) -> str:
        """The prompt and what the model writes after it. Options are those of `regard.decoding.text.TextOptions`."""
        return self.write([prompt], **options)[0].text

    def write(self, prompts: Sequence[str], *, copies: int = 1, **options: Any) -> list[Text]:
        """Each prompt continued `copies` times, with the numbers of each text."""
        return self.writer.write(prompts, options_from(options), copies=copies)

    def stream(self, prompt: str = "", **options: Any) -> Iterator[str]:
        """What comes after the prompt, piece by piece; no piece cuts a character."""
        return self.writer.stream(prompt, options_from(options))

    def score(self, text: str) -> ScoredText:
        """log p of every token of a text, and their chain-rule product."""
        return self.writer.score(text)

    def explain(self, text: str, view: str | None = None, **options: Any) -> View:
        """A look inside: the view that tells most of such a model, or the one that is named; see `views`."""
        from regard.explain import registry

        return registry.view(self, view, text, **options)

    @property
    def views(self) -> dict[str, str]:
        """The views that `explain` can make of this run, and what each shows."""
        from regard.explain import registry

        return registry.views(self)

    def trace(self, text: str, pattern: str = "*") -> Trace:
        """Everything that the taps of the model see while it reads `text`."""
        from regard.explain.inputs import read

        return read(self, text).trace(pattern)

    def evaluate(self, data: str | None = None, *, limit: int | None = None, part: str = "valid") -> LanguageReport:
        """Loss, perplexity and bits on `data`, or on what the run's own data held out: "valid", or "test" set apart."""
        shard, world = self.held_out(part) if data is None else self._other(data)
        return self.evaluate_shard(shard, world, limit)

    def evaluate_shard(self, shard: TokenShard, world: World | None = None, limit: int | None = None) -> LanguageReport:
        """The same on prepared text in the run's own tokens."""
        trained = self.config["train"]
        by_line = self.config["data"].get("documents") in ("line", "blank")
        report = evaluate_language(
            self.model,
            shard,
            tokenizer=self.tokenizer,
            length=trained["length"],
            world=world,  # pyright: ignore[reportArgumentType]  # its class variables are properties there
            limit=limit,
            habit=Habit(
                carries=trained.get("carry_state") is not False,
                by_document=trained.get("samples") == "documents" or (by_line and trained.get("samples") == "auto"),
            ),
        )
        unknown = int((np.asarray(shard.ids[: report.tokens]) == self.tokenizer.unknown_id).sum())
        return dataclasses.replace(report, unknown=unknown or None)

    def encode(self, text: str) -> Float[Tensor, "T D"]:
        """The context-sensitive vectors h_1 .. h_n of the tokens of `text`."""
        if not hasattr(self.model, "encode"):
            raise UsageError(f"{self.path}: {self.config['model']['name']} counts tokens and has no vectors to encode")
        ids = self.writer.prompt_ids(text)
        longest = self.model.max_length
        if longest is not None and len(ids) > longest:
            raise UsageError(
                f"the text has {len(ids) - 1} tokens, the model's window {longest - 1}: encode it in parts"
            )
        with torch.no_grad():
            # The start symbol is read, as in training, and its own vector left out.
            return self.model.encode(ids[None].to(self.device))[0, 1:]

    @property
    def device(self) -> torch.device:
        return device_of_model(self.model)

    def held_out(self, part: str) -> tuple[TokenShard, World | None]:
        """A held-out part of the run's own data, made again and checked to be what it was."""
        about = self.config["data"]
        if self.corpus is None:
            if about.get("path") is None:
                raise UsageError(f"{self.path} says nothing of the text it was counted on: name data to evaluate on")
            if about["path"] == "-":
                raise UsageError(f"{self.path} was trained on standard input, which is gone: name data to evaluate on")
            # No cache: a folder that somebody was handed does not say where anything is written.
            settings = {key: about[key] for key in ("valid", "test", "documents") if key in about}
            seed = self.config["train"]["seed"]
            corpus = prepare(about["path"], tokenizer=self.tokenizer, seed=seed, **settings)
            if corpus.hash != about.get("hash"):
                raise DataError(f"{about['path']} is not what {self.path} was trained on: name data to evaluate on")
            self.corpus = corpus
        if part == "valid":
            return self.corpus.valid, self.corpus.world
        if self.corpus.test is None:
            raise UsageError(f"{self.path} was trained without a test part; set data.test, or name data to evaluate on")
        return self.corpus.test, self.corpus.world

    def _other(self, data: str) -> tuple[TokenShard, World | None]:
        """All of another text, or the held-out part of a world, in the run's tokens."""
        if data.startswith(PREFIX):
            world = text_world(data, self.config["train"]["seed"])
            return make_shard(world.documents("valid"), self.tokenizer, lines=True), world
        documents = self.config["data"].get("documents", "auto")
        pieces = Files(data, documents).pieces("tokenising")
        return stream_shard(pieces, self.tokenizer, lines=ends_lines(documents)), None


def load(path: str | Path, *, device: str = "auto") -> Run:
    """The run in a folder, every file checked against its hash before it is used; or the model in an ARPA file."""
    where = Path(path).expanduser()
    if ".arpa" in [ending.lower() for ending in where.suffixes[-2:]] and not where.is_dir():
        return _from_arpa(where, device)
    if run_folder.read_config(where).get("data", {}).get("task", "text") in TASKS:
        return load_task_run(where, device=device)  # pyright: ignore[reportReturnType]  # what a run of a task can do
    return load_text_run(where, device=device)


def load_text_run(where: Path, *, device: str = "auto", tokenizer: Tokenizer | None = None) -> Run:
    """The run of a language model. tokenizer: its own, where it is in memory: millions of words are not read again."""
    config, file = run_folder.read_config(where), run_folder.verified_tokenizer(where)
    tokenizer = tokenizers.load(file) if tokenizer is None else tokenizer
    weights = run_folder.verified_weights(where)
    saved = saved_model(where, config)
    if saved.vocab_size != tokenizer.vocab_size:
        raise CheckpointError(
            f"{where / run_folder.CONFIG}: model.config: the model has a vocabulary of {saved.vocab_size} and the "
            f"tokenizer one of {tokenizer.vocab_size}"
        )
    model: Any = saved.with_weights(weights)
    model.to(device_of(TrainSettings(device=device)))
    return Run(where, config, model.eval(), tokenizer)


def load_text(path: str | Path, *, device: str = "auto") -> Run:
    """The run of a language model; one of another task is refused."""
    where = Path(path).expanduser()
    if where.is_dir():
        require_task(run_folder.read_config(where).get("data", {}).get("task", TEXT), TEXT, str(path))
    return load(path, device=device)


def _from_arpa(path: Path, device: str) -> Run:
    """An n-gram model that another program estimated, usable like a run of one's own."""
    from regard.interop.arpa_read import read_arpa

    model, tokenizer = read_arpa(path)
    model.to(device_of(TrainSettings(device=device)))
    about = {"name": "ngram", "size": "small", "settings": {}, "config": model.config.to_dict()}
    data = {"path": None, "documents": "line"}
    return Run(path, {"model": about, "data": data, "train": TrainSettings().to_dict()}, model.eval(), tokenizer)  # pyright: ignore[reportArgumentType]  # all that a run asks of a model
