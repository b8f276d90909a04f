"""A mixer, a model, a look and a study of `--import` go where the built-in ones go; errors planted in them are caught.

They are those of `examples/plugin`, under other names, so that what one test imports is not there in the next.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
from calling import TEXT, TINY, Outcome, call_here
from torch.nn import Module

from plugin_example import copied
from regard import tasks
from regard.core import plugin
from regard.core import registry as models
from regard.errors import UsageError
from regard.explain import look as looks
from regard.explain import mechanism
from regard.explain.registry import looks as all_looks
from regard.serving.provider import RunProvider
from regard.studies import registry as studies

GENERAL = {"next", "flow", "forgetting", "meaning", "lens", "neurons", "drop", "shuffle", "future"}
LABELLED = "text\tlabel\n" + "".join(
    f"a {word} day for the {one} and the {other}\t{label}\n"
    for word, label in (("good", "good"), ("bad", "bad"))
    for one in ("cat", "dog", "hen", "fox", "bird")
    for other in ("mat", "log", "hill", "roof")
)
TAGGED = "\n".join(f"the\tD\n{one}\tN\nsees\tV\na\tD\n{other}\tN\n" for one in "abcdef" for other in "ghij")


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it, but for the kinds of configs, which are named anew each time.

    Built-in parts are registered before: those that a test is the first to import would be gone with it.
    """
    models.load_kinds()
    all_looks()
    tasks.tasks()
    mechanism.mechanism_of(Module())
    for name in studies.BUILT_IN:
        studies.study(name)
    monkeypatch.setattr(models, "_entries", dict(models._entries))
    monkeypatch.setattr(tasks, "_registered", dict(tasks._registered))
    monkeypatch.setattr(mechanism, "_mechanisms", dict(mechanism._mechanisms))
    monkeypatch.setattr(studies, "_studies", dict(studies._studies))
    monkeypatch.setattr(looks, "_looks", {module: list(there) for module, there in looks._looks.items()})


SILENT = [('{"memory": "state"}', "{}")]


def placed(
    here: Path, name: str, changes: Sequence[tuple[str, str]] = (), modules: Sequence[str] = ("retnet",)
) -> tuple[str, ...]:
    """The parts in the current folder, called after `name`, and the words that import some of their modules."""
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "l.tsv").write_text(LABELLED, encoding="utf-8")
    (here / "t.conll").write_text(TAGGED, encoding="utf-8")
    package = copied(here, name, changes)
    return tuple(word for module in modules for word in ("--import", f"{package}.{module}"))


def done(*argv: str) -> Outcome:
    outcome = call_here(*argv)
    assert outcome.code == 0, (argv, outcome.err)
    return outcome


def trained(data: str, model: str, use: tuple[str, ...], out: str) -> None:
    done("train", data, "--model", model, "--budget", "2steps", "--quiet", "--out", out, *TINY, *use)


def views(run: str, use: tuple[str, ...]) -> set[str]:
    return set(json.loads(done("explain", run, "--list", "--json", *use).out)["views"])


def every_view(run: str, use: tuple[str, ...], text: str) -> set[str]:
    """Every view that is offered of a run is made, and so is its own."""
    offered = views(run, use)
    for view in offered:
        asked = ("--compare", text, text, "--word", text.split()[1]) if view == "meaning" else (text,)
        told = json.loads(done("explain", run, *asked, "--view", view, "--json", *use).out)
        assert told["panels"], view
    assert json.loads(done("explain", run, text, "--json", *use).out)["view"] in offered
    return offered


def test_a_mixer_that_says_nothing_of_itself_gets_the_general_looks(here: Path) -> None:
    use = placed(here, "plainly", SILENT)
    trained("my.txt", "plainly_retnet", use, "r")
    assert every_view("r", use, "the cat sat on the mat") == GENERAL
    assert json.loads(done("explain", "r", "the cat", "--json", *use).out)["view"] == "next"
    for view in ("attention", "gates", "states", "steps", "selection", "senses", "pooling"):
        outcome = call_here("explain", "r", "the cat", "--view", view, *use)
        assert outcome.code == UsageError.exit_code
        assert outcome.err.startswith(
            f"regard: error: a plainly_retnet model has no {view} to show; this run can show "
        )
        assert len(outcome.err.splitlines()) == 1


