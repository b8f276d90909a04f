"""A feed-forward net with every number, and gradient descent on the simplest loss.

h_0 = x    h_(l+1) = g(W_(l+1) h_l + b_(l+1))    y = h_L        g(a) = max(0, a)
theta <- theta - alpha grad J(theta)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.explain.view import Curves, Panel, View
from regard.explain.worked.sheet import answer, formula, numbers, sheet, short, tensor, text
from regard.layers.mlp import MlpConfig

X = tensor([1, -2])
W_1, B_1 = tensor([[1, 0], [1, 1], [-1, -1]]), tensor([0, 0.5, 0])
W_2, B_2 = tensor([[1, 2, 3]]), tensor([-1])
RATE, TARGET = 0.1, 3.0
UNITS = ["unit 1", "unit 2", "unit 3"]


def view() -> View:
    return sheet("feed-forward", "A feed-forward net and how it learns", _net(), _descent())


def _net() -> Sequence[Panel]:
    net = MlpConfig(2, 3, "relu").build().double()
    # The package's net gives back the width of its input: a second output is held at zero and not shown.
    net.load_state_dict(
        {
            "input_to_hidden.weight": W_1,
            "input_to_hidden.bias": B_1,
            "hidden_to_output.weight": torch.cat([W_2, torch.zeros(1, 3)]),
            "hidden_to_output.bias": torch.cat([B_2, torch.zeros(1)]),
        }
    )
    before = net.input_to_hidden(X)
    hidden = net.activation(before)
    y = net(X)[:1]
    return [
        formula("h_0 = x    h_(l+1) = g(W_(l+1) h_l + b_(l+1))    y = h_L", "g(a) = max(0, a)", title="The net"),
        numbers("x", X, "h_0 = x", title="Input", rows=["x"], columns=["1", "2"]),
        numbers("W1", W_1, "W_1", title="Weights of layer 1", rows=UNITS, columns=["1", "2"]),
        numbers("b1", B_1, "b_1", title="Biases of layer 1", rows=["b"], columns=UNITS),
        numbers("h1_pre", before, "W_1 x + b_1", title="Layer 1 before g", rows=["a"], columns=UNITS),
        numbers(
            "h1",
            hidden,
            "h_1 = max(0, W_1 x + b_1)",
            title="Layer 1",
            rows=["h_1"],
            columns=UNITS,
            marked=[(0, 1)],
            note="ReLU lets positive numbers through and stops the others.",
        ),
        numbers("W2", W_2, "W_2", title="Weights of layer 2", rows=["y"], columns=UNITS),
        numbers("b2", B_2, "b_2", title="Bias of layer 2", rows=["b"], columns=["y"]),
        numbers("y", y, "y = W_2 h_1 + b_2", title="Output", rows=["y"], columns=["1"]),
        answer(
            "Does it matter that the last layer has no g?",
            f"Not here: max(0, {short(y[0])}) is {short(net.activation(y)[0])}. It would for a negative output.",
        ),
    ]


def _descent() -> Sequence[Panel]:
    """Gradient descent on the one bias of a net whose weights are zero, so that its output is theta itself."""
    net = MlpConfig(1, 1, "relu").build().double()
    for parameter in net.parameters():
        torch.nn.init.zeros_(parameter)
    theta = net.hidden_to_output.bias
    thetas, gradients = [theta.item()], []
    for _ in range(3):
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad((net(tensor([1.0])) - TARGET).square().sum(), theta)
        theta -= RATE * gradient
        gradients.append(gradient.item())
        thetas.append(theta.item())
    losses = [(value - TARGET) ** 2 for value in thetas]
    grid = [n / 10 for n in range(61)]
    return [
        text("Learning looks for the theta with the smallest loss J(theta), by going downhill.", "Gradient descent"),
        formula("theta <- theta - alpha grad J(theta)", f"J(theta) = (theta - 3)^2    alpha = {RATE}"),
        numbers(
            "theta",
            tensor(thetas),
            "theta_(t+1) = theta_t - 0.1 x 2 (theta_t - 3)",
            title="Four values of theta",
            rows=["theta"],
            columns=[f"t = {t}" for t in range(4)],
            note="theta_t = 3 (1 - 0.8^t): every step goes a fifth of the way that is left.",
        ),
        numbers(
            "gradient",
            tensor(gradients),
            "grad J = 2 (theta_t - 3)",
            title="The gradient, by back-propagation",
            rows=["grad J"],
            columns=[f"t = {t}" for t in range(3)],
        ),
        Curves(
            key="descent",
            title="Down the parabola",
            lines={
                "J(theta)": [(value, (value - TARGET) ** 2) for value in grid],
                "the steps": list(zip(thetas, losses, strict=True)),
            },
            x="theta",
            y="J",
        ),
    ]
