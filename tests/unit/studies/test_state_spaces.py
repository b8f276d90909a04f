"""Studies of S4D, Mamba and Mamba-2: their rules, and the parts of them that are exact."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import torch

from regard.data.batch import NOT_COUNTED
from regard.studies.claims.duality import StateSpaceDuality, _inputs, largest_error, rises
from regard.studies.claims.fitting import Rows
from regard.studies.claims.long_convolution import HELD, LATER, NAMES, LongRange, _batch
from regard.studies.claims.selection import Selection
from regard.studies.claims.study import Lab

LAB = Lab("quick", 0, Path())


def test_the_three_forms_of_ssd_agree():
    assert largest_error(tuple(part.double() for part in _inputs(150, LAB))) < 1e-12


def duality(error: float = 1e-7, speedup: float = 9.0, last: float = 0.8) -> dict:
    return {"lengths": [256], "error": error, "speedup": speedup, "recall": {"4": 0.3, "16": 0.5, "64": last}}


def test_the_verdict_on_ssd():
    study = StateSpaceDuality()
    assert study.judge([duality()]).outcome == "holds"
    assert study.judge([duality(error=1e-3)]).outcome == "does not hold"
    assert study.judge([duality(last=0.4), duality()]).outcome == "not settled"
    assert rises([0.2, 0.995, 0.992])
    assert not rises([0.2, 0.2])
    ElementTree.fromstring(study.figure([duality()]))


def selection(s4d: float = 0.3, far: float = 0.99) -> dict:
    found = {"copy": {"s6": 0.97, "s4d": s4d}, "mamba": [1.0, far], "attention": [1.0, 0.2]}
    return found | {"lengths": [16, 256], "time_exponent": 1.0}


def test_the_verdict_on_selection():
    study = Selection()
    assert study.judge([selection()]).outcome == "holds"
    assert study.judge([selection(s4d=0.7)]).outcome == "does not hold"
    assert study.judge([selection(far=0.5), selection()]).outcome == "not settled"
    ElementTree.fromstring(study.figure([selection()]))


def test_bits_are_asked_for_later_bits_at_their_end():
    inputs, targets = _batch(3, 5, 20 * HELD, "cpu")
    bits = inputs[:, ::HELD]
    assert (inputs.view(5, 20, HELD) == bits[..., None]).all()
    asked = targets[:, HELD - 1 :: HELD]
    assert (asked[:, LATER:] == bits[:, :-LATER]).all()
    assert (targets != NOT_COUNTED).sum() == 5 * (20 - LATER)


def long_range(**changes: float) -> dict:
    right = dict.fromkeys(NAMES, 0.5) | {"lin": 0.9, "inv": 0.8} | changes
    return {"error": 1e-6, "state_growth": 1.0, "right": right}


def test_the_verdict_on_long_range():
    study = LongRange()
    assert study.judge([long_range()]).outcome == "holds"
    assert study.judge([long_range(random=0.85)]).outcome == "does not hold"
    assert study.judge([long_range(lstm=0.95), long_range()]).outcome == "not settled"
    ElementTree.fromstring(study.figure([long_range()]))


def test_rows_of_a_probe_ask_at_the_place_before_the_answer():
    from regard.data.worlds.probe import Parity

    world = Parity(train=4, valid=2, length=5)
    rows = Rows(world, LAB)
    inputs, targets = rows.train
    words = {number: word for word, number in rows.index.items()}
    for row, document in enumerate(world.documents("train")):
        told = document.split(" ")
        assert [words[i] for i in inputs[row].tolist()] == ["<eos>", *told[:-1]]
        asked = {place: words[i] for place, i in enumerate(targets[row].tolist()) if i != NOT_COUNTED}
        assert asked == {6: told[6]}
    drawn, _ = rows.batches(6)(0)
    assert drawn.shape == (6, 7)
    assert torch.equal(drawn, rows.batches(6)(0)[0])
