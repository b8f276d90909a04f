"""`regard show`: a run folder, the folder of a comparison, or the settings of an architecture."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.options import Common, command
from regard.cli.screen import Screen
from regard.core.plugin import typed_name
from regard.data.account import account_from
from regard.errors import UsageError
from regard.terminal.table import human, span, visible

ENDINGS = {None: "not ended", "budget": "spent", "patience": "ended early, without improvement", "fitted": "fitted"}


def add_to(app: typer.Typer) -> None:
    command(app, "show")(show)


def show(
    target: Annotated[
        str,
        typer.Argument(
            help="A run folder, that of a comparison, or the name of a model.", metavar="RUN|NAME", show_default=False
        ),
    ],
    common: Common,
    origin: Annotated[bool, typer.Option("--origin", help="Every setting, its value and where it comes from.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check every file against its hash.")] = False,
) -> None:
    """Show a run, a comparison or a model.

    Of a run: settings, results, checkpoints and what to do next. Of a comparison: its ranking. Of a model: its
    settings and sizes.
    """
    from regard.run import summary

    path = Path(target).expanduser()
    if not path.is_dir() and os.sep not in target and "/" not in target:
        if origin or verify:
            raise UsageError(f"{target}: no such run folder, and --origin and --verify are about runs")
        _show_model(common.screen, summary.model_summary(typed_name(target)))
        return
    if _is_comparison(path):
        if origin or verify:
            raise UsageError(f"{target}: holds a comparison, and --origin and --verify are about one run of it")
        _show_comparison(common.screen, path)
        return
    facts = summary.run_summary(path)
    if verify:
        from regard.training.run_folder import verify_run

        facts["files"] = verify_run(path)
    common.screen.object(facts)
    if origin:
        _show_origins(common.screen, facts["config"])
    else:
        _show_run(common.screen, facts)
    damaged = [f"{name}: {outcome}" for name, outcome in facts.get("files", {}).items() if outcome != "ok"]
    if verify:
        common.screen.line(f"{len(facts['files']) - len(damaged)} of {len(facts['files'])} files verified")
    if damaged:
        from regard.errors import CheckpointError

        raise CheckpointError(f"{len(damaged)} damaged: {'; '.join(damaged)}")


def _is_comparison(path: Path) -> bool:
    from regard.studies.comparison import is_comparison

    return is_comparison(path)


def _show_comparison(screen: Screen, path: Path) -> None:
    """Its report, as it was printed when it was made."""
    from regard.errors import CheckpointError
    from regard.studies.comparison import from_report, read_report
    from regard.studies.summary import lines
    from regard.terminal.table import width_of

    told = read_report(path)
    try:
        text = lines(from_report(told, path), width_of(sys.stdout), brief=screen.quiet)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        raise CheckpointError(
            f"{path}: its report is not one that this version writes ({type(error).__name__}: {error}); compare again"
        ) from None
    screen.object(told)
    for line in text:
        screen.line(visible(line))


def _kind(config: dict[str, Any]) -> str:
    """The size of a run's model, or the run that it was started from."""
    start = config.get("train", {}).get("start")
    return str(config["model"].get("size")) if start is None else f"from {start}"


