"""Looks at a run on a CUDA device show what they show on the CPU."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from look_run import TEXT, class_run, pair_run, text_run
from regard.explain import registry
from regard.explain.look import Options

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
RUNS = {
    "gpt": lambda: text_run("gpt"),
    "lstm": lambda: text_run("lstm"),
    "gru": lambda: text_run("gru"),
    "mamba": lambda: text_run("mamba"),
    "mamba2": lambda: text_run("mamba2"),
    "s4d": lambda: text_run("s4d"),
    "backpack": lambda: text_run("backpack"),
    "dan": lambda: text_run("dan"),
    "bahdanau": lambda: pair_run("bahdanau"),
    "transformer": lambda: pair_run("transformer"),
    "classifier": class_run,
}


@pytest.mark.parametrize("name", RUNS)
def test_every_view_is_the_same_on_both_devices(name: str) -> None:
    here, there = RUNS[name](), RUNS[name]()
    there.model = copy.deepcopy(there.model).cuda()
    for view in registry.views(here):
        target = "the cat runs" if here.config["data"]["task"] == "pairs" else None
        one, other = (registry.shown(run, view, TEXT, Options(target=target)).to_dict() for run in (here, there))
        assert [panel["kind"] for panel in one["panels"]] == [panel["kind"] for panel in other["panels"]], view
        for first, second in zip(one["panels"], other["panels"], strict=True):
            for key in ("weights", "values"):
                if key in first:
                    np.testing.assert_allclose(_numbers(first[key]), _numbers(second[key]), atol=1e-6, err_msg=view)


def _numbers(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.float64)
