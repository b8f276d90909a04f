"""The optimiser of a whole model: AdamW for everything, or Muon for the matrices inside mixers and AdamW for the rest.

Weight decay pulls on matrices only (linear maps, tables, recurrent cells); a norm, a bias, a decay rate or a step size
of a state space is no matrix, whatever its shape. State is saved by parameter name, never by position.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from regard.core.mixer import Mixer
from regard.errors import UsageError
from regard.training.adamw import AdamW
from regard.training.muon import Muon
from regard.training.settings import TrainSettings


class Optimiser:
    """One update rule for all parameters of a model, with the rate given at each step."""

    def __init__(self, model: nn.Module, settings: TrainSettings) -> None:
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        matrices = matrix_names(model) & self.named.keys()
        inner = inner_matrix_names(model) & matrices if settings.optimiser == "muon" else set()
        if settings.optimiser == "muon" and not inner:
            raise UsageError("train.optimiser=muon: the model has no matrix inside a mixer to use it on; say adamw")
        outer = {name: p for name, p in self.named.items() if name in matrices and name not in inner}
        plain = {name: p for name, p in self.named.items() if name not in matrices}
        self.rules: list[AdamW | Muon] = [
            Muon({name: p for name, p in self.named.items() if name in inner}, settings.weight_decay),
            AdamW(outer, settings.weight_decay, settings.betas),
            AdamW(plain, 0.0, settings.betas),
        ]

    @property
    def parameters(self) -> list[nn.Parameter]:
        return list(self.named.values())

    def step(self, rate: float, skip: Tensor | None = None) -> None:
        """One update with learning rate `rate`.

        skip: a boolean on the device; where it holds no weight changes. The host does not wait for it.
        """
        for rule in self.rules:
            rule.step(rate, skip)

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self.named.values():
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """The state by parameter name, such as `to_logits.weight/first`; copying into it restores it."""
        return {name: tensor for rule in self.rules for name, tensor in rule.tensors().items()}


def matrix_names(model: nn.Module) -> set[str]:
    """Parameters that multiply vectors or are rows of a table; a shared one under its first name."""
    maps = {id(weight) for _, weight in _matrices(model)}
    return {name for name, parameter in model.named_parameters() if id(parameter) in maps}


def inner_matrix_names(model: nn.Module) -> set[str]:
    """Matrices inside mixers and the blocks around them: what Muon is made for.

    Whatever lies outside of every mixer leads into the stack or out of it: a table, a map of the inputs, a head,
    under whatever name and in whoever's model. A matrix of one row or one column is a vector.
    """
    inside = {id(part) for mixer in model.modules() if isinstance(mixer, Mixer) for part in mixer.modules()}
    inner: set[int] = set()
    outer: set[int] = set()
    for part, weight in _matrices(model):
        within = id(part) in inside and not isinstance(part, nn.Embedding) and min(weight.shape) > 1
        (inner if within else outer).add(id(weight))
    return {name for name, parameter in model.named_parameters() if id(parameter) in inner - outer}


def _matrices(model: nn.Module) -> Iterator[tuple[nn.Module, Tensor]]:
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            yield part, part.weight
        elif isinstance(part, nn.RNNBase):
            for weight in part.parameters():
                if weight.dim() == 2:
                    yield part, weight
