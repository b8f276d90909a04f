"""The optimiser of a whole model: AdamW for everything, or Muon for the matrices inside and AdamW for the rest.

Weight decay pulls on matrices only (linear maps, tables, recurrent cells); a norm, a bias, a decay rate or a step size
of a state space is no matrix, whatever its shape. State is saved by parameter name, never by position.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from regard.training.adamw import AdamW
from regard.training.muon import Muon
from regard.training.settings import TrainSettings


class Optimiser:
    """One update rule for all parameters of a model, with the rate given at each step."""

    def __init__(self, model: nn.Module, settings: TrainSettings) -> None:
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        matrices = matrix_names(model) & self.named.keys()
        inner = inner_matrix_names(model) & matrices if settings.optimiser == "muon" else set()
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
    """Matrices between the embedding and the head: what Muon is made for."""
    head = getattr(model, "to_logits", None)
    outer = {id(weight) for part, weight in _matrices(model) if part is head or isinstance(part, nn.Embedding)}
    maps = {id(weight) for _, weight in _matrices(model)} - outer
    return {name for name, parameter in model.named_parameters() if id(parameter) in maps}


def _matrices(model: nn.Module) -> Iterator[tuple[nn.Module, Tensor]]:
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            yield part, part.weight
        elif isinstance(part, nn.RNNBase):
            for weight in part.parameters():
                if weight.dim() == 2:
                    yield part, weight
