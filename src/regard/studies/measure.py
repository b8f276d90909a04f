"""What is measured of a trained run: quality on the test part, once, and what it costs to use."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.data.shard import TokenShard
from regard.run.run import Run
from regard.run.summary import state_size
from regard.run.task_run import TaskRun
from regard.training.estimate import on_meta

TOKENS = 30_000  # of the test part, at most
EXAMPLES = 1000
PARTS, FEWEST = 8, 2
WRITTEN = 64
SAMPLE: dict[str, Any] = {"max_tokens": 60, "temperature": 0.8, "seed": 0}
SCORED, SCORED_TOKENS, CONTEXT = 6, 100, 12
SURE = 0.5
LOOKED_AT = 16  # tokens of the test that a look inside is made of


def measured(run: Run | TaskRun, *, intervals: bool) -> dict[str, Any]:
    """Scores of the test part, its slices, what the run writes and how fast.

    intervals  also the score of each of some parts of the test, for the noise of a single training.
    """
    found = _text(run, intervals) if isinstance(run, Run) else _task(run, intervals)
    length = run.config["train"]["length"]
    state = state_size(on_meta(run.model.config), length) if hasattr(run.model, "config") else None  # pyright: ignore[reportArgumentType]
    return found | {"state_bytes": state["bytes"] if state else None, "state_grows": bool(state and state["grows"])}


def _text(run: Run, intervals: bool) -> dict[str, Any]:
    report = run.evaluate(part="test", limit=TOKENS).to_dict()
    recall = report.pop("recall", None) or {}
    began = time.monotonic()
    written, spent = 0, 0.0
    while written < WRITTEN and spent < 5.0:
        written += run.write([""], max_tokens=WRITTEN, temperature=1.0, seed=written)[0].tokens + 1
        spent = time.monotonic() - began
    assert run.corpus is not None
    assert run.corpus.test is not None
    world = run.corpus.world
    pieces = parts_of(run.corpus.test, may_cut=world is None) if intervals else []
    # Read as the whole is: in a world every document on its own.
    parts = [run.evaluate_shard(piece, world).loss for piece in pieces]
    return {
        "score": report["loss"],
        "scores": report,
        "slices": {"recall by distance": recall} if recall else {},
        "parts": parts,
        "speed": written / spent,
        "speed_unit": "tokens/s",
        "sample": run.generate("", **SAMPLE),
        "scored": _scored(run, run.corpus.test),
        "given": run.tokenizer.decode(run.corpus.test.document(0)[:LOOKED_AT]).strip(),
    }


def _scored(run: Run, test: TokenShard) -> list[list[tuple[str, float]]]:
    """The first test documents token by token, each with its probability: where models differ is told from these."""
    documents = [test.document(number)[:SCORED_TOKENS] for number in range(min(SCORED, test.n_documents))]
    space = " " if run.tokenizer.kind == "words" else ""
    found = []
    for text in filter(None, map(run.tokenizer.decode, documents)):
        scored = run.score(text)
        pairs = zip(scored.token_texts, scored.score.log_probs, strict=True)
        found.append([(token + space, math.exp(log_prob)) for token, log_prob in pairs])
    return found


def _task(run: TaskRun, intervals: bool) -> dict[str, Any]:
    assert run.dataset is not None
    test = run.dataset.test[:EXAMPLES]
    report = run.task.evaluate(run.model, run.processor, test)
    metric = run.task.metric
    shown = test[:32]
    began = time.monotonic()
    answers = list(run.task.answers(run.model, run.processor, shown))
    spent = time.monotonic() - began
    parts = []
    if intervals and len(test) >= 2 * PARTS:
        pieces = [test[number::PARTS] for number in range(PARTS)]
        parts = [float(run.task.evaluate(run.model, run.processor, piece).scores[metric]) for piece in pieces]
    numbers = {name: value for name, value in report.scores.items() if isinstance(value, (int, float))}
    described = [run.task.describe(one, answer) for one, answer in zip(shown[:5], answers[:5], strict=True)]
    return {
        "score": float(report.scores[metric]),
        "scores": numbers,
        "slices": _slices(report.tables, metric),
        "parts": parts,
        "speed": len(shown) / max(1e-9, spent),
        "speed_unit": "answers/s",
        "sample": "\n".join(described),
        "given": "" if run.task.by_time else run.task.typed(test[0]),
        "right": [run.task.is_right(one, answer) for one, answer in zip(shown, answers, strict=True)],
        "answers": [run.task.describe(one, answer)[:300] for one, answer in zip(shown, answers, strict=True)],
    }


def _slices(tables: Any, metric: str) -> dict[str, dict[str, float]]:
    """Tables of a report as score by slice: the first column names it, the task's own metric or the second is shown."""
    found: dict[str, dict[str, float]] = {}
    for name, rows in tables.items():
        for row in rows:
            label, *rest = row.items()
            shown = next((value for key, value in rest if key == metric), rest[0][1] if rest else None)
            if isinstance(shown, (int, float)) and math.isfinite(shown):
                found.setdefault(name.replace("_", " "), {})[str(label[1])] = float(shown)
    return found


