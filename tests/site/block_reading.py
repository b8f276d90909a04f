"""The blocks of the pages of this repository, and how a command in them is made short enough for a test."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from calling import TINY

from regard.cli.main import application, valued, with_values, written_out

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```([a-z]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`(regard [a-z]+[^`]*)`(?!`)")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "benchmarks/results/*.md",
    "examples/*/README.md",
)
STEPS = (*TINY, "--budget", "2steps", "--quiet")
SMALL_WORLD = "train=20&valid=4"


def pages() -> list[str]:
    """The pages of the site by their path in the repository."""
    return sorted({str(path.relative_to(ROOT)) for pattern in PAGES for path in ROOT.glob(pattern)})


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and content of each block; commands have no language."""
    return FENCED.findall(text(page))


def lines(page: str) -> list[str]:
    """The lines of the blocks of commands."""
    return [line for language, block in blocks(page) if language == "" for line in block.splitlines() if line.strip()]


def spoken(page: str) -> list[str]:
    """The commands that stand in sentences and tables."""
    found = SPAN.findall(FENCED.sub("", text(page)))
    return [" ".join(one.split()).replace("\\|", "|") for one in found]


def words(line: str) -> list[str]:
    """The words of a line after `regard`, without what the shell does with input and output."""
    argv = shlex.split(re.split(r" [<>] ", line)[0], comments=True)
    return argv[1:]


def understand(argv: list[str]) -> None:
    """Let the command read its words, as it does before it runs. What it does not know is an error."""
    root: Any = typer.main.get_command(application())
    argv = written_out(argv)
    command = root.commands[argv[0]]
    command.make_context(f"regard {argv[0]}", with_values(argv[1:], valued(command)), obj=argv)


def known_options(argv: list[str]) -> Iterator[str]:
    """The options among words that its command does not have."""
    root: Any = typer.main.get_command(application())
    if argv[0] not in root.commands:
        yield argv[0]
        return
    known = {name for one in root.commands[argv[0]].params for name in (*one.opts, *one.secondary_opts)}
    for word in argv[1:]:
        option = word.partition("=")[0]
        if re.fullmatch(r"--[a-z][a-z-]*", option) and option not in known | {"--help", "--import", "--debug"}:
            yield option


def short(argv: list[str]) -> list[str]:
    """The same command for a test: small worlds, tiny models, a few steps, one seed."""
    argv = [f"{word}?{SMALL_WORLD}" if word.startswith("world:") and "?" not in word else word for word in argv]
    if argv[0] == "train":
        more = ["--budget", "20steps", "--quiet"] if "--resume" in argv else STEPS
        return [*argv, *(more[2:] if "--from" in argv else more)]  # which has the size of what it begins with
    if argv[0] == "compare":
        models = [] if "--models" in argv else ["--models", "fnn?lr=0.01"]
        world = [] if argv[1:] and not argv[1].startswith("-") else ["world:witness?train=40&valid=8"]
        return [*argv, *world, *models, "--size", "tiny", "--budget", "8steps", "--seeds", "1", "--force"]
    if argv[0] == "reproduce" and "--report" not in argv and "--list" not in argv:
        return [*argv, "--list"]
    return argv
