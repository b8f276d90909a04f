"""The optimiser of a whole model: AdamW for everything, or Muon for the matrices inside mixers and AdamW for the rest.

Weight decay pulls on matrices only (linear maps, tables, recurrent cells); a norm, a bias, a decay rate or a step size
of a state space is no matrix, whatever its shape. State is saved by parameter name, never by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from regard.core.mixer import Mixer
from regard.errors import UsageError
from regard.training.frozen import rate_factors
from regard.training.parallel.ranks import ALONE, Ranks
from regard.training.settings import TrainSettings

EPSILON = 1e-8
MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


class Optimiser:
    """One update rule for all parameters of a model, with the rate given at each step."""

    def __init__(self, model: nn.Module, settings: TrainSettings, ranks: Ranks = ALONE) -> None:
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        matrices = matrix_names(model) & self.named.keys()
        inner = inner_matrix_names(model) & matrices if settings.optimiser == "muon" else set()
        if settings.optimiser == "muon" and not inner:
            raise UsageError("train.optimiser=muon: the model has no matrix inside a mixer to use it on; say adamw")
        factors = rate_factors(self.named, settings.layer_decay)
        # By the part of the rate that they learn at.
        self.rules: list[tuple[float, AdamW | Muon]] = []
        for factor in sorted(set(factors.values()), reverse=True):
            some = {name: p for name, p in self.named.items() if factors[name] == factor}
            outer = {name: p for name, p in some.items() if name in matrices and name not in inner}
            plain = {name: p for name, p in some.items() if name not in matrices}
            self.rules += [
                (factor, Muon({name: p for name, p in some.items() if name in inner}, settings.weight_decay, ranks)),
                (factor, AdamW(outer, settings.weight_decay, settings.betas, ranks)),
                (factor, AdamW(plain, 0.0, settings.betas, ranks)),
            ]

    @property
    def parameters(self) -> list[nn.Parameter]:
        return list(self.named.values())

    def step(self, rate: float | Tensor, skip: Tensor | None = None) -> None:
        """One update with learning rate `rate`, a number on the device where the step is captured.

        skip: a boolean on the device; where it holds nothing changes. The host does not wait for it.
        """
        for factor, rule in self.rules:
            rule.step(rate if factor == 1 else rate * factor, skip)

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self.named.values():
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """The state by parameter name, such as `to_logits.weight/first`; copying into it restores it."""
        return {name: tensor for _, rule in self.rules for name, tensor in rule.tensors().items()}


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


class AdamW:
    """Adam with the decay of the weights kept out of its moments (Loshchilov and Hutter 2019, algorithm 2).

        m <- b1 m + (1 - b1) g           first moment of the gradient g
        v <- b2 v + (1 - b2) g^2         second moment
        w <- w - lr (m' / (sqrt(v') + eps) + lambda w),   m' = m / (1 - b1^t),  v' = v / (1 - b2^t)

    The arithmetic is torch's fused kernel. `torch.optim.AdamW` around it would import the compiler, two seconds at the
    start of every run, and keep the state by position.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        weight_decay: float,
        betas: tuple[float, float],
        ranks: Ranks = ALONE,
    ) -> None:
        self.parameters, self.ranks = dict(parameters), ranks
        self.weight_decay = weight_decay
        self.betas = betas
        self.first = {name: torch.zeros_like(weight) for name, weight in self.parameters.items()}
        self.second = {name: torch.zeros_like(weight) for name, weight in self.parameters.items()}
        self.steps = {name: torch.zeros((), device=weight.device) for name, weight in self.parameters.items()}

    @torch.no_grad()
    def step(self, rate: float | Tensor, skip: Tensor | None = None) -> None:
        """One update. `skip`, a boolean on the device, leaves everything as it is without asking the device."""
        local = self.ranks.local
        names = [name for name, weight in self.parameters.items() if weight.grad is not None]
        groups = {(self.parameters[name].dtype, self.parameters[name].device): [] for name in names}
        for name in names:
            groups[self.parameters[name].dtype, self.parameters[name].device].append(name)
        for group in groups.values():
            steps = [self.steps[name] for name in group]
            # A tensor for each: of one for all torch would ask the device for its number.
            more = 1 if skip is None else [(~skip).float()] * len(steps)
            torch._foreach_add_(steps, more)  # pyright: ignore[reportPrivateImportUsage, reportArgumentType, reportCallIssue]
            torch._fused_adamw_(  # pyright: ignore[reportPrivateImportUsage, reportCallIssue]
                [local(self.parameters[name]) for name in group],
                [local(self.parameters[name].grad) for name in group],  # pyright: ignore[reportArgumentType]
                [local(self.first[name]) for name in group],
                [local(self.second[name]) for name in group],
                [],
                steps,
                amsgrad=False,
                lr=rate,  # pyright: ignore[reportArgumentType]  # a number or a tensor
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=self.weight_decay,
                eps=EPSILON,
                maximize=False,
                # The kernel's own way to leave out a step, made for the scaling of losses.
                found_inf=None if skip is None else skip.float(),
            )
            # The kernel changes numbers without a word, and copies of matrices that texts are written by would be kept.
            for name in group:
                torch.autograd.graph.increment_version(self.parameters[name])

    def tensors(self) -> dict[str, Tensor]:
        """The moments and the count of steps of each parameter, by its name; copying into them restores them."""
        parts = {"first": self.first, "second": self.second, "steps": self.steps}
        return {f"{name}/{part}": values[name] for part, values in parts.items() for name in self.parameters}


