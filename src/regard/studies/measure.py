"""What is measured of a trained run: quality on the test part, once, and what it costs to use.

The information floor: the least that a state must hold to recall what a world asks for, whatever it is made of.

    bits of a told word   -log2 p(word | it is one that may be asked for), p that of the world where it is said
    H                     mean over documents of the most bits that are told and still to be asked for at one time

A state of fewer bits cannot answer everything; how far above it a model lies is what its form costs.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

from regard.run.run import Run
from regard.studies.row import keep_each
from regard.tasks.class_report import RELIABILITY
from regard.tasks.verbs import Generates, Report, ScoresPassages
from regard.training.estimate import on_meta, state_size

TOKENS = 30_000  # of the test part, at most
EXAMPLES = 1000
WRITTEN, ANSWERED = 64, 32
SAMPLE: dict[str, Any] = {"max_tokens": 60, "temperature": 0.8, "seed": 0}
SCORED, SCORED_TOKENS, CONTEXT, SAID_WITH, FEW = 6, 100, 12, 4, 2
LONGEST = 200  # letters of an input or an answer that are shown
SURE = 0.5
LOOKED_AT = 16  # tokens of the test that a look inside is made of
DOCUMENTS = 40
# With two answers, as in parity, an answer may be a function of many tokens instead of one that was told.
FEWEST = 3


def measured(run: Run, *, per_byte: bool = False) -> dict[str, Any]:
    """Scores of the test part, its slices, what the run writes and how fast; those of each example are kept beside it.

    per_byte  the score is in bits a byte, for models whose tokens differ.
    """
    task, test = run.task, run.held_out("test")
    writes = isinstance(task, Generates)
    judged = task.limited(test, TOKENS if writes else EXAMPLES)
    report = task.evaluate(run.model, run.processor, judged)
    metric = task.judged_by(run.processor)
    score, each = float(report.scores[metric]), report.each() if report.each is not None else None
    if each is not None:
        each = each.per_byte() if per_byte else each
        score = each.score if per_byte else score
        keep_each(run.path, each)
    found = {
        "score": score,
        "scores": {name: value for name, value in report.scores.items() if isinstance(value, (int, float))},
        "slices": _slices(report, metric),
    }
    if RELIABILITY in report.tables:
        found[RELIABILITY] = [[row["confidence"], row["accuracy"], row["count"]] for row in report.tables[RELIABILITY]]
    found |= _written(run, test) if writes else _answered(run, test)
    length = run.config["train"]["length"]
    state = state_size(on_meta(run.model.config), length) if hasattr(run.model, "config") else None  # pyright: ignore[reportArgumentType]
    return found | {"state_bytes": state["bytes"] if state else None, "state_grows": bool(state and state["grows"])}


def _written(run: Run, test: Any) -> dict[str, Any]:
    """Of a run that goes on with texts: how fast, a sample, and where it is sure."""
    began = time.monotonic()
    written, spent = 0, 0.0
    while written < WRITTEN and spent < 5.0:
        written += run.write([""], max_tokens=WRITTEN, temperature=1.0, seed=written)[0].tokens + 1
        spent = time.monotonic() - began
    found = {"speed": written / spent, "speed_unit": "tokens/s", "sample": run.generate("", **SAMPLE)}
    if not isinstance(run.task, ScoresPassages):
        return found | {"given": next(iter(run.task.openings(test, 1)), "")}
    first = next(iter(run.task.passages(run.processor, test, 1, LOOKED_AT)), "")
    return found | {"scored": _scored(run, run.task, test), "given": first.strip()}


def _scored(run: Run, task: ScoresPassages, test: Any) -> list[list[tuple[str, float]]]:
    """The first test documents token by token, each with its probability: where models differ is told from these."""
    space = " " if run.tokenizer.kind == "words" else ""
    found = []
    for text in task.passages(run.processor, test, SCORED, SCORED_TOKENS):
        scored = task.score(run.model, run.processor, text)
        pairs = zip(scored.token_texts, scored.score.log_probs, strict=True)
        found.append([(token + space, math.exp(log_prob)) for token, log_prob in pairs])
    return found


def _answered(run: Run, test: Sequence[Any]) -> dict[str, Any]:
    """Of a run that answers inputs: how fast, and what it says to the first ones."""
    task, shown = run.task, test[:ANSWERED]
    began = time.monotonic()
    answers = list(task.answers(run.model, run.processor, shown))
    spent = time.monotonic() - began
    described = [task.describe(one, answer) for one, answer in zip(shown, answers, strict=True)]
    return {
        "speed": len(shown) / max(1e-9, spent),
        "speed_unit": "answers/s",
        "sample": "\n".join(described[:5]),
        "given": "" if task.by_time else task.typed(test[0]),
        "right": [task.is_right(one, answer) for one, answer in zip(shown, answers, strict=True)],
        "answers": [line[:300] for line in described],
        "inputs": [task.typed(one)[:LONGEST] for one in shown] if not task.by_time else [],
        "truths": [task.truth(one)[:LONGEST] for one in shown],
        "said": [task.said(one, answer)[:LONGEST] for one, answer in zip(shown, answers, strict=True)],
    }


def _slices(report: Report, metric: str) -> dict[str, dict[str, float]]:
    """Tables of a report as score by slice: the first column names it; the task's own metric, or the second by name."""
    found = {f"{name} by distance": dict(values) for name, values in report.by_distance.items() if values}
    for name, rows in report.tables.items():
        for row in rows if name != RELIABILITY else ():  # which has a chart of its own
            label, *rest = row.items()
            key, shown = next((pair for pair in rest if pair[0] == metric), rest[0] if rest else ("", None))
            if isinstance(shown, (int, float)) and math.isfinite(shown):
                title = " ".join([*([] if key == metric else [key]), name]).replace("_", " ")
                found.setdefault(title, {})[str(label[1])] = float(shown)
    return found


