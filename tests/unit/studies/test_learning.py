"""Studies that train: their rules, their data and what is exact in them, on made-up numbers and without training."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from regard.core.model import logits_of
from regard.core.registry import build
from regard.data.batch import NOT_COUNTED
from regard.studies.claims import bert_layers, length, mad, meaning, parallel
from regard.studies.claims import in_context as prompting
from regard.studies.claims import senses as sense_claim
from regard.studies.claims.depth import LETTERS, Depth, _random_labels
from regard.studies.claims.study import Found, Lab, Study

LAB = Lab("quick", 0, Path())


def judged(study: Study, *found: Found) -> str:
    ElementTree.fromstring(study.figure(found))
    return study.judge(found).outcome


def speeds(rnn: float = 0.1, attention: float = 9.0) -> dict:
    found: dict[str, Any] = {
        name: {"share": 0.5, "longest": 5.0, "speeds": [10.0, 5.0]} for name in parallel._mixers(32)
    }
    found["rnn"] = found["rnn"] | {"share": rnn}
    found["attention"] = found["attention"] | {"longest": attention}
    return found | {"lengths": [8, 512]}


def test_parallel():
    study = parallel.Parallel()
    assert judged(study, speeds()) == "holds"
    assert judged(study, speeds(rnn=0.6)) == "does not hold"
    assert judged(study, speeds(attention=2.0), speeds()) == "not settled"


def lengths(refused: bool = True, learned: float = 1.0, alibi: float = 0.0) -> dict:
    rises = dict.fromkeys(length.POSITIONS, 0.5) | {"learned": learned, "alibi": alibi}
    numbers = {"within": 1.0, "twice": 1.5, "farther": 2.0, "curve": [1.0, 2.0]}
    return {"refused": refused} | {kind: numbers | {"rise": rise} for kind, rise in rises.items()}


def test_length():
    study = length.Length()
    assert judged(study, lengths()) == "holds"
    assert judged(study, lengths(refused=False)) == "does not hold"
    assert judged(study, lengths(learned=0.1)) == "does not hold"
    assert judged(study, lengths(alibi=0.6), lengths()) == "not settled"
    assert length._refuses(10)


def test_losses_by_place_are_those_of_the_tokens():
    torch.manual_seed(0)
    model = build("gpt", vocab_size=7, size="tiny", position="alibi").eval()
    rows = torch.randint(7, (20, 6))
    with torch.no_grad():
        chances = logits_of(model, rows[:, :-1]).log_softmax(-1)
    expected = -chances.gather(2, rows[:, 1:, None])[..., 0].mean(0)
    assert length.by_place(model, rows) == pytest.approx(expected.tolist(), rel=1e-5)


def depths(both: float = 1.0, norm: float = 1.2, bare: float = 3.0) -> dict:
    found = {"depths": [8], "residual": {"8": both}, "bare": {"8": bare}, "without norm": norm, "without both": 4.0}
    return found | {"relabel": {"residual": 1.0, "bare": 1.1}}


def test_depth():
    study = Depth()
    assert judged(study, depths()) == "holds"
    assert judged(study, depths(norm=0.9)) == "does not hold"
    assert judged(study, depths(bare=1.05)) == "does not hold"
    assert judged(study, depths(both=3.0), depths()) == "not settled"


def test_random_labels_are_a_function_of_two_letters():
    batch = _random_labels(LAB)
    told: dict[tuple[int, int], int] = {}
    for step in range(20):
        letters, labels = (part.tolist() for part in batch(step))
        for row, answers in zip(letters, labels, strict=True):
            for place, answer in enumerate(answers):
                assert told.setdefault((row[place - 1], row[place]), answer) == answer
    assert len(told) > LETTERS**2 / 2


def contexts(before: float = 0.5, cue: float = 0.4) -> dict:
    looks = {"cue": cue, "other": 0.1}
    return {
        "bank": {"chance": 0.5, "before": before, "after": 1.0, "looks": looks},
        "she": {"chance": 0.25, "before": 0.25, "after": 1.0, "looks": looks},
    }


def test_meaning():
    study = meaning.Meaning()
    assert judged(study, contexts()) == "holds"
    assert judged(study, contexts(before=0.7)) == "does not hold"
    assert judged(study, contexts(cue=0.05), contexts()) == "not settled"


@pytest.mark.parametrize("make", [meaning.bank_sentence, meaning.she_sentence])
def test_a_sentence_has_its_word_after_its_cue_and_says_the_class_nowhere_else(make: Any):
    random = Random(1)
    for _ in range(50):
        words, place, cue, number = make(random)
        assert len(words) == meaning.LENGTH
        assert words[place] in ("bank", "she")
        assert cue < place
        kinds = list(meaning.SENSES if words[place] == "bank" else meaning.LIKES)
        assert words[cue] == kinds[number]
        assert sum(word in kinds for word in words) == 1


def senses(last: float = 9.0, error: float = 1e-6) -> dict:
    perplexity = {"1": 30.0, "4": 12.0, "16": last}
    return {"perplexity": perplexity, "transformer": 10.0, "linear_error": 0.0, "scaling_error": error, "contexts": 9}


def test_backpack():
    study = sense_claim.Backpack()
    assert judged(study, senses()) == "holds"
    assert judged(study, senses(last=11.0)) == "does not hold"
    assert judged(study, senses(last=13.0)) == "does not hold"
    assert judged(study, senses(error=1e-2), senses()) == "not settled"


def test_a_backpack_is_linear_in_its_senses():
    torch.manual_seed(0)
    model = build("backpack", vocab_size=11, size="tiny").double().eval()
    found = sense_claim.linearity(model, torch.randint(11, (3, 9)))
    assert found["linear_error"] < 1e-12
    assert found["scaling_error"] < 1e-12


def in_context(large: float = 0.9, lstm: float = 0.4, late: float = 0.6) -> dict:
    curve = [0.1, 0.3, *[late] * 14, large]
    found = {"large": {"curve": curve, "gain": large - 0.1}, "small": {"curve": curve, "gain": 0.2}}
    return found | {"lstm": {"curve": curve, "gain": lstm}}


def test_in_context():
    study = prompting.InContext()
    assert judged(study, in_context()) == "holds"
    assert judged(study, in_context(lstm=0.85)) == "does not hold"
    assert judged(study, in_context(late=0.2), in_context()) == "not settled"


def test_prompts_follow_one_mapping_and_held_out_ones_are_never_seen():
    seen, held = prompting.mappings(0)
    assert not set(seen) & set(held)
    assert len(seen) + len(held) == 24
    inputs, targets = prompting.prompts(held, 4, 30)
    for row, asked in zip(inputs.tolist(), targets.tolist(), strict=True):
        text = [row[0], *[a if a != NOT_COUNTED else b for a, b in zip(asked, [*row[1:], -1], strict=True)]]
        pairs = {(text[i + j], text[i + 2 + j] - prompting.LETTERS) for i in range(0, 68, 4) for j in (0, 1)}
        assert any(pairs <= set(enumerate(one)) for one in held)
        assert sum(a != NOT_COUNTED for a in asked) == 34


def test_the_curve_counts_strings_whose_letters_are_both_right(monkeypatch: pytest.MonkeyPatch):
    inputs, targets = prompting.prompts(prompting.mappings(0)[0], 1, 8)
    told = targets.clone()
    told[:, 2] = 0  # the second letter of the first image
    logits = torch.nn.functional.one_hot(told.clamp(min=0), 2 * prompting.LETTERS).float()
    monkeypatch.setattr(prompting, "logits_of", lambda *_: logits)
    model: Any = None
    assert prompting.by_examples(model, inputs, targets) == [0.0, *[1.0] * 16]


def bert(best: int = 0, rise: float = 0.01, vertical: int = 1) -> dict:
    position = [0.9 if i == best else 0.5 for i in range(5)]
    pruning = {"heads": 16, "removed": 5, "rise": rise}
    return {"position": position, "class": position, "pruning": pruning} | {
        "patterns": {"diagonal": 1, "vertical": vertical}
    }


def test_bertology():
    study = bert_layers.Bertology()
    assert judged(study, bert(best=2)) == "holds"
    assert judged(study, bert(best=3)) == "does not hold"
    assert judged(study, bert(rise=0.2)) == "does not hold"
    assert judged(study, bert(vertical=0), bert()) == "not settled"


def test_a_removed_head_says_nothing():
    torch.manual_seed(0)
    model = build("bert", vocab_size=9, size="tiny", n_heads=bert_layers.HEADS).eval()
    rows = torch.randint(9, (2, 6))
    mixer = bert_layers._attentions(model)[0]
    before = logits_of(model, rows)
    with bert_layers._removed([(mixer, 1)]):
        silenced = logits_of(model, rows)
    width = mixer.config.width
    mixer.heads_to_output.weight.data[:, width : 2 * width] = 0
    assert torch.allclose(logits_of(model, rows), silenced, atol=1e-5)
    assert not torch.allclose(before, silenced, atol=1e-5)


def probes(correlation: float) -> dict:
    shares = dict.fromkeys(mad.MODELS, 0.5)
    return {"right": {"recall": shares}, "mean": shares, "loss": shares, "correlation": correlation}


def test_mad():
    study = mad.Mad()
    assert judged(study, probes(-0.9)) == "holds"
    assert judged(study, probes(0.1)) == "does not hold"
    assert judged(study, probes(0.1), probes(-0.9)) == "not settled"


def test_rank_correlation_with_equals():
    """Ranks 0.5 0.5 2 3 and 3 2 1 0: covariance -4.5, spreads 4.5 and 5."""
    one = {"a": 1.0, "b": 1.0, "c": 5.0, "d": 9.0}
    other = {"a": 40.0, "b": 30.0, "c": 2.0, "d": 1.0}
    assert mad.rank_correlation(one, other) == pytest.approx(-4.5 / (4.5 * 5) ** 0.5)
    assert mad.rank_correlation(one, dict.fromkeys(one, 1.0)) == 0.0