def test_a_mixer_that_shows_its_state_gets_the_looks_at_states(here: Path) -> None:
    use = placed(here, "showing")
    trained("my.txt", "showing_retnet", use, "r")
    assert every_view("r", use, "the cat sat on the mat") == GENERAL | {"states", "hidden"}
    told = json.loads(done("explain", "r", "the cat", "--view", "states", "--json", *use).out)
    assert [panel["rows"] for panel in told["panels"] if panel["key"] == "changes"] == [["retention 1", "retention 2"]]


def test_parts_that_feel_order_are_named_though_nobody_knows_them(here: Path) -> None:
    use = placed(here, "ordered")
    trained("my.txt", "ordered_retnet", use, "r")
    told = json.loads(done("explain", "r", "the cat sat", "--view", "shuffle", "--json", *use).out)
    (rows,) = [panel["rows"] for panel in told["panels"] if panel["key"] == "parts"]
    assert rows == [["retention 1", "sees only what came before"], ["retention 2", "sees only what came before"]]


@pytest.mark.parametrize("part", ["reader_retnet", "reader_retention"])
def test_a_model_and_a_mixer_from_outside_are_encoders_under_a_classifier_and_a_tagger(here: Path, part: str) -> None:
    use = placed(here, "reader")
    trained("l.tsv", part, use, "l")
    trained("t.conll", part, use, "t")
    for run, name in (("l", "classifier"), ("t", "tagger")):
        about = json.loads((here / run / "config.json").read_text())["model"]
        assert (about["name"], about["settings"]["encoder"]) == (name, part)
        assert "bidirectional" in json.dumps(about["config"])
        done("evaluate", run, *use)
    assert {"pooling", "answer", "states", "hidden"} <= every_view("l", use, "a good day")
    assert {"answer", "future", "states"} <= every_view("t", use, "the a sees")
    forward = ("--set", "model.bidirectional=false", "--size", "tiny", "--budget", "1steps", "--quiet", *use)
    done("train", "l.tsv", "--model", part, "--out", "one", *forward)
    assert '"bidirectional"' not in json.dumps(
        json.loads((here / "one" / "config.json").read_text())["model"]["config"]
    )


def test_an_encoder_that_nobody_knows_is_refused_with_the_nearest(here: Path) -> None:
    use = placed(here, "nearly")
    asked = ("train", "l.tsv", "--model", "classifier", "--set", "model.encoder=neraly_retention", "--budget", "1steps")
    outcome = call_here(*asked, *use)
    assert outcome.code == UsageError.exit_code
    assert "unknown encoder 'neraly_retention', did you mean 'nearly_retention'?" in outcome.err
    for name, why in (("cross", "looks at a memory"), ("senses", "must be told context"), ("ngram", "unknown encoder")):
        outcome = call_here(*asked[:-4], "--set", f"model.encoder={name}", "--budget", "1steps")
        assert outcome.code == UsageError.exit_code
        assert why in outcome.err


def test_the_page_looks_into_a_run_of_a_mixer_from_outside(here: Path) -> None:
    use = placed(here, "paged")
    trained("my.txt", "paged_retnet", use, "runs/r")
    provider = RunProvider(lambda: {"r": here / "runs" / "r"}, "cpu")
    offered = provider.offer("r")
    assert set(offered["views"]) == set(offered["limits"]) == GENERAL | {"states", "hidden"}
    for view in offered["views"]:
        assert provider.view("r", view, "the cat sat", {}).to_page()["panels"]
    assert provider.view("r", None, "the cat sat", {}).name == "hidden"


def test_everything_from_outside_is_listed_and_used(here: Path) -> None:
    use = placed(here, "listed", modules=("retnet", "ordinal", "half_life"))
    told = json.loads(done("list", "--json", *use).out)
    names = {part: [card["name"] for card in told[part]] for part in told}
    for part in ("models", "tasks", "mixers", "looks", "studies"):
        assert any(name.startswith("listed_") for name in names[part]), part
    trained("my.txt", "listed_retnet", use, "r")
    assert "listed_decay" in every_view("r", use, "the cat")
    found = json.loads(done("reproduce", "listed_half_life", "--quick", "--json", *use).out)["studies"]
    assert [one["outcome"] for one in found] == ["holds"]


