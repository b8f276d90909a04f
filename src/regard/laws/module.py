"""Laws of the module: purity, gradients, taps, reach, round trips, equivariance, and that it can learn.

What a part declares of itself holds: its taps mean what it says, and the maps that it names are there.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_model
from torch import Tensor, nn

from regard.core.config import from_dict
from regard.core.model import logits_of
from regard.core.tap import Tap, taps
from regard.core.tap import record as recording
from regard.laws import chance
from regard.laws.form import gradients
from regard.laws.result import Broken, Ledger
from regard.laws.subject import Subject, at_rest, prepared, snapshot
from regard.laws.view import view

# Rows of weights sum to 1, up to rounding.
NEAR = 1e-6
DIMENSIONS = {"attention": 4, "alignment": 4, "values": 4, "gate": 3, "keep": 3, "pooling": 2}


def declared(module: nn.Module, recorded: Mapping[str, Sequence[Tensor]], length: int | None) -> None:
    """Every part below `module` against what its taps have seen; length: of the time that passed, where it is known."""
    places = taps(module)
    for name, part in module.named_modules():
        kind = type(part).__name__
        for own in getattr(part, "writes_to_stream", ()):
            if not isinstance(getattr(part, own, None), nn.Module):
                raise Broken(f"{kind} says that {own} writes to the residual stream, and has no such map")
        for own, meaning in getattr(part, "shows", {}).items():
            if not isinstance(getattr(part, own, None), Tap):
                raise Broken(f"{kind} says that it shows {own}, and has no such tap")
            full = f"{name}.{own}" if name else own
            told = f"the tap {own} of {kind} means {meaning}, and"
            for entry in recorded[full]:
                _means(entry if places[full].axis is not None else entry[:, None], meaning, told)
            if meaning in ("gate", "keep", "state") and length is not None:
                seen = sum(1 if places[full].axis is None else entry.shape[1] for entry in recorded[full])
                if seen != length:
                    raise Broken(f"{told} sees {seen} positions of {length}")


def _means(seen: Tensor, meaning: str, told: str) -> None:
    wanted = DIMENSIONS.get(meaning)
    if seen.dim() != wanted if wanted else seen.dim() < 3:
        raise Broken(f"{told} sees {seen.dim()} dimensions")
    if meaning in ("gate", "keep") and not ((seen >= 0) & (seen <= 1)).all():
        raise Broken(f"{told} leaves the range from 0 to 1")
    if meaning in ("attention", "alignment", "pooling"):
        total = seen.sum(-1)
        # Where there is nothing to look at all weights are zero.
        if not (((total - 1).abs() < NEAR) | (total == 0)).all():
            raise Broken(f"{told} has rows that sum to {float(total.flatten()[0]):.4g}")


@torch.no_grad()
def purity(subject: Subject, ledger: Ledger) -> None:
    """A call changes neither the module nor the state it was given, and no mode flag changes the mathematics."""
    x, state = subject.inputs(2, 4), subject.state(2, 3)
    before, tensors = snapshot(subject.module), [tensor.clone() for tensor in state.tensors()]
    first, _ = subject(x, state)
    second, _ = subject(subject.inputs(3, 2), subject.state(3))
    for key, value in snapshot(subject.module).items():
        if before.get(key, "absent") != value:
            raise Broken(f"a call changed the attribute {key}")
    for i, (a, b) in enumerate(zip(state.tensors(), tensors, strict=True)):
        ledger.equal(a, b, f"tensor {i} of the state that was given to the call")
    again, _ = subject(x, state)
    ledger.equal(again, first, "the same call after another one")
    del second
    dropouts = [p for p in subject.module.modules() if isinstance(p, nn.Dropout) and p.p > 0]
    if not dropouts:
        subject.module.train()
        trained, _ = subject(x, state)
        at_rest(subject.module)
        ledger.equal(trained, first, "in training mode against evaluation mode")


def gradient(subject: Subject, _ledger: Ledger) -> None:
    """Every parameter gets a gradient that is finite and not zero, equal to finite differences."""
    x = subject.inputs(2, 5)
    for name, found in gradients(subject, subject.every_answer(x, subject.state(2, 2))).items():
        if not torch.isfinite(found).all():
            raise Broken(f"the gradient of {name} is not finite")
        if not found.abs().max() > 0:
            raise Broken(f"the gradient of {name} is zero everywhere")
    _finite_differences(subject)


def _finite_differences(subject: Subject, step: float = 1e-5) -> None:
    """One random direction for each parameter: (f(p + e d) - f(p - e d)) / 2 e against the gradient along d."""
    x = subject.inputs(1, 3)

    def outputs() -> Tensor:
        # The state is made anew: what came before it, a source too, is part of the function.
        return subject.every_answer(x, subject.state(1, 2))

    def total() -> Tensor:
        y = outputs()
        return (y * torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)).sum()

    analytic = gradients(subject, outputs())
    for i, (name, parameter) in enumerate(subject.module.named_parameters()):
        direction = chance.normal(*parameter.shape, seed=i)
        direction /= direction.norm()
        with torch.no_grad():
            parameter += step * direction
            above = total()
            parameter -= 2 * step * direction
            below = total()
            parameter += step * direction
        measured, expected = (above - below) / (2 * step), (analytic[name] * direction).sum()
        error = float((measured - expected).abs() / (1 + expected.abs()))
        if not error < 1e-5:
            raise Broken(f"gradient of {name} along a direction: {float(expected):.6g}, measured {float(measured):.6g}")


@torch.no_grad()
def record(subject: Subject, ledger: Ledger) -> None:
    """Listening changes no output: the readable path equals the fast one.

    Every tap has something to say, and what it means.
    """
    for seen in (0, 3):
        x = subject.inputs(2, 5)
        plain, _ = subject(x, subject.state(2, seen))
        for name in ("*", *taps(subject.module)):
            with recording(subject.module, name) as recorded:
                y, _ = subject(x, subject.state(2, seen))
            ledger.equal(y, plain, f"outputs while listening to {name}, {seen} tokens seen before")
            silent = [key for key, values in recorded.items() if not values]
            if silent:
                raise Broken(f"the tap {silent[0]} is never passed")
            if name == "*":
                declared(subject.module, recorded, 5 if subject.width is not None and seen == 0 else None)


def reach(subject: Subject, _ledger: Ledger) -> None:
    """y_t feels x_(t-k) for every k below the declared reach, and nothing from there on."""
    declared = subject.facts.reach
    length = 9 if declared is None else min(declared + 3, 24)
    x = subject.inputs(1, length).requires_grad_()
    y, _ = subject(x, subject.state(1))
    (felt,) = torch.autograd.grad(y[0, -1].square().sum() + y[0, -1].sum(), x)
    strength = felt[0].abs().amax(-1).flip(0)  # by distance k
    for k, value in enumerate(strength.tolist()):
        inside = declared is None or k < declared
        if inside and not value > 0:
            raise Broken(f"y_t does not feel x_(t-{k}), though the declared reach is {declared}")
        if not inside and value > 0:
            raise Broken(f"y_t feels x_(t-{k}) by {value:.2g}, beyond the declared reach of {declared}")


@torch.no_grad()
def round_trip(subject: Subject, ledger: Ledger) -> None:
    """Config to JSON and back, weights to a file and back: the same outputs."""
    assert subject.config is not None
    written = json.loads(json.dumps(subject.config.to_dict()))
    read = from_dict(written)
    if read != subject.config:
        raise Broken("the config read back from JSON differs from the one written")
    twin = view(prepared(read.build))
    for parameter in twin.parameters():
        parameter.zero_()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        # On the host: cuDNN keeps the weights of a cell in one piece, which is no tensor of its own.
        save_model(copy.deepcopy(subject.module).cpu(), str(path))
        missing, unexpected = twin.load_state_dict(load_file(path), strict=False)
    # A weight of two names is written under one of them.
    named = dict(twin.named_parameters(remove_duplicate=False))
    restored = {id(parameter) for name, parameter in named.items() if name not in missing}
    lost = sorted(name for name, parameter in named.items() if id(parameter) not in restored)
    if lost or unexpected:
        raise Broken(f"weights not restored: {lost[:3]} missing, {unexpected[:3]} unexpected")
    x = subject.inputs(2, 4)
    expected = subject(x, subject.state(2))[0]
    ledger.equal(replace(subject, module=twin)(x, subject.state(2))[0], expected, "outputs of the copy")


@torch.no_grad()
def equivariance(subject: Subject, ledger: Ledger) -> None:
    """A mixer that says it permutes commutes with a permutation of the positions; one that does not, must not."""
    if not subject.facts.permutes:
        subject = replace(subject, scale=1.0)  # large inputs may choose one position each, wherever it stands
    x, order = subject.inputs(2, 5), torch.tensor([3, 0, 4, 1, 2])
    y, _ = subject(x, subject.state(2))
    shuffled, _ = subject(x[:, order], subject.state(2))
    if subject.facts.permutes:
        ledger.equal(shuffled, y[:, order], f"positions permuted by {order.tolist()}")
    elif float((shuffled - y[:, order]).abs().max()) < 1e-6:
        raise Broken(f"commutes with the permutation {order.tolist()}, though permutes = False")


def learn(subject: Subject, _ledger: Ledger) -> None:
    """A tiny batch can be overfitted: the loss falls below a tenth of what it was. Counting must lower it at all."""
    assert subject.config is not None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = view(subject.config.build().to(torch.get_default_dtype()))
    tokens = subject.inputs(2, 9)
    learn_step, steps, share = _counting(module, tokens) if hasattr(module, "count") else _descent(module)
    losses = []
    for _ in range(steps):
        logits = logits_of(module, tokens[:, :-1])
        loss = _missed(logits, tokens[:, 1:] if subject.has_state else None)
        losses.append(loss.item())
        if losses[-1] < share * losses[0]:
            return
        learn_step(loss)
    raise Broken(f"the loss went from {losses[0]:.3g} to {losses[-1]:.3g} in {len(losses)} steps")


def _missed(logits: Tensor, tokens: Tensor | None) -> Tensor:
    """The loss of tokens, else of classes that differ from neighbour to neighbour, or of such numbers."""
    if tokens is None and logits.shape[-1] == 1:
        wanted = 2.0 * (torch.arange(logits.numel()) % 2) - 1
        return F.mse_loss(logits.flatten(), wanted.to(logits))
    targets = _classes(logits) if tokens is None else tokens
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _classes(logits: Tensor) -> Tensor:
    """A class for every answer, neighbours in different ones."""
    return torch.arange(logits[..., 0].numel()) % logits.shape[-1]


def _descent(module: nn.Module) -> tuple[Callable[[Tensor], None], int, float]:
    """What a step is, how many there are, and to which share of itself the loss must fall."""
    optimiser = torch.optim.AdamW(module.parameters(), lr=2e-2)

    def step(loss: Tensor) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step, 150, 0.1


def _counting(module: Any, tokens: Tensor) -> tuple[Callable[[Tensor], None], int, float]:
    text = torch.cat([tokens.flatten(), tokens[:1, 0]]).cpu().numpy()
    return lambda _: module.estimate(module.count(text)), 2, 1.0
