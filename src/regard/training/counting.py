"""Fitting by counting: one pass over the text instead of steps, into the same run folder.

Nothing is written before the model is whole, and then all files at once: an interrupted fit leaves no half model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.core.device import device_named
from regard.core.progress import Progress
from regard.data.corpus import Corpus
from regard.data.tokenizer import as_file
from regard.errors import ResourceError, UsageError, is_out_of_memory
from regard.evaluation.language import Habit, evaluate
from regard.models.ngram import NgramModel
from regard.ngram.estimate import Estimate
from regard.storage import disk, manifest, tensors
from regard.training import run_folder
from regard.training.counted_file import stored
from regard.training.display import Display, Result, Start
from regard.training.interrupt import ended_by_exception
from regard.training.run_folder import CONFIG, METRICS, TOKENIZER, WEIGHTS, RunFolder, claim
from regard.training.session import environment
from regard.training.settings import TrainSettings

AT_ONCE = 1 << 16  # tokens that are looked up together: the table is then gone through once for all of them
# Training settings that counting has a use for.
USED = frozenset({"memory", "spill", "seed", "device", "length"})


def fit(
    model: NgramModel,
    corpus: Corpus,
    settings: TrainSettings,
    path: Path,
    *,
    about: Mapping[str, Any],
    display: Display,
) -> Result:
    """Count the corpus into `model` and leave a run folder at `path`."""
    start = time.monotonic()
    result = None
    with claim(path) as run, ended_by_exception():
        if not run.is_new:
            raise UsageError(f"{path}: already holds a run; choose another --out")
        display.start(Start(path, "one pass", 0, "cpu", 0, 0.0))
        try:
            found = _fitted(model, corpus, settings, display)
            loss = _told(_held_out(model, corpus, settings, display), display)
            facts = {"tokens": corpus.train.tokens, **_facts(model, found)}
            seconds = time.monotonic() - start
            _publish(run, model, corpus, settings, {**about, "fit": facts}, loss, seconds)
            result = Result(path, 1, corpus.train.tokens, seconds, None, loss, loss, 1, "counted")
            return result
        except (MemoryError, RuntimeError, OSError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"out of memory with --memory {settings.memory}; lower it, so that more is counted on disk, or lower "
                f"model.order"
            ) from error
        finally:
            display.finish(result)


def _fitted(model: NgramModel, corpus: Corpus, settings: TrainSettings, display: Display) -> Estimate:
    where = {
        "memory": settings.memory_bytes,
        "folder": None if settings.spill is None else Path(settings.spill).expanduser(),
    }
    counts = model.count(
        corpus.train.ids,
        **where,
        tell=_teller(display, "counting", corpus.train.tokens),
    )
    tell = _teller(display, "estimating", corpus.train.tokens)
    found = model.fit_exactly(counts, lambda part, share: tell((share + (part == "estimating")) / 2), **where)
    for note in notes(found):
        display.note(note)
    return found


def notes(found: Estimate) -> list[str]:
    """What a person should know of the discounts, in one sentence."""
    undefined = {order: discount for order, discount in enumerate(found.discounts, 1) if discount.fallback}
    if not undefined:
        return []
    orders = ", ".join(map(str, undefined))
    first, discount = next(iter(undefined.items()))
    return [
        f"order {orders}: Kneser-Ney discounts are estimated from how many n-grams occur once, twice and so on, and "
        f"here there are too few to tell (of order {first}, {discount.fallback}): {discount.one:g}, {discount.two:g} "
        f"and {discount.more:g} are taken instead; smoothing = witten_bell needs none"
    ]


def _held_out(model: NgramModel, corpus: Corpus, settings: TrainSettings, display: Display) -> float:
    """The loss on the held-out part, of the quantised model where it is one, with what that costs."""

    def loss() -> float:
        how = {"length": settings.length, "habit": Habit(by_document=corpus.samples == "documents")}
        return evaluate(model, corpus.valid, tokenizer=corpus.tokenizer, at_once=AT_ONCE, **how).loss

    exact = loss()
    if not model.config.quantise:
        return exact
    model.quantise()
    rounded = loss()
    display.note(f"eight bits a number: held-out loss {exact:.6f} becomes {rounded:.6f} ({rounded - exact:+.6f})")
    return rounded


def _told(loss: float, display: Display) -> float | None:
    """The loss, or None with a word of why when something held out has no probability at all."""
    if math.isfinite(loss):
        return loss
    display.note(
        "the held-out loss is infinite: some of its tokens have a probability of 0, which smoothing = mle and closed = "
        "true give to what was never seen"
    )
    return None


def _facts(model: NgramModel, found: Estimate) -> dict[str, Any]:
    """What was counted, for config.json."""
    return {
        "n_grams": found.n_grams,
        "kept": [len(level) for level in found.levels],
        "discounts": [[d.one, d.two, d.more] for d in found.discounts],
        "notes": notes(found),
        "quantised": model.config.quantise,
    }


def _publish(
    run: RunFolder,
    model: NgramModel,
    corpus: Corpus,
    settings: TrainSettings,
    about: Mapping[str, Any],
    loss: float | None,
    seconds: float,
) -> None:
    """Put everything into the run folder at once."""
    weights = stored(model)
    disk.require_space(run.path, tensors.size_of(weights))
    identity = {"name": corpus.name, "hash": corpus.hash, "tokenizer": corpus.tokenizer.hash}
    config = {
        **about,
        "format_version": manifest.FORMAT_VERSION,
        "model": {**about["model"], "config": model.config.to_dict()},
        "data": {**about["data"], **identity},
        "train": settings.to_dict(),
        "environment": environment(device_named(settings.device)),
    }
    record: dict[str, Any] = {"step": 1, "seconds": seconds, "tokens": corpus.train.tokens}
    record |= {} if loss is None else {"valid_loss": loss}
    run.publish(
        {
            TOKENIZER: [as_file(corpus.tokenizer)],
            WEIGHTS: tensors.chunks(weights, {"format": "pt"}),
            METRICS: [manifest.canonical(record).replace(b"\n", b"") + b"\n"],
            CONFIG: run_folder.json_file(config),
        }
    )
    run.close_logs({"step": 1, "best_step": 1, "best_loss": loss, "reason": "counted"})


def _teller(display: Display, part: str, tokens: int) -> Callable[[float], None]:
    """Tell the display how far a part of the fit is."""
    begin = time.monotonic()
    return lambda share: display.progress(Progress(part, share * tokens, tokens, "tokens", time.monotonic() - begin))