def _show_run(screen: Screen, facts: dict[str, Any]) -> None:
    from regard.run.index import task_facts
    from regard.training.saved_config import notes_of

    config = facts["config"]
    model, data, where = config["model"], config["data"], shlex.quote(facts["run"])
    tokenizer = facts["tokenizer"]
    tokens = f" as {tokenizer['kind']}, {tokenizer['vocab_size']} in all" if tokenizer else ""
    rows = [
        ("model", f"{model.get('name')} {_kind(config)}, {facts['parameters']:,} parameters"),
        *([("state", _state(facts["state"]))] if facts["state"] else []),
        ("task", facts["task"]),
        ("data", f"{data.get('path')}{tokens}"),
        *_understood(config.get("understood")),
    ]
    if "fit" in config:
        fit = config["fit"]
        kept = ", ".join(f"{n:,}" for n in fit.get("kept", ()))
        told = f"n-grams by order: {kept}" if kept else fit.get("told", "")
        rows[0] = ("model", ", ".join(filter(None, [str(model.get("name")), visible(told)])))
        rows.append(("fitted", f"to {fit['tokens']:,} {task_facts(facts['task']).unit} at once"))
    elif "imported" in config:
        told = config["imported"]
        rows[0] = ("model", f"{model.get('name')}, {facts['parameters']:,} parameters")
        rows[-1] = ("tokens", tokens.removeprefix(" as ")) if rows[-1][0] == "data" else rows[-1]
        rows += [(key, visible(told[key])) for key in ("source", "architecture", "revision") if key in told]
    else:
        rows.append(("budget", f"{config['train']['budget']}, {ENDINGS.get(facts['ended'], facts['ended'])}"))
        rows.append(("train.lr", f"{_value(config['train'].get('lr'))}, {config.get('origins', {}).get('train.lr')}"))
        rows.append(("checkpoints", ", ".join(map(str, facts["checkpoints"])) or "none"))
    if facts["last"]:
        last = facts["last"]
        rows.append(("trained", f"{last['step']:,} steps, {human(last['tokens'])} tokens, {span(last['seconds'])}"))
        if "padding" in last:
            rows.append(("padding", f"{last['padding']:.1%} of the batches"))
        rows.append(("loss", f"{last['loss']:.4f}"))
    if facts["best"]:
        rows.append(("held-out loss", f"{facts['best']['valid_loss']:.4f} at step {facts['best']['step']:,}"))
        scores = [(name, value) for name, value in facts["best"].items() if name.startswith("valid_")]
        rows += [(f"held-out {name[6:]}", f"{value:.4g}") for name, value in scores if name != "valid_loss"]
    screen.table(("run", facts["run"]), rows)
    for note in notes_of(config):
        screen.line(f"Note: {note}")
    screen.line()
    screen.line(f"regard generate {where} {task_facts(facts['task']).typed_example}")
    screen.line(f"regard evaluate {where}{' DATA' if 'imported' in config else ''}")
    screen.line(f"regard show {where} --origin")
    if not facts["ended"]:
        screen.line(f"regard train --resume --out {where}")


def _understood(told: object) -> list[tuple[str, str]]:
    """What was understood of the data, of a run that tells it."""
    account = account_from(told) if isinstance(told, dict) else None
    if account is None:
        return []
    columns = ", ".join(f"{role} = {name}" for role, name in account.columns.items())
    ignored = f"ignored: {', '.join(account.ignored)}" if account.ignored else ""
    told_columns = "; ".join(filter(None, [columns, ignored]))
    rows = [("target", account.target), ("columns", told_columns), ("read", account.counts)]
    return [(name, visible(value)) for name, value in rows if value]


def _state(state: dict[str, Any]) -> str:
    growth = f"after {state['length']} tokens, growing" if state["grows"] else "constant"
    return f"{human(state['bytes'], 'B')} for one text, {growth}"


def _show_origins(screen: Screen, config: dict[str, Any]) -> None:
    sections = {"data": config["data"], "train": config["train"], "model": config["model"].get("settings", {})}
    sections["model"] |= {key: config["model"].get(key) for key in ("name", "size")}
    rows = []
    for key, origin in config.get("origins", {}).items():
        section, _, name = key.partition(".")
        rows.append((key, _value(sections[section].get(name)), origin))
    screen.table(("setting", "value", "origin"), rows)


def _show_model(screen: Screen, facts: dict[str, Any]) -> None:
    from regard.run.index import task_facts
    from regard.tasks import names

    screen.object(facts)
    screen.line(f"{facts['model']}: {facts['summary']}")
    screen.line(f"task {facts['task']}, shape {facts['shape']}")
    screen.line(facts["paper"])
    screen.line()
    sizes = facts["sizes"]
    rows = [
        (f"model.{key}", _value(default), *(_value(sizes[size][key]) if key in sizes[size] else "" for size in sizes))
        for key, default in facts["settings"].items()
    ]
    rates = {size: _value(rate) if rate != facts["training"].get("lr") else "" for size, rate in facts["rates"].items()}
    rows += [
        (f"train.{key}", _value(value), *(rates[size] if key == "lr" else "" for size in sizes))
        for key, value in facts["training"].items()
    ]
    if any(facts["parameters"].values()):
        rows.append(("parameters", "", *(human(facts["parameters"][size]) for size in sizes)))
    if len(set(facts["vocabulary"].values())) > 1:
        rows.append(("over a vocabulary of", "", *(f"{facts['vocabulary'][size]:,}" for size in sizes)))
    screen.table(("setting", "default", *sizes), rows)
    if facts["published"]:
        screen.line(f"The paper tells {human(facts['published'])} parameters.")
    data = task_facts(facts["task"]).data_example if facts["task"] in names() else "DATA"
    screen.hint(f"regard train {data} --model {facts['model']} --size small --set model.KEY=VALUE")


def _value(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
