"""The rules of the studies on the toy language pair, on numbers made up for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from regard.data.settings import DataSettings
from regard.studies.claims.deep_lstm import Depth
from regard.studies.claims.looking_back import Search
from regard.studies.claims.passing import Passing
from regard.studies.claims.recall import Copier, copying, symbol_rows
from regard.studies.claims.reversal import Reversed
from regard.studies.claims.study import Study
from regard.studies.claims.transformer import Attention, unscaled
from regard.studies.claims.translating import GATED, matched, sentences, spec_of
from regard.studies.entrant import parameters
from regard.tasks.pairs import Pairs

Found = dict[str, Any]


def searched(
    vector: tuple[float, ...] = (90, 60, 20), looking: tuple[float, ...] = (99, 95, 50), aligned: float = 0.95
) -> Found:
    lengths = ("4", "8", "16")
    bleu = {"bahdanau": looking, "seq2seq": vector}
    return {"trained": 8, "aligned": aligned} | {
        name: {"bleu": dict(zip(lengths, values, strict=True))} for name, values in bleu.items()
    }


def read(perplexity: float = 2.0, bleu: float = 60.0) -> Found:
    beams = {"1": 1.0, "2": 1.0, "12": 1.0}
    return {
        "forward": {"perplexity": 3.0, "bleu": 50.0, "beams": beams},
        "reversed": {"perplexity": perplexity, "bleu": bleu, "beams": beams},
    }


def passed(bleu: float = 90.0, perplexity: float = 1.5) -> Found:
    ways: Found = {way: {"bleu": 60.0, "perplexity": 3.0} for way in ("first", "every", "both")}
    return ways | {"attention": {"bleu": bleu, "perplexity": perplexity}}


def deep(plain: float = 1.5, residual: float = 1.005, ratio: float = 0.99, uncovered: float = 0.1) -> Found:
    beams = {name: {"ratio": 0.95, "uncovered": 0.2} for name in ("none", "alpha", "beta", "both")}
    beams["alpha"]["ratio"], beams["beta"]["uncovered"] = ratio, uncovered
    return {"plain": {"4": 1.2, "8": plain}, "residual": {"4": 1.0, "8": residual}, "beams": beams}


def attended(**changes: float) -> Found:
    bleu = {"transformer": 90.0, "one head": 80.0, "eight heads": 91.0, "learned positions": 88.0}
    bleu |= {"no positions": 40.0, "no smoothing": 90.5, "bahdanau": 85.0}
    bleu |= {name.replace("_", " "): value for name, value in changes.items()}
    found: Found = {name: {"bleu": value, "perplexity": 2.0} for name, value in bleu.items()}
    found["no smoothing"]["perplexity"] = changes.get("sharp", 1.5)
    speed = {"transformer": changes.get("speed", 200.0), "bahdanau": 100.0}
    return found | {"speed": speed, "scaling": {"scaled": 0.1, "unscaled": 0.5}}


CASES: list[tuple[Study, Callable[..., Found], list[Found]]] = [
    (
        Search(),
        searched,
        [{"vector": (90, 60, 50)}, {"vector": (90, 96, 20)}, {"looking": (99, 70, 50)}, {"aligned": 0.89}],
    ),
    (Reversed(), read, [{"perplexity": 3.5}, {"bleu": 40.0}]),
    (Passing(), passed, [{"bleu": 59.0}, {"perplexity": 3.5}]),
    (Depth(), deep, [{"plain": 1.1}, {"residual": 1.02}, {"ratio": 1.06}, {"uncovered": 0.2}]),
    (
        Attention(),
        attended,
        [
            {"transformer": 84.0},
            {"one_head": 92.0},
            {"learned_positions": 96.0},
            {"no_positions": 86.0},
            {"no_smoothing": 92.0},
            {"sharp": 2.5},
            {"speed": 90.0},
        ],
    ),
]


@pytest.mark.parametrize(("study", "made", "broken"), CASES, ids=[study.id for study, _, _ in CASES])
def test_a_rule_holds_until_one_of_its_parts_is_broken(
    study: Study, made: Callable[..., Found], broken: list[Found]
) -> None:
    assert study.judge([made()] * 3).outcome == "holds"
    for change in broken:
        assert study.judge([made(**change)] * 3).outcome == "does not hold", change
        assert study.judge([made(), made(**change)]).outcome == "not settled", change
    ElementTree.fromstring(study.figure([made(), made(**broken[0])]))


def test_facts_are_those_of_the_trained_tokenizer() -> None:
    data = sentences(3, 8, train=3000)
    dataset = Pairs().prepare(DataSettings(data), 0)
    assert spec_of(data).vocab_size == dataset.spec.vocab_size


def test_matched_models_differ_by_less_than_five_per_cent() -> None:
    data = sentences(3, 8)
    spec = spec_of(data)
    settings = matched(data, ("bahdanau", {"d_model": 64}), "seq2seq", **GATED)
    ratio = parameters("seq2seq", spec, **settings) / parameters("bahdanau", spec, d_model=64)
    assert abs(ratio - 1) < 0.05


def test_unscaled_scores_are_sqrt_of_the_width_larger() -> None:
    config = copying("transformer", d_model=16, n_layers=1, n_heads=1)
    torch.manual_seed(0)
    scaled, plain = Copier(config).double().eval(), Copier(unscaled(config)).double().eval()
    plain.load_state_dict(scaled.state_dict())
    with torch.no_grad():
        for name, weight in plain.named_parameters():
            # The first third of this map makes the queries: divided there, the scores are the scaled ones again.
            if "input_to_heads" in name:
                weight[:16] /= 4
            if "input_to_queries" in name:
                weight /= 4
    symbols, _ = symbol_rows(2, 5, 0, "cpu")
    assert torch.allclose(scaled(symbols)[0], plain(symbols)[0])
