"""The end of a run: what was learnt, and what to do next."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.cli.screen import Screen
from regard.terminal.table import human, span, visible

if TYPE_CHECKING:
    from regard.run.run import Run
    from regard.run.task_run import TaskRun
    from regard.training.display import Result

JUDGED_TOKENS = 20_000  # held-out tokens read for the card, at most
PROMPT_WORDS, PROMPT_LETTERS, LONGEST_PROMPT, LOOKED_AT = 3, 12, 40, 200
SAMPLE: dict[str, Any] = {"max_tokens": 80, "temperature": 0.8}
SAMPLE_LINES = 4


@dataclass(frozen=True)
class Card:
    """What a run came to: plain keys for a program, lines for people, commands to copy for both."""

    facts: dict[str, Any]
    lines: list[str]
    next: list[str]

    def show(self, screen: Screen) -> None:
        """Print the lines, the numbers alone for a program, or only where the run is."""
        screen.object(self.facts | {"next": self.next})
        if screen.quiet:
            screen.line(self.facts["run"])
            return
        for line in [*self.lines, "Next:", *(f"  {command}" for command in self.next)]:
            screen.line(line)


def card(run: Run, result: Result) -> Card:
    """The card of a language model."""
    facts = _measured(run, result)
    return Card(facts, _lines(run, result, facts), _next_commands(run))


def outcome(run: Run | TaskRun, result: Result) -> dict[str, Any]:
    """The facts of every card."""
    return {
        "run": str(run.path),
        "model": run.config["model"]["name"],
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "step": result.step,
        "tokens": result.tokens,
        "seconds": round(result.seconds, 3),
        "reason": result.reason,
        "train_loss": result.train_loss,
        "valid_loss": result.best_loss,
        "best_step": result.best_step,
    }


def _measured(run: Run, result: Result) -> dict[str, Any]:
    facts = outcome(run, result)
    facts["valid_perplexity"] = None if result.best_loss is None else math.exp(min(700.0, result.best_loss))
    corpus = run.corpus
    if corpus is not None and result.best_loss is not None and corpus.valid.n_chars:
        bits = result.best_loss / math.log(2)
        facts["valid_bits_per_character"] = bits * corpus.valid.tokens / corpus.valid.n_chars
    if corpus is not None and corpus.world is not None and corpus.valid.tokens:
        report = run.evaluate(limit=JUDGED_TOKENS)
        facts |= {"judged_loss": report.loss, "optimal_loss": report.optimal_loss}
        facts |= {"excess": report.excess, "recall": report.recall}
    if "fit" in run.config:
        facts |= {"n_grams": run.config["fit"]["kept"], "notes": run.config["fit"]["notes"]}
    facts["sample"] = run.generate(opening(run), **SAMPLE)
    return facts


def _lines(run: Run, result: Result, facts: dict[str, Any]) -> list[str]:
    learnt = f"{human(facts['parameters'])} parameters, {result.step:,} steps"
    if "n_grams" in facts:
        learnt = f"{human(sum(facts['n_grams']))} n-grams of order 1 to {len(facts['n_grams'])}"
    lines = [f"{run.path}: {facts['model']}, {learnt}, {human(result.tokens)} tokens, {span(result.seconds)}"]
    if result.reason == "patience":
        lines.append("  ended early: the held-out loss no longer improved")
    if result.best_loss is not None:
        words = [f"perplexity {facts['valid_perplexity']:.2f}"]
        if "valid_bits_per_character" in facts:
            words.append(f"{facts['valid_bits_per_character']:.3f} bits per character")
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


def _next_commands(run: Run) -> list[str]:
    where, prompt = shlex.quote(str(run.path)), shlex.quote(opening(run))
    return [
        f"regard generate {where} {prompt}",
        f"regard score {where} {prompt}",
        f"regard evaluate {where}",
        f"regard show {where}",
        f"regard explain {where} {prompt}"
        if "fit" in run.config
        else f"regard train --resume --out {where} --budget {longer(run.config['train']['budget'])}",
    ]


def opening(run: Run) -> str:
    """The first words of the held-out text, or its first letters where it has no words."""
    corpus = run.corpus
    if corpus is None or not corpus.valid.tokens:
        return "Once upon"
    text = run.tokenizer.decode(corpus.valid.document(0)[:LOOKED_AT])
    # A dash in front would be read as an option.
    words = " ".join(text.split()[:PROMPT_WORDS]).lstrip("- ") or "Once upon"
    return words if len(words) <= LONGEST_PROMPT else words[:PROMPT_LETTERS]


def longer(budget: str) -> str:
    """Twice a budget, in its own unit.

    >>> longer("2m"), longer("1.5Mtokens")
    ('4m', '3Mtokens')
    """
    number = budget.strip().rstrip("abcdefghijklmnopqrstuvwxyzMGTP ")
    return f"{2 * float(number):g}{budget.strip()[len(number) :].strip()}"
