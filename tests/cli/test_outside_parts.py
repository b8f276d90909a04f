"""A mixer, a model, a look and a study from outside the package go where the built-in ones go."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from calling import TEXT, TINY, Outcome, call_here

from regard.core import plugin
from regard.core import registry as models
from regard.errors import UsageError
from regard.explain import look as looks
from regard.explain.registry import looks as all_looks
from regard.serving.provider import RunProvider
from regard.studies import registry as studies
from stranger import written

GENERAL = {"next", "forgetting", "meaning", "drop", "shuffle", "future"}
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
    for name in studies.BUILT_IN:
        studies.study(name)
    monkeypatch.setattr(models, "_entries", dict(models._entries))
    monkeypatch.setattr(studies, "_studies", dict(studies._studies))
    monkeypatch.setattr(looks, "_looks", {module: list(there) for module, there in looks._looks.items()})


def placed(here: Path, name: str, **given: bool) -> tuple[str, ...]:
    """A module in the current folder with its parts called after `name`, and the words that import it."""
    (here / f"{name}_parts.py").write_text(written(name, **given), encoding="utf-8")
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "l.tsv").write_text(LABELLED, encoding="utf-8")
    (here / "t.conll").write_text(TAGGED, encoding="utf-8")
    return ("--import", f"{name}_parts")


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
    use = placed(here, "plainly")
    trained("my.txt", "plainly", use, "r")
    assert every_view("r", use, "the cat sat on the mat") == GENERAL
    assert json.loads(done("explain", "r", "the cat", "--json", *use).out)["view"] == "next"
    for view in ("attention", "gates", "states", "steps", "selection", "senses", "pooling"):
        outcome = call_here("explain", "r", "the cat", "--view", view, *use)
        assert outcome.code == UsageError.exit_code
        assert outcome.err.startswith(f"regard: error: a plainly model has no {view} to show; this run can show next")
        assert len(outcome.err.splitlines()) == 1


def test_a_mixer_that_shows_its_state_gets_the_looks_at_states(here: Path) -> None:
    use = placed(here, "showing", state=True)
    trained("my.txt", "showing", use, "r")
    assert every_view("r", use, "the cat sat on the mat") == GENERAL | {"states", "hidden"}
    told = json.loads(done("explain", "r", "the cat", "--view", "states", "--json", *use).out)
    assert [panel["rows"] for panel in told["panels"] if panel["key"] == "changes"] == [["retention 1", "retention 2"]]


def test_parts_that_feel_order_are_named_though_nobody_knows_them(here: Path) -> None:
    use = placed(here, "ordered")
    trained("my.txt", "ordered", use, "r")
    told = json.loads(done("explain", "r", "the cat sat", "--view", "shuffle", "--json", *use).out)
    (rows,) = [panel["rows"] for panel in told["panels"] if panel["key"] == "parts"]
    assert rows == [["retention 1", "sees only what came before"], ["retention 2", "sees only what came before"]]


@pytest.mark.parametrize("part", ["reader", "reader_mixer"])
def test_a_model_and_a_mixer_from_outside_are_encoders_under_a_classifier_and_a_tagger(here: Path, part: str) -> None:
    use = placed(here, "reader", state=True)
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
    asked = ("train", "l.tsv", "--model", "classifier", "--set", "model.encoder=neraly", "--budget", "1steps")
    outcome = call_here(*asked, *use)
    assert outcome.code == UsageError.exit_code
    assert "unknown encoder 'neraly', did you mean 'nearly'?" in outcome.err
    for name, why in (("cross", "looks at a memory"), ("senses", "must be told context"), ("ngram", "unknown encoder")):
        outcome = call_here(*asked[:-4], "--set", f"model.encoder={name}", "--budget", "1steps")
        assert outcome.code == UsageError.exit_code
        assert why in outcome.err


def test_the_page_looks_into_a_run_of_a_mixer_from_outside(here: Path) -> None:
    use = placed(here, "paged", state=True)
    trained("my.txt", "paged", use, "runs/r")
    provider = RunProvider(lambda: {"r": here / "runs" / "r"}, "cpu")
    offered = provider.offer("r")
    assert set(offered["views"]) == set(offered["limits"]) == GENERAL | {"states", "hidden"}
    for view in offered["views"]:
        assert provider.view("r", view, "the cat sat", {}).to_page()["panels"]
    assert provider.view("r", None, "the cat sat", {}).name == "hidden"


def test_everything_from_outside_is_listed_and_used(here: Path) -> None:
    use = placed(here, "listed", more=True)
    told = json.loads(done("list", "--json", *use).out)
    names = {part: [card["name"] for card in told[part]] for part in told}
    for part, name in (("models", "listed"), ("mixers", "listed_mixer"), ("looks", "listed_length")):
        assert name in names[part], part
    assert names["studies"][-1] == "listed_fading"
    trained("my.txt", "listed", use, "r")
    assert "listed_length" in every_view("r", use, "the cat")
    found = json.loads(done("reproduce", "listed_fading", "--quick", "--json", *use).out)["studies"]
    assert [one["outcome"] for one in found] == ["holds"]


def test_entry_points_of_installed_packages_are_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed(here, "packed", more=True)
    monkeypatch.syspath_prepend(str(here))
    groups = ("regard.models", "regard.mixers", "regard.looks", "regard.studies")
    announced = {group: [EntryPoint("packed", "packed_parts", group)] for group in groups}
    monkeypatch.setattr(plugin, "entry_points", lambda group: announced.get(group, []))
    monkeypatch.setattr(plugin, "_loaded", set())
    told = json.loads(done("list", "--json").out)
    assert "packed" in [card["name"] for card in told["models"]]
    assert "packed_length" in [card["name"] for card in told["looks"]]
    done("reproduce", "packed_fading", "--list")
    broken = EntryPoint("late", "no_such_module", "regard.looks")
    monkeypatch.setattr(plugin, "entry_points", lambda group: [broken] if group == "regard.looks" else [])
    monkeypatch.setattr(plugin, "_loaded", set())
    outcome = call_here("list")
    assert outcome.code == UsageError.exit_code
    assert "the entry point late = no_such_module of regard.looks failed: ModuleNotFoundError" in outcome.err


PLANTED = {
    "decay": ("carried = self.decay ** (t + 1)", "carried = self.decay ** t", "chunk"),
    "future": ("torch.where(age >= 0,", "torch.where(age >= -1,", "causality"),
    "padding": ("left = count[:, None] - 1 - t", "left = x.shape[1] - 1 - t.expand(len(x), -1)", "padding"),
    "count": ("RetentionState(memory, state.count + 1)", "RetentionState(memory, state.count)", "step"),
    "tap": ('"memory": "state"', '"memories": "state"', "record"),
    "meaning": ('"memory": "state"', '"memory": "gate"', "record"),
    "map": ('("values_to_output",)', '("values_to_outputs",)', "record"),
}


@pytest.mark.parametrize("error", PLANTED)
def test_errors_planted_in_a_mixer_from_outside_are_caught(here: Path, error: str) -> None:
    name = f"wrong_{error}"
    before, after, law = PLANTED[error]
    source = written(name, state=True)
    assert before in source
    (here / f"{name}.py").write_text(source.replace(before, after), encoding="utf-8")
    outcome = call_here("check", f"{name}_mixer", "--json", "--import", name)
    assert outcome.code == 1
    broken = {result["law"] for result in json.loads(outcome.out)["results"] if result["held"] is False}
    assert law in broken


def test_the_mixer_without_planted_errors_keeps_every_law(here: Path) -> None:
    use = placed(here, "lawful", state=True)
    done("check", "lawful", "lawful_mixer", "lawful_mixer-fast", *use)