def disagreements(rows: Sequence[tuple[str, dict[str, Any]]], most: int = 6) -> list[dict[str, str]]:
    """Test examples that some models got right and others wrong: what each of them made of it."""
    if all(found.get("scored") for _, found in rows):
        return _between(rows, most)
    judged = [(label, found) for label, found in rows if found.get("right")]
    if len(judged) < 2:
        return []
    count = min(len(found["right"]) for _, found in judged)
    split = [n for n in range(count) if len({bool(found["right"][n]) for _, found in judged}) == 2]
    return [_answered_by(judged, number) for number in split[:most]]


def _answered_by(judged: Sequence[tuple[str, dict[str, Any]]], number: int) -> dict[str, str]:
    """An example, its own answer, and that of each model, with a mark where it is right."""
    first = judged[0][1]
    if not all(found.get("inputs") and found.get("said") for _, found in judged):  # of a report from before they were
        return {label: found["answers"][number] for label, found in judged}
    told = {label: f"{found['said'][number]}{' =' if found['right'][number] else ''}" for label, found in judged}
    return {"input": first["inputs"][number], "right": first["truths"][number]} | told


def _between(rows: Sequence[tuple[str, dict[str, Any]]], most: int) -> list[dict[str, str]]:
    """Tokens of the test that some models were sure of and others far from, no word twice, with what came before."""
    if len(rows) < 2:
        return []
    gaps = []
    for number, document in enumerate(rows[0][1]["scored"]):
        shortest = min(len(found["scored"][number]) if number < len(found["scored"]) else 0 for _, found in rows)
        for place in range(min(shortest, len(document))):
            chances = [found["scored"][number][place][1] for _, found in rows]
            if max(chances) >= SURE:
                # Widest where half of the models know it: one that learnt nothing does not choose all examples.
                gaps.append((statistics.pvariance(chances), number, place))
    told: dict[str, dict[str, str]] = {}
    for _, number, place in sorted(gaps, reverse=True):
        tokens = [token for token, _ in rows[0][1]["scored"][number]]
        if len(told) < most and tokens[place] not in told:
            shown = {"text": f"{_before(tokens, place)} [{tokens[place].strip() or tokens[place]}]"}
            shares = {label: f"{found['scored'][number][place][1]:.0%}" for label, found in rows}
            told[tokens[place]] = shown | shares
    return list(told.values())


def _before(tokens: Sequence[str], place: int) -> str:
    """What came before a token; where it was said earlier than that, and not often, from there, with how much more."""
    first = max(0, place - CONTEXT)
    near = "".join(tokens[first:place])
    earlier = [number for number in range(max(0, first - 1)) if tokens[number] == tokens[place]]
    if not 1 <= len(earlier) <= FEW:
        return near
    said = "".join(tokens[max(0, earlier[-1] - SAID_WITH) : earlier[-1] + 1]).strip()
    return f"{said} ... {first - earlier[-1] - 1} more ... {near}"


def recall_bits(world: Any) -> float | None:
    """H of a world, in bits; None where no word that was told is asked for."""
    documents = world.documents("valid")[:DOCUMENTS]
    split = [world.split(document) for document in documents]
    points = [dict(world.recall_points(document)) for document in documents]
    asked = {words[index] for words, found in zip(split, points, strict=True) for index in found}
    if len(asked) < FEWEST:
        return None
    peaks = [_peak(world, words, found, asked) for words, found in zip(split, points, strict=True)]
    return sum(peaks) / len(peaks) if any(peaks) else None


def _peak(world: Any, words: list[str], found: dict[int, int], asked: set[str]) -> float:
    """The most bits that one document has outstanding at any word."""
    last: dict[int, int] = {}
    for index, distance in sorted(found.items()):
        place = index - distance
        # A name said a third time was recalled the second time: it is still what the first one told.
        while place in found:
            place -= found[place]
        if words[place] == words[index]:
            last[place] = index
    changes = [0.0] * (len(words) + 1)
    for place, index in last.items():
        chances = world.next_distribution(words[:place])
        among = sum(chance for word, chance in chances.items() if word in asked)
        bits = -math.log2(chances[words[place]] / among)
        changes[place] += bits
        changes[index] -= bits
    held, peak = 0.0, 0.0
    for change in changes:
        held += change
        peak = max(peak, held)
    return peak
