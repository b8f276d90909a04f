"""Where tags mark spans, models are ranked by the F1 of spans, and every score is told by its own name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.run.summary import run_summary
from regard.studies.board import LineBoard
from regard.studies.comparison import from_report, read_report
from regard.training.display import Silent
from regard.training.metrics import evaluations
from regard.training.run_folder import METRICS

# A word is a part of a name where the one before it is, and mostly it is none, so that O is right most often.
NAMED, PLAIN = "mr B-PER I-PER", "the O O"


def sentence(number: int) -> str:
    word, (before, first, second) = f"w{number % 7}", (NAMED if number % 4 == 0 else PLAIN).split()
    lines = [f"{before} {first}", f"{word} {second}", *(f"x{number * n % 11} O" for n in range(3))]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spans") / "names.conll"
    path.write_text("\n\n".join(map(sentence, range(240))) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def found(data: Path) -> Any:
    given: dict[str, Any] = {"budget": "4steps", "seeds": 1, "board": LineBoard(None)}
    return regard.compare(["most_frequent", "hmm"], data, out=data.parent / "c", **given)


def test_models_are_ranked_by_the_spans_that_they_find(found: Any) -> None:
    assert found.protocol.metric == "span_f1"
    assert [one.label for one in found.order] == ["hmm", "most_frequent"]
    for one in found.order:
        scores = found.row(one.label).runs[0]["scores"]
        assert one.mean == pytest.approx(scores["span_f1"])
    assert found.order[1].mean < found.row("most_frequent").runs[0]["scores"]["accuracy"] - 0.1
    assert found.verdict.p
    assert found.verdict.examples > 1


def test_the_report_says_by_what_and_the_comparison_goes_on(found: Any, data: Path) -> None:
    told = read_report(found.out)
    assert from_report(told, found.out).protocol == found.protocol
    again = regard.compare(
        ["most_frequent", "hmm"], data, out=found.out, budget="4steps", seeds=1, board=LineBoard(None)
    )
    assert again.protocol == found.protocol


def test_tags_that_mark_no_spans_are_ranked_by_accuracy(tmp_path: Path) -> None:
    found = regard.compare(
        ["most_frequent"], "world:tags?train=60&valid=20", out=tmp_path / "c", budget="4steps", board=LineBoard(None)
    )
    assert found.protocol.metric == "accuracy"
    assert found.protocol.judged_by is None


def test_a_fitted_run_and_an_ensemble_tell_the_score_that_they_have(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(Silent, "note", lambda self, text: notes.append(text))
    fitted = regard.train("hmm", data, out=tmp_path / "h", quiet=True)
    assert '"valid_span_f1"' in (fitted.path / METRICS).read_text(encoding="utf-8")
    regard.train(None, data, size="tiny", budget="8steps", ensemble=2, out=tmp_path / "e", quiet=True)
    kept = (tmp_path / "e" / METRICS).read_text(encoding="utf-8")
    assert "valid_span_f1" in kept
    assert "valid_accuracy" not in kept
    assert any(note.startswith("span_f1 ") and "together" in note for note in notes)


def test_the_weights_that_were_kept_are_those_of_the_best_span_f1(data: Path, tmp_path: Path) -> None:
    run = regard.train(None, data, size="tiny", budget="40steps", evaluate_every=10, out=tmp_path / "r", quiet=True)
    taken = [one["valid_span_f1"] for one in evaluations(run.path)]
    assert len(taken) > 2
    assert run_summary(run.path)["best"]["valid_span_f1"] == max(taken)