@pytest.mark.parametrize("group", ["models", "mixers", "tasks", "looks", "studies"])
def test_an_entry_point_that_fails_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    broken = EntryPoint("late", "no_such_module", f"regard.{group}")
    monkeypatch.setattr(plugin, "entry_points", lambda group: [broken] if group == broken.group else [])
    monkeypatch.setattr(plugin, "_loaded", set())
    outcome = call_here("list")
    assert outcome.code == UsageError.exit_code
    assert f"the entry point late = no_such_module of regard.{group} failed: ModuleNotFoundError" in outcome.err


# What is changed, and the law by which that is found.
PLANTED: dict[str, tuple[list[tuple[str, str]], str]] = {
    "decay_of_the_past": ([("_share(log_decay, place + 1)", "_share(log_decay, place)")], "chunk"),
    "decay_in_steps": ([("share * state.memory + k", "state.memory + k")], "step"),
    "future": ([("masked_fill(age < 0, 0)", "masked_fill(age < -1, 0)")], "causality"),
    "padding": ([("real[:, part].sum(1)", "real[:, part].logical_or(real).sum(1)")], "padding"),
    "count": ([("RetentionState(memory, state.count + 1)", "RetentionState(memory, state.count)")], "step"),
    "still": (
        [("state.count + 1", "state.count"), ("advance(state.count, x.shape[1], context.lengths)", "state.count")],
        "position",
    ),
    "tap": ([('"memory": "state"', '"memories": "state"')], "record"),
    "meaning": ([('"memory": "state"', '"memory": "gate"')], "record"),
    "map": ([('("values_to_output",)', '("values_to_outputs",)')], "record"),
    "reach": ([("writes_to_stream = (", "reach = 2\n    writes_to_stream = (")], "reach"),
    "half": ([("dtype=self.dtype_of_sums()", "dtype=torch.float16")], "precision"),
}


@pytest.mark.parametrize("error", PLANTED)
def test_errors_planted_in_a_mixer_from_outside_are_caught(here: Path, error: str) -> None:
    changes, law = PLANTED[error]
    module = copied(here, f"wrong_{error}", changes)
    outcome = call_here("check", f"wrong_{error}_retention", "--json", "--import", f"{module}.retention")
    assert outcome.code == 1
    broken = {result["law"] for result in json.loads(outcome.out)["results"] if result["held"] is False}
    assert law in broken


def test_retention_is_the_sum_of_its_paper(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(here))
    retention: Any = importlib.import_module(f"{copied(here, 'summed')}.retention")
    mixer = retention.RetentionConfig(6, 2, exponent=1.0, chunk=3).build().double()
    x = torch.randn(1, 8, 6, dtype=torch.float64)
    q, k, v = (part.reshape(8, 2, 3) for part in (x[0] @ mixer.input_to_heads.weight.T).chunk(3, -1))
    expected = torch.zeros(8, 2, 3, dtype=torch.float64)
    for t in range(8):
        for s in range(t + 1):
            for head, gamma in enumerate((0.5, 0.75)):  # 1 - 2^-1, 1 - 2^-2
                expected[t, head] += gamma ** (t - s) * (q[t, head] @ k[s, head]) / 3**0.5 * v[s, head]
    torch.testing.assert_close(mixer(x)[0][0], expected.flatten(1) @ mixer.values_to_output.weight.T)


def test_the_name_of_a_task_is_taken_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(here))
    ordinal: Any = importlib.import_module(f"{copied(here, 'taken')}.ordinal")
    with pytest.raises(UsageError, match=r"the task name 'taken_ordinal' is taken by taken_parts\.ordinal"):
        tasks.register_task(type("Other", (ordinal.Ordinal,), {"__module__": "elsewhere"}))
    with pytest.raises(UsageError, match="the task name 'labelled' is taken by"):
        tasks.register_task(type("Other", (ordinal.Ordinal,), {"__module__": "elsewhere", "name": "labelled"}))
