from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.core import registry
from regard.core.model import logits_of
from regard.errors import UsageError
from regard.laws.check import FACTS
from regard.laws.view import view
from regard.mixers.lstm import LstmConfig
from regard.storage.tensors import copy_into
from regard.training.optimiser import Muon, Optimiser, inner_matrix_names, matrix_names, orthogonalise
from tiny_run import SETTINGS, model_of

MUON = replace(SETTINGS, optimiser="muon")


def give_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_adamw_is_the_equation_of_the_paper():
    """Loshchilov and Hutter 2019, algorithm 2, written out for one matrix and one bias."""
    model = nn.Linear(3, 2)
    settings = replace(SETTINGS, weight_decay=0.3, betas=(0.8, 0.9))
    optimiser = Optimiser(model, settings)
    expected = {name: p.detach().double().clone() for name, p in model.named_parameters()}
    first = {name: torch.zeros_like(p) for name, p in expected.items()}
    second = {name: torch.zeros_like(p) for name, p in expected.items()}
    for step, rate in enumerate([0.1, 0.05, 0.2], start=1):
        give_gradients(model, step)
        for name, parameter in model.named_parameters():
            gradient = parameter.grad.double()
            decay = 0.3 if name == "weight" else 0.0
            first[name] = 0.8 * first[name] + 0.2 * gradient
            second[name] = 0.9 * second[name] + 0.1 * gradient**2
            mean, square = first[name] / (1 - 0.8**step), second[name] / (1 - 0.9**step)
            expected[name] -= rate * (mean / (square.sqrt() + 1e-8) + decay * expected[name])
        optimiser.step(rate)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.double(), expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gpt", "lstm", "s4d", "mamba"])
def test_decay_pulls_on_matrices_only(name):
    decayed = matrix_names(model_of(name))
    assert all(part.endswith(("weight", "weight_ih_l0", "weight_hh_l0")) for part in decayed)
    assert not any("norm" in part or "decay" in part or "skip" in part or "frequency" in part for part in decayed)
    assert "embedding.token_to_vector.weight" in decayed


def test_muon_takes_the_matrices_inside_and_leaves_the_table_and_the_head():
    model = model_of("gpt")
    inner = inner_matrix_names(model)
    assert inner
    assert all(name.startswith("stack.") for name in inner)
    momenta = {name for name in Optimiser(model, MUON).tensors() if name.endswith("/momentum")}
    assert momenta == {f"{name}/momentum" for name in inner}
    assert not [name for name in Optimiser(model, SETTINGS).tensors() if name.endswith("/momentum")]


@pytest.mark.parametrize("name", [name for name in registry.names() if not registry.entry(name).fitted])
def test_muon_never_gets_a_head_a_table_or_a_vector(name):
    """The head is known by its use alone: it is the last matrix of a call."""
    entry = registry.entry(name)
    model = entry.config(FACTS, "tiny").build()
    inner = inner_matrix_names(model)
    assert inner
    named = dict(model.named_parameters())
    for key in inner:
        assert named[key].dim() == 2
        assert min(named[key].shape) > 1
    owners = {key: model.get_submodule(key.rpartition(".")[0]) for key in inner}
    assert not [key for key, owner in owners.items() if isinstance(owner, nn.Embedding)]
    written: list[nn.Module] = []
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.Embedding, nn.RNNBase)):
            part.register_forward_hook(lambda part, *_: written.append(part))
    with torch.no_grad():
        logits_of(view(model), torch.tensor([[1, 2, 3]]))
    weights = {id(weight) for weight in written[-1].parameters()}
    assert not [key for key in inner if id(named[key]) in weights]


class Outside(nn.Module):
    """A model from elsewhere, with names of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.lookup = nn.Embedding(7, 8)
        self.lift = nn.Linear(8, 8)
        self.body = LstmConfig(8).build()
        self.body.squeeze = nn.Linear(8, 1)
        self.answer = nn.Linear(8, 7)


def test_muon_never_gets_the_head_of_a_model_from_elsewhere():
    assert inner_matrix_names(Outside()) == {"body.cell.weight_ih_l0", "body.cell.weight_hh_l0"}


def test_muon_without_a_matrix_to_use_it_on_is_refused():
    with pytest.raises(UsageError, match=r"train\.optimiser=muon: the model has no matrix inside a mixer"):
        Optimiser(nn.Linear(3, 2), MUON)


def test_newton_schulz_brings_singular_values_near_one_and_keeps_the_vectors():
    for shape in ((2, 6, 6), (1, 4, 9), (3, 9, 4)):
        update = torch.randn(shape, generator=torch.Generator().manual_seed(3))
        result = orthogonalise(update)
        assert result.shape == update.shape
        for one, before in zip(result.double(), update.double(), strict=True):
            values = torch.linalg.svdvals(one)
            assert values.min() > 0.5
            assert values.max() < 1.3
            u, _, v = torch.linalg.svd(before, full_matrices=False)
            rotated = u.T @ one @ v.T
            torch.testing.assert_close(rotated, torch.diag(rotated.diagonal()), rtol=0, atol=2e-3)


def test_muon_follows_momentum_with_look_ahead_and_decay():
    weight = nn.Parameter(torch.randn(4, 6, generator=torch.Generator().manual_seed(0)))
    muon = Muon({"w": weight}, weight_decay=0.2)
    expected, momentum = weight.detach().clone(), torch.zeros(4, 6)
    for step in range(3):
        weight.grad = torch.randn(4, 6, generator=torch.Generator().manual_seed(10 + step))
        momentum = 0.95 * momentum + weight.grad
        direction = orthogonalise((weight.grad + 0.95 * momentum)[None])[0]
        expected = expected - 0.1 * (0.2 * 6**0.5 * direction + 0.2 * expected)
        muon.step(0.1)
    torch.testing.assert_close(weight.detach(), expected)


@pytest.mark.parametrize("settings", [SETTINGS, MUON])
def test_state_by_name_continues_bit_for_bit(settings):
    def train(model: nn.Module, optimiser: Optimiser, steps: range) -> None:
        for step in steps:
            give_gradients(model, step)
            optimiser.step(0.01)

    whole = model_of("lstm")
    train(whole, Optimiser(whole, settings), range(6))

    half = model_of("lstm")
    before = Optimiser(half, settings)
    train(half, before, range(3))
    saved = {name: tensor.clone() for name, tensor in before.tensors().items()}
    after = Optimiser(half, settings)
    copy_into(after.tensors(), saved)
    train(half, after, range(3, 6))
    for one, other in zip(whole.parameters(), half.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("settings", [SETTINGS, MUON])
def test_a_skipped_step_changes_no_weight(settings):
    model = model_of("gpt")
    optimiser = Optimiser(model, settings)
    give_gradients(model, 0)
    optimiser.step(0.01, torch.tensor(False))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, float("nan"))
    optimiser.step(0.01, torch.tensor(True))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
