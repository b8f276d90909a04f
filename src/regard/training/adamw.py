"""AdamW: Adam with the decay of the weights kept out of its moments (Loshchilov and Hutter 2019, algorithm 2).

    m <- b1 m + (1 - b1) g           first moment of the gradient g
    v <- b2 v + (1 - b2) g^2         second moment
    w <- w - lr (m' / (sqrt(v') + eps) + lambda w),   m' = m / (1 - b1^t),  v' = v / (1 - b2^t)

The arithmetic is torch's fused kernel. `torch.optim.AdamW` around it would import the compiler, two seconds at the
start of every run, and keep the state by position.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

EPSILON = 1e-8


class AdamW:
    """The optimiser of the parameters it is given, with one weight decay for all of them."""

    def __init__(self, parameters: Mapping[str, Tensor], weight_decay: float, betas: tuple[float, float]) -> None:
        self.parameters = dict(parameters)
        self.weight_decay = weight_decay
        self.betas = betas
        self.first = {name: torch.zeros_like(weight) for name, weight in self.parameters.items()}
        self.second = {name: torch.zeros_like(weight) for name, weight in self.parameters.items()}
        self.steps = {name: torch.zeros((), device=weight.device) for name, weight in self.parameters.items()}

    @torch.no_grad()
    def step(self, rate: float, skip: Tensor | None = None) -> None:
        """One update. `skip`, a boolean on the device, leaves every weight as it is without asking the device."""
        names = [name for name, weight in self.parameters.items() if weight.grad is not None]
        groups = {(self.parameters[name].dtype, self.parameters[name].device): [] for name in names}
        for name in names:
            groups[self.parameters[name].dtype, self.parameters[name].device].append(name)
        for group in groups.values():
            steps = [self.steps[name] for name in group]
            torch._foreach_add_(steps, 1)  # pyright: ignore[reportPrivateImportUsage]
            torch._fused_adamw_(  # pyright: ignore[reportPrivateImportUsage, reportCallIssue]
                [self.parameters[name] for name in group],
                [self.parameters[name].grad for name in group],  # pyright: ignore[reportArgumentType]
                [self.first[name] for name in group],
                [self.second[name] for name in group],
                [],
                steps,
                amsgrad=False,
                lr=rate,
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=self.weight_decay,
                eps=EPSILON,
                maximize=False,
                # The kernel's own way to leave out a step, made for the scaling of losses.
                found_inf=None if skip is None else skip.float(),
            )

    def tensors(self) -> dict[str, Tensor]:
        """The moments and the count of steps of each parameter, by its name; copying into them restores them."""
        parts = {"first": self.first, "second": self.second, "steps": self.steps}
        return {f"{name}/{part}": values[name] for part, values in parts.items() for name in self.parameters}
