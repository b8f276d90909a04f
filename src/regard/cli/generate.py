"""`regard generate`: texts from a run."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import CommonWithChance, command
from regard.cli.screen import given_text
from regard.errors import UsageError
from regard.terminal.table import visible

if TYPE_CHECKING:
    from regard.cli.screen import Screen
    from regard.decoding.text import Text
    from regard.run.run import Run

# Flags that are absent unless somebody gave them.
OWN = ("temperature", "max_tokens")


def add_to(app: typer.Typer) -> None:
    command(app, "generate")(generate)


@dataclass(frozen=True)
class TextFlags:
    """The options of `regard.decoding.text.TextOptions`."""

    max_tokens: Annotated[int | None, typer.Option(help="Tokens at most. [default: 200]", metavar="N")] = None
    temperature: Annotated[
        float | None,
        typer.Option(help="0 takes the most probable token. [default: 1.0, or 0 of an answer]", metavar="X"),
    ] = None
    top_k: Annotated[int | None, typer.Option(help="Draw among the K most probable tokens.", metavar="K")] = None
    top_p: Annotated[float, typer.Option(help="Draw among the fewest tokens of this mass.", metavar="P")] = 1.0
    min_p: Annotated[float, typer.Option(help="Least probability beside the best token's.", metavar="P")] = 0.0
    stop: Annotated[list[str], typer.Option(help="A string that ends the text. Repeatable.")] = field(
        default_factory=list
    )
    beam: Annotated[int | None, typer.Option(help="Search with a beam of this width.", metavar="W")] = None
    length_penalty: Annotated[str, typer.Option(help="Of the beam: none, power or gnmt.", metavar="NAME")] = "none"
    alpha: Annotated[float, typer.Option(help="Strength of the length penalty.", metavar="A")] = 0.6
    coverage: Annotated[float, typer.Option(help="Of the beam: strength of the coverage penalty.", metavar="B")] = 0.0
    draft: Annotated[
        str | None,
        typer.Option(
            help="What proposes tokens, for speed: a run with the same tokenizer, or ngram, the text so far.",
            metavar="RUN_OR_ngram",
        ),
    ] = None
    draft_tokens: Annotated[
        int | None, typer.Option(help="Tokens proposed for each read. [default: 4]", metavar="K")
    ] = None


def generate(
    run: Annotated[str, typer.Argument(help="A run folder.", metavar="RUN", show_default=False)],
    common: CommonWithChance,
    flags: TextFlags,
    prompt: Annotated[
        str | None, typer.Argument(help="Where the text begins; stdin without it.", metavar="PROMPT")
    ] = None,
    as_text: Annotated[
        bool, typer.Option("--text", help="Take PROMPT as a text, also where it is the name of a file.")
    ] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Each line of the prompt is a prompt of its own.")] = False,
    weights: Annotated[
        str | None, typer.Option(help="int8: linear maps in 8 bits, of which less is read.", metavar="int8")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="PROMPT is what you say to a model that was taught to answer.")
    ] = False,
    n: Annotated[int, typer.Option("--n", help="Texts for each prompt, or of each beam.", metavar="N", min=1)] = 1,
) -> None:
    """Continue a prompt, token by token; or translate, label, tag, caption or forecast what is given, line by line.

    PROMPT is a text, of a run of pictures or series the path of one; `regard predict` answers all of a file.
    """
    text = given_text(prompt)
    options = _options(flags, common.seed or 0)
    count = [options.pop("draft_tokens")] if "draft_tokens" in options else []
    from regard.run.prompt import refuse_file_name
    from regard.run.run import load
    from regard.tasks.verbs import Generates

    loaded = load(run, device=common.device or "auto")
    if prompt is not None and not as_text:
        refuse_file_name(loaded, prompt)
    screen = common.screen
    if weights is not None:
        loaded = loaded.with_weights(weights)
        screen.note(f"{loaded.weights}")
    if not chat and not isinstance(loaded.task, Generates):
        _answer_all(screen, loaded, text, options | {"n_best": n})
        return
    drafter = None
    if flags.draft is not None:
        drafter = loaded.drafter(flags.draft, *count)
        options["draft"] = drafter
    if chat:
        _chat(screen, loaded, text, options, n)
    else:
        _continue(screen, loaded, _prompts(text or "", lines), options, n, "" if lines else "\n")
    if drafter is not None:
        screen.note(drafter.tally.told)


def _continue(screen: Screen, run: Run, prompts: list[str], options: dict[str, Any], n: int, between: str) -> None:
    """Print what comes after each prompt."""
    if len(prompts) * n == 1 and "beam" not in options and not screen.json:
        _stream(prompts[0], run.stream(prompts[0], **options))
    else:
        _show(screen, run.write(prompts, copies=n, **options), _told(run, options), between)


def _told(run: Run, options: dict[str, Any]) -> dict[str, Any]:
    """What a program is told beside texts."""
    draft = options.get("draft")
    return {"fallbacks": run.fallbacks} | ({} if draft is None else {"draft": draft.tally.to_dict()})


def _options(flags: TextFlags, seed: int) -> dict[str, Any]:
    """The options that have a value."""
    if flags.draft_tokens is not None and flags.draft is None:
        raise UsageError("--draft-tokens is how many tokens a draft proposes; name one with --draft")
    options = asdict(flags) | {"seed": seed, "stop": tuple(flags.stop)}
    return {name: value for name, value in options.items() if value is not None}


def _chat(screen: Screen, run: Run, text: str | None, options: dict[str, Any], n: int) -> None:
    """Print what the model says to `text`."""
    if not text:
        raise UsageError(f"{run.path}: there is nothing to answer; say something, or pipe it in")
    from regard.run import chat

    if n == 1 and "beam" not in options and not screen.json:
        _stream("", chat.stream(run, text, options))
        return
    _show(screen, chat.answers(run, text, options, n), _told(run, options), "\n")


def _answer_all(screen: Screen, run: Run, text: str | None, options: dict[str, Any]) -> None:
    """Print an answer to every input in `text`, one a line, in their order."""
    if not text:
        raise UsageError(f"{run.path}: there is nothing to answer; give {run.task.takes}, or pipe one in")
    given = _changed(options)
    unused = run.task.unused(given)
    if unused:
        flags = ", ".join(f"--{'n' if name == 'n_best' else name.replace('_', '-')}" for name in unused)
        raise UsageError(f"{run.path}: {flags} means nothing to a run of the task {run.task.name}; leave it out")
    answers = run.answers(run.task.inputs(text), **given)
    screen.object({"answers": [answer.to_dict() for answer in answers], "fallbacks": run.fallbacks})
    for answer in answers:
        for line in (answer.text, *(other["text"] for other in answer.details.get("others", ()))):
            screen.written(line)


def _changed(options: dict[str, Any]) -> dict[str, Any]:
    """The options that somebody has set: a task has defaults of its own, of `temperature` and `max_tokens` too."""
    from regard.decoding.text import TextOptions

    defaults = {option.name: option.default for option in fields(TextOptions)}
    return {name: value for name, value in options.items() if name in OWN or value != defaults[name]}


def _show(screen: Screen, texts: Sequence[Text], told: dict[str, Any], between: str) -> None:
    """Print texts. told: what a program is told beside them."""
    screen.object({"texts": [text.to_dict() for text in texts]} | told)
    for number, text in enumerate(texts):
        screen.written((between if number else "") + text.text)


def _stream(prompt: str, pieces: Iterator[str]) -> None:
    """Print each piece as it comes; a Ctrl-C leaves a whole line behind."""
    try:
        for piece in itertools.chain([prompt], pieces):
            sys.stdout.write(visible(piece) if sys.stdout.isatty() else piece)
            sys.stdout.flush()
    finally:
        print(flush=True)


def _prompts(text: str, lines: bool) -> list[str]:
    """One prompt, or one a line."""
    if not lines:
        return [text]
    if not text:
        raise UsageError("--lines: there is no line to continue")
    return [line.removesuffix("\r") for line in text.split("\n")]
