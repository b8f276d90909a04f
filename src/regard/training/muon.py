"""Muon: momentum whose matrix is made orthogonal before it is applied (Jordan et al. 2024).

    M <- mu M + G                       momentum
    U  = G + mu M                       Nesterov's look ahead
    O  = U (U^T U)^(-1/2)               nearest orthogonal matrix, by five Newton-Schulz iterations
    W <- W - lr (0.2 sqrt(max(r, c)) O + lambda W)

The iteration X <- a X + (b A + c A^2) X with A = X X^T drives every singular value of X towards 1; a, b, c are chosen
for a steep start at 0 and leave values between about 0.7 and 1.2, which is near enough. The factor 0.2 sqrt(max(r, c))
gives the update the size of AdamW's, so that one learning rate serves both (Liu et al. 2025, 2.2).

Glossary
G, M, U, O, W  gradient, momentum, its look ahead, its orthogonal form and the weight, each (r, c)
mu, lambda     momentum 0.95 and weight decay
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


class Muon:
    """The optimiser of the matrices it is given; those of one shape are handled as one batch."""

    def __init__(self, matrices: Mapping[str, Tensor], weight_decay: float) -> None:
        self.matrices = dict(matrices)
        self.weight_decay = weight_decay
        self.groups: dict[tuple[int, ...], list[str]] = {}
        for name, weight in self.matrices.items():
            self.groups.setdefault(tuple(weight.shape), []).append(name)
        self.momenta = {
            shape: torch.stack([torch.zeros_like(self.matrices[name]) for name in names])
            for shape, names in self.groups.items()
        }

    @torch.no_grad()
    def step(self, rate: float, skip: Tensor | None = None) -> None:
        """One update. `skip`, a boolean on the device, leaves every weight as it is without asking the device."""
        for shape, names in self.groups.items():
            weights = [self.matrices[name] for name in names]
            gradient = torch.stack([torch.zeros_like(w) if w.grad is None else w.grad for w in weights])
            momentum = self.momenta[shape].mul_(MOMENTUM).add_(gradient)
            orthogonal = orthogonalise(gradient.add_(momentum, alpha=MOMENTUM))
            for weight, direction in zip(weights, orthogonal, strict=True):
                change = (0.2 * max(shape) ** 0.5 * direction + self.weight_decay * weight).mul_(-rate)
                weight.add_(change if skip is None else torch.where(skip, 0.0, change))

    def tensors(self) -> dict[str, Tensor]:
        """The momentum of each matrix, by its name; views, so that copying into them restores it."""
        return {
            f"{name}/momentum": self.momenta[shape][i]
            for shape, names in self.groups.items()
            for i, name in enumerate(names)
        }


def orthogonalise(update: Tensor) -> Tensor:
    """Singular values of each matrix of (n, r, c) brought near 1, its singular vectors kept."""
    a, b, c = COEFFICIENTS
    x = update.bfloat16() if update.device.type == "cuda" else update
    is_tall = x.shape[-2] > x.shape[-1]
    x = x.mT if is_tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT  # (n, r, r)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if is_tall else x).to(update.dtype)
