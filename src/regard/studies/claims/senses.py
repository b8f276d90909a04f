"""Backpack: more senses predict better, and the output is linear in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.model import logits_of
from regard.core.tap import record
from regard.mixers.senses import Senses
from regard.models.language import LanguageModel
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

DATA = "world:stories?train=4000&valid=100"
SCALE = 2.0


@register_study
class Backpack(Study):
    id: ClassVar[str] = "senses"
    claim: ClassVar[str] = (
        "A Backpack with enough senses predicts as well as the Transformer inside it, its logits are linear in the "
        "sense vectors, and scaling a sense of a word moves a logit by the amount that linearity tells, in any context."
    )
    source: ClassVar[str] = "Hewitt et al. 2023, Backpack: tables 1 and 6, section 5; on world:stories"
    rule: ClassVar[str] = (
        "perplexity falls from each number of senses to the next; with the most senses it is at most 5 per cent above "
        "that of the Transformer; logits differ from the sum over senses by at most 1e-4 of the largest; scaling a "
        "sense moves the logit by the predicted amount to 1e-4 in every context tried"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        senses = lab.pick([1, 8], [1, 4, 16], [1, 4, 16])
        steps = lab.pick(100, 200, 800)
        sizes = {"d_model": lab.pick(32, 64, 128), "n_layers": 2, "n_heads": 4, "max_length": 128}
        shape = {"budget": f"{steps}steps", "length": 64, "batch_size": 16, "size": "tiny"} | sizes
        plain = {"norm": "layer", "activation": "gelu_tanh", "bias": True, "tied": True, "position": "learned"}
        found: dict[str, Any] = {"perplexity": {}}
        inner = lab.train("gpt", DATA, "gpt", **shape, **plain)
        found["transformer"] = inner.evaluate().scores["perplexity"]
        run: Any = None
        for count in senses:
            run = lab.train("backpack", DATA, f"senses{count}", n_senses=count, **shape)
            found["perplexity"][str(count)] = run.evaluate().scores["perplexity"]
        tokens = torch.from_numpy(run.dataset.valid.ids[: 16 * 48].astype("int64")).view(16, 48)
        found |= linearity(run.model, tokens.to(run.device))
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(f"{mean(found, 'perplexity', n):.2f} with {n}" for n in found[0]["perplexity"])
        return judged(
            found,
            lambda one: (
                falls(list(one["perplexity"].values()))
                and list(one["perplexity"].values())[-1] <= 1.05 * one["transformer"]
                and one["linear_error"] < 1e-4
                and one["scaling_error"] < 1e-4
            ),
            f"perplexity {told} senses, {mean(found, 'transformer'):.2f} of the Transformer; error of linearity at "
            f"most {max(one['linear_error'] for one in found):.1e}, of a scaled sense "
            f"{max(one['scaling_error'] for one in found):.1e} in {found[0]['contexts']} contexts",
        )

    def figure(self, found: Sequence[Found]) -> str:
        counts = list(found[0]["perplexity"])
        ends = int(counts[0]), int(counts[-1])
        lines = [
            Series("backpack", [(int(n), mean(found, "perplexity", n)) for n in counts]),
            Series("transformer inside", [(end, mean(found, "transformer")) for end in ends]),
        ]
        return line_chart("Perplexity by number of senses", lines, Axis("senses", log=True), Axis("perplexity"))


def falls(values: Sequence[float]) -> bool:
    """
    >>> falls([3.0, 2.0, 1.0]), falls([3.0, 2.0, 2.0])
    (True, False)
    """
    return all(math.isfinite(value) for value in values) and list(values) == sorted(set(values), reverse=True)


@torch.no_grad()
def linearity(model: LanguageModel, tokens: Tensor) -> dict[str, float]:
    """How far logits are from the sum over senses, and a scaled sense from what that sum predicts.

    The word is the one at place 1 of each row, so that it stands in the context of all later ones.
    """
    with record(_mixer(model), "sense_*") as seen:
        logits = logits_of(model, tokens)
    (weights,), (senses,) = seen["sense_weights"], seen["sense_vectors"]  # (B, C, T, S), (B, S, C, D)
    table = model.head.weight
    summed = torch.einsum("BCTS,BSCD->BTD", weights, senses) @ table.T
    # What sense 0 of the word at place 1 gives to every logit after it.
    given = torch.einsum("BT,BD->BTD", weights[:, 0, :, 1], senses[:, 1, 0]) @ table.T
    with _scaled(model, SCALE):
        moved = logits_of(model, tokens) - logits
    largest = float(logits.abs().max())
    return {
        "linear_error": float((summed - logits).abs().max()) / largest,
        "scaling_error": float((moved - (SCALE - 1) * given).abs().max()) / largest,
        "contexts": tokens.shape[0] * (tokens.shape[1] - 1),
    }


def _mixer(model: nn.Module) -> Senses:
    return next(part for part in model.modules() if isinstance(part, Senses))


@contextmanager
def _scaled(model: nn.Module, factor: float) -> Iterator[None]:
    """Sense 0 of the word at place 1 times `factor`, in every row."""

    def scale(_tap: nn.Module, _inputs: object, senses: Tensor) -> Tensor:
        changed = senses.clone()
        changed[:, 1, 0] *= factor
        return changed

    handle = _mixer(model).sense_vectors.register_forward_hook(scale)
    try:
        yield
    finally:
        handle.remove()
