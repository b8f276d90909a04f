"""What the training of a language model came to: its loss in several units, and how far it is from the optimum."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

from regard.decoding.text import TextOptions
from regard.evaluation.unknown import Unknown
from regard.tasks.outcome import Outcome, common_facts, longer
from regard.terminal.table import human, span, visible

if TYPE_CHECKING:
    from regard.tasks.task import Trained
    from regard.tasks.text import PlainText
    from regard.training.display import Result

JUDGED_TOKENS = 20_000  # held-out tokens that are read, at most
PROMPT_WORDS, PROMPT_LETTERS, LONGEST_PROMPT, LOOKED_AT = 3, 12, 40, 200
SAMPLE = TextOptions(max_tokens=80, temperature=0.8)
SAMPLE_LINES = 4
ANY_PROMPT = "Once upon"


def text_outcome(task: PlainText, run: Trained, result: Result) -> Outcome:
    """Of a fitted model too."""
    facts = _measured(task, run, result)
    return Outcome(facts, _lines(run, result, facts), _next_commands(run, result))


def _measured(task: PlainText, run: Trained, result: Result) -> dict[str, Any]:
    facts = common_facts(run, result)
    facts["valid_perplexity"] = None if result.best_loss is None else math.exp(min(700.0, result.best_loss))
    part = run.held_out("valid")
    if result.best_loss is not None and part.shard.n_chars:
        unknown = Unknown.of(part.shard, part.shard.tokens, run.processor.tokenizer)
        nats = result.best_loss * part.shard.tokens + float(unknown.spelling.sum())
        facts["valid_bits_per_character"] = nats / math.log(2) / part.shard.n_chars
        facts |= {"valid_unknown_share": len(unknown.places) / part.shard.tokens} if len(unknown.places) else {}
    if part.world is not None and part.shard.tokens:
        report = task.evaluate(run.model, run.processor, task.limited(part, JUDGED_TOKENS))
        facts["judged_loss"] = report.scores["loss"]
        facts |= {name: report.scores.get(name) for name in ("optimal_loss", "excess")}
        facts["recall"] = report.by_distance.get("recall")
    if "fit" in run.config:
        facts |= {"n_grams": run.config["fit"].get("kept", []), "notes": run.config["fit"]["notes"]}
    facts["sample"] = task.writer(run.model, run.processor).write([opening(run)], SAMPLE)[0].text
    return facts


def _lines(run: Trained, result: Result, facts: dict[str, Any]) -> list[str]:
    learnt = f"{human(facts['parameters'])} parameters, {result.step:,} steps"
    if facts.get("n_grams"):
        learnt = f"{human(sum(facts['n_grams']))} n-grams of order 1 to {len(facts['n_grams'])}"
    lines = [f"{run.path}: {facts['model']}, {learnt}, {human(result.tokens)} tokens, {span(result.seconds)}"]
    if result.reason == "patience":
        lines.append("  ended early: the held-out loss no longer improved")
    if result.best_loss is not None:
        words = [f"perplexity {facts['valid_perplexity']:.2f}"]
        if "valid_bits_per_character" in facts:
            words.append(f"{facts['valid_bits_per_character']:.3f} bits per character")
        if "valid_unknown_share" in facts:
            words.append(f"{facts['valid_unknown_share']:.1%} unknown tokens")
        when = "" if "n_grams" in facts else f" at step {result.best_step:,}"
        lines.append(f"  held-out loss {result.best_loss:.4f} ({', '.join(words)}){when}")
    if facts.get("optimal_loss") is not None:
        judged, best, excess = facts["judged_loss"], facts["optimal_loss"], facts["excess"]
        lines.append(
            f"  on whole documents {judged:.4f}; the best possible is {best:.4f}, so it is {excess:.4f} above it"
        )
    if facts.get("recall"):
        parts = [f"{share:.0%} at {distance}" for distance, share in facts["recall"].items()]
        lines.append(f"  facts recalled by distance in tokens: {', '.join(parts)}")
    written = [line for line in visible(facts["sample"]).split("\n") if line.strip()][:SAMPLE_LINES]
    return lines + [f"  | {line}" for line in written]


def _next_commands(run: Trained, result: Result) -> list[str]:
    where, prompt = shlex.quote(str(run.path)), shlex.quote(opening(run))
    return [
        f"regard generate {where} {prompt}",
        f"regard score {where} {prompt}",
        f"regard evaluate {where}",
        f"regard show {where}",
        f"regard explain {where} {prompt}"
        if "fit" in run.config
        else f"regard train --resume --out {where} --budget {longer(run.config['train']['budget'], result)}",
    ]


def opening(run: Trained) -> str:
    """The first words of the held-out text, or its first letters where it has no words."""
    part = run.held_out("valid")
    if not part.shard.tokens:
        return ANY_PROMPT
    # A dash in front would be read as an option.
    words = " ".join(part.opening(0, LOOKED_AT).split()[:PROMPT_WORDS]).lstrip("- ") or ANY_PROMPT
    return words if len(words) <= LONGEST_PROMPT else words[:PROMPT_LETTERS]
