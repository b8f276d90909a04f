"""The optimiser of a whole model: AdamW for everything, or Muon for the matrices inside and AdamW for the rest.

Weight decay pulls on matrices only (linear maps, tables, recurrent cells); a norm, a bias, a decay rate or a step size
of a state space is no matrix, whatever its shape. State is saved by parameter name, never by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.training import tensors
from regard.training.muon import Muon
from regard.training.settings import TrainSettings

MOMENTS = {"exp_avg": "first", "exp_avg_sq": "second", "step": "steps"}


class Optimiser:
    """One update rule for all parameters of a model, with the rate given at each step."""

    def __init__(self, model: nn.Module, settings: TrainSettings) -> None:
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        matrices = matrix_names(model) & self.named.keys()
        inner = inner_matrix_names(model) & matrices if settings.optimiser == "muon" else set()
        self.muon = Muon({n: p for n, p in self.named.items() if n in inner}, settings.weight_decay)
        rest = {name: p for name, p in self.named.items() if name not in inner}
        decayed = [p for name, p in rest.items() if name in matrices]
        plain = [p for name, p in rest.items() if name not in matrices]
        groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        # No group may be empty, and a model of matrices alone leaves nothing for AdamW under Muon.
        filled = [group for group in groups if group["params"]]
        self.adamw = torch.optim.AdamW(filled, lr=0.0, betas=settings.betas, fused=True) if filled else None

    @property
    def parameters(self) -> list[nn.Parameter]:
        return list(self.named.values())

    def step(self, rate: float, skip: Tensor | None = None) -> None:
        """One update with learning rate `rate`.

        skip: a boolean on the device; where it holds no weight changes. The host does not wait for it.
        """
        if self.adamw is not None:
            for group in self.adamw.param_groups:
                group["lr"] = rate
            if skip is not None:
                # The fused kernel's own way to leave out a step, made for loss scaling.
                self.adamw.found_inf = skip.float()  # pyright: ignore[reportAttributeAccessIssue]
            self.adamw.step()
        self.muon.step(rate, skip)

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self.named.values():
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """The state by parameter name, such as `to_logits.weight/first`."""
        found = dict(self.muon.tensors())
        for name, parameter in self.named.items():
            state = self.adamw.state.get(parameter, {}) if self.adamw is not None else {}
            found |= {f"{name}/{ours}": state[theirs] for theirs, ours in MOMENTS.items() if theirs in state}
        return found

    def require_fits(self, forms: Mapping[str, tensors.Form], where: Path) -> None:
        """Refuse the state of another model or optimiser: torch's own loader would fail a step later, or not at all."""
        expected = {name: tensors.form_of(tensor) for name, tensor in self.muon.tensors().items()}
        for name, parameter in self.named.items():
            if f"{name}/momentum" not in expected and f"{name}/first" in forms:
                form = tensors.form_of(parameter)
                expected |= {f"{name}/first": form, f"{name}/second": form, f"{name}/steps": tensors.Form((), "F32")}
        tensors.require_same(expected, forms, where)

    def load(self, values: Mapping[str, Tensor]) -> None:
        """Take the state that `tensors` gave."""
        tensors.copy_into(self.muon.tensors(), values)
        if self.adamw is None:
            return
        for name, parameter in self.named.items():
            if f"{name}/first" in values:
                moments = {theirs: values[f"{name}/{ours}"] for theirs, ours in MOMENTS.items()}
                self.adamw.state[parameter] = {key: value.to(parameter.device) for key, value in moments.items()}


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