def parts_of(shard: TokenShard, *, may_cut: bool = True) -> list[TokenShard]:
    """The test text in some parts of whole documents; one of few documents is cut into equal lengths, or not at all."""
    ends = np.append(shard.starts[1:], shard.tokens)
    whole = int((ends <= TOKENS).sum())
    if whole >= 2 * FEWEST:
        count = min(PARTS, whole // 2)
        starts = np.append(shard.starts, shard.tokens)
        bounds = [int(starts[whole * number // count]) for number in range(count + 1)]
    else:
        last = min(TOKENS, shard.tokens) if may_cut else 0
        bounds = [last * number // PARTS for number in range(PARTS + 1)]
    pieces = []
    for first, last in itertools.pairwise(bounds):
        if last > first:
            within = shard.starts[(shard.starts >= first) & (shard.starts < last)] - first
            pieces.append(TokenShard(shard.ids[first:last], within if len(within) else np.zeros(1, np.int64), 0, 0))
    return pieces


def disagreements(rows: Sequence[tuple[str, dict[str, Any]]], most: int = 6) -> list[dict[str, str]]:
    """Test examples that some models got right and others wrong: what each of them made of it."""
    if all(found.get("scored") for _, found in rows):
        return _between(rows, most)
    judged = [(label, found) for label, found in rows if found.get("right")]
    if len(judged) < 2:
        return []
    count = min(len(found["right"]) for _, found in judged)
    split = [n for n in range(count) if len({bool(found["right"][n]) for _, found in judged}) == 2]
    return [{label: found["answers"][number] for label, found in judged} for number in split[:most]]


def _between(rows: Sequence[tuple[str, dict[str, Any]]], most: int) -> list[dict[str, str]]:
    """Tokens of the test that some model was sure of and another far from: the widest gaps, with what came before."""
    if len(rows) < 2:
        return []
    gaps = []
    for number, document in enumerate(rows[0][1]["scored"]):
        shortest = min(len(found["scored"][number]) if number < len(found["scored"]) else 0 for _, found in rows)
        for place in range(min(shortest, len(document))):
            chances = [found["scored"][number][place][1] for _, found in rows]
            if max(chances) >= SURE:
                gaps.append((max(chances) - min(chances), number, place))
    told = []
    for _, number, place in sorted(gaps, reverse=True)[:most]:
        tokens = [token for token, _ in rows[0][1]["scored"][number]]
        before = "".join(tokens[max(0, place - CONTEXT) : place])
        shown = {"text": f"{before} [{tokens[place].strip() or tokens[place]}]"}
        told.append(shown | {label: f"{found['scored'][number][place][1]:.0%}" for label, found in rows})
    return told