class Muon:
    """Momentum whose matrix is made orthogonal before it is applied (Jordan et al. 2024).

        M <- mu M + G                       momentum
        U  = G + mu M                       Nesterov's look ahead
        O  = U (U^T U)^(-1/2)               nearest orthogonal matrix, by five Newton-Schulz iterations
        W <- W - lr (0.2 sqrt(max(r, c)) O + lambda W)

    The factor 0.2 sqrt(max(r, c)) gives the update the size of AdamW's, so that one learning rate serves both (Liu et
    al. 2025, 2.2). Matrices of one shape are handled as one batch; where
    processes hold some rows each, whole ones are put together for the orthogonal form.

    Glossary
    G, M, U, O, W  gradient, momentum, its look ahead, its orthogonal form and the weight, each (r, c)
    mu, lambda     momentum 0.95 and weight decay
    """

    def __init__(self, matrices: Mapping[str, Tensor], weight_decay: float, ranks: Ranks = ALONE) -> None:
        self.matrices, self.ranks = dict(matrices), ranks
        self.weight_decay = weight_decay
        self.groups: dict[tuple[int, ...], list[str]] = {}
        for name, weight in self.matrices.items():
            self.groups.setdefault(tuple(weight.shape), []).append(name)
        self.momenta = {
            shape: torch.stack([torch.zeros_like(ranks.local(self.matrices[name])) for name in names])
            for shape, names in self.groups.items()
        }

    @torch.no_grad()
    def step(self, rate: float | Tensor, skip: Tensor | None = None) -> None:
        """One update. `skip`, a boolean on the device, leaves everything as it is without asking the device."""
        for shape, names in self.groups.items():
            weights = [self.ranks.local(self.matrices[name]) for name in names]
            gradient = torch.stack([self._gradient(name) for name in names])
            if skip is None:
                momentum = self.momenta[shape].mul_(MOMENTUM).add_(gradient)
            else:
                kept = self.momenta[shape]
                momentum = kept.copy_(torch.where(skip, kept, MOMENTUM * kept + gradient))
            ahead = self.ranks.whole_matrices(gradient.add_(momentum, alpha=MOMENTUM), shape[0])
            orthogonal = self.ranks.own_matrices(orthogonalise(ahead))
            for weight, direction in zip(weights, orthogonal, strict=True):
                change = (0.2 * max(shape) ** 0.5 * direction + self.weight_decay * weight).mul_(-rate)
                weight.add_(change if skip is None else torch.where(skip, 0.0, change))

    def _gradient(self, name: str) -> Tensor:
        weight = self.matrices[name]
        return self.ranks.local(torch.zeros_like(weight) if weight.grad is None else weight.grad)

    def tensors(self) -> dict[str, Tensor]:
        """The momentum of each matrix, by its name; views, so that copying into them restores it."""
        return {
            f"{name}/momentum": self.ranks.as_part(self.momenta[shape][i], self.matrices[name])
            for shape, names in self.groups.items()
            for i, name in enumerate(names)
        }


def orthogonalise(update: Tensor) -> Tensor:
    """Singular values of each matrix of (n, r, c) brought near 1, its singular vectors kept.

    The iteration X <- a X + (b A + c A^2) X with A = X X^T drives every singular value of X towards 1; a, b, c are
    chosen for a steep start at 0 and leave values between about 0.7 and 1.2, which is near enough.
    """
    a, b, c = COEFFICIENTS
    x = update.bfloat16() if update.device.type == "cuda" else update
    is_tall = x.shape[-2] > x.shape[-1]
    x = x.mT if is_tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT  # (n, r, r)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if is_tall else x).to(update.dtype)
