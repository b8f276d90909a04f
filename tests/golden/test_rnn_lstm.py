"""Feed-forward nets and recurrences with every number of the lecture's equations (rnn_lstm.json)."""

from __future__ import annotations

import torch
from exact import load, same, tensor
from torch import Tensor

from regard.core.bidirectional import BidirectionalConfig
from regard.core.context import Context
from regard.core.mixer import Mixer
from regard.core.stack import MixerConfig, ResidualConfig, StackConfig
from regard.core.tap import record
from regard.layers.mlp import MlpConfig
from regard.layers.score import softmax
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.rnn import RnnConfig

GOLDEN = load("rnn_lstm")
VANILLA = GOLDEN["vanilla_rnn"]


def steps(part: str, key: str) -> Tensor:
    """One number or vector of every step, (T, ...)."""
    return tensor([step[key] for step in GOLDEN[part]["steps"]])


def with_vanilla_weights(config: MixerConfig) -> Mixer:
    """A composition of biasless vanilla cells, all with the golden W_h and W_i."""
    mixer = config.build().double()
    weights = {"weight_hh_l0": tensor(VANILLA["W_h"]), "weight_ih_l0": tensor(VANILLA["W_i"])}
    mixer.load_state_dict({name: weights[name.rpartition(".")[2]] for name in mixer.state_dict()})
    return mixer


def test_feed_forward_net() -> None:
    example = GOLDEN["feed_forward"]["own_example"]
    net = MlpConfig(2, 3, "relu").build().double()
    # The golden net has one output; a second one is held at zero because Mlp keeps the width of its input.
    net.load_state_dict(
        {
            "input_to_hidden.weight": tensor(example["W1"]),
            "input_to_hidden.bias": tensor(example["b1"]),
            "hidden_to_output.weight": tensor([*example["W2"], [0, 0, 0]]),
            "hidden_to_output.bias": tensor([*example["b2"], 0]),
        }
    )
    x = tensor(example["x"])
    same(net.input_to_hidden(x), example["h1_pre"])
    same(net.activation(net.input_to_hidden(x)), example["h1"])
    same(net(x), [*example["y"], 0])


def test_gradient_descent_on_the_output_of_a_net() -> None:
    example = GOLDEN["gradient_descent"]["own_example"]
    net = MlpConfig(1, 1, "relu").build().double()
    for parameter in net.parameters():
        torch.nn.init.zeros_(parameter)
    theta = net.hidden_to_output.bias
    for t in (1, 2, 3):
        loss = (net(tensor([1.0])) - 3).square().sum()
        (gradient,) = torch.autograd.grad(loss, theta)
        with torch.no_grad():
            theta -= example["alpha"] * gradient
        same(theta, [example[f"theta_{t}"]])
        same(theta, [3 * (1 - 0.8**t)])


def test_vanilla_recurrence_and_its_outputs() -> None:
    # y has three entries and x two: x gets a third that no weight reads.
    rnn = RnnConfig(3, 2, bias=False, project=True).build().double()
    rnn.load_state_dict(
        {
            "cell.weight_ih_l0": torch.cat([tensor(VANILLA["W_i"]), torch.zeros(2, 1)], 1),
            "cell.weight_hh_l0": tensor(VANILLA["W_h"]),
            "hidden_to_output.weight": tensor(VANILLA["W_o"]),
        }
    )
    x = torch.cat([steps("vanilla_rnn", "x"), torch.zeros(3, 1)], 1)[None]
    with record(rnn) as seen:
        same(rnn(x)[0][0], steps("vanilla_rnn", "y"))
    same(torch.cat(seen["hidden"]), steps("vanilla_rnn", "h"))
    y, state = rnn(x, rnn.init_state(1))
    same(y[0], steps("vanilla_rnn", "y"))
    same(softmax(y[0]), steps("vanilla_rnn", "softmax_y"))
    same(state.hidden[0], VANILLA["steps"][-1]["h"])


def test_recurrence_is_one_map_of_hidden_and_input_side_by_side() -> None:
    before = torch.cat([torch.zeros(1, 2), steps("vanilla_rnn", "h")[:-1]])
    pair = torch.cat([before, steps("vanilla_rnn", "x")], 1)
    same(pair @ tensor(VANILLA["W_concat"]).T, steps("vanilla_rnn", "pre"))
    rnn = with_vanilla_weights(RnnConfig(2, bias=False))
    same(rnn(steps("vanilla_rnn", "x")[None])[0][0], steps("vanilla_rnn", "pre").tanh())


def test_lstm_gates_cell_and_output() -> None:
    golden = GOLDEN["lstm"]
    lstm = LstmConfig(2).build().double()
    stacked = tensor([golden[f"W_{gate}"] for gate in "ifco"]).flatten(0, 1)  # on [h, x], in torch's order
    lstm.load_state_dict(
        {
            "cell.weight_hh_l0": stacked[:, :2],
            "cell.weight_ih_l0": stacked[:, 2:],
            "cell.bias_ih_l0": tensor([golden[f"b_{gate}"] for gate in "ifco"]).flatten(),
            "cell.bias_hh_l0": torch.zeros(8),
        }
    )
    x = steps("lstm", "x")[None]
    with record(lstm) as seen:
        same(lstm(x)[0][0], steps("lstm", "h"))
    names = {"input_gate": "i", "forget_gate": "f", "candidate": "c_tilde", "output_gate": "o", "memory": "c"}
    for tap, letter in names.items():
        same(torch.cat(seen[tap]), steps("lstm", letter))
    h, state = lstm(x, lstm.init_state(1))
    same(h[0], steps("lstm", "h"))
    same(state.hidden[0], golden["steps"][-1]["h"])
    same(state.cell[0], golden["steps"][-1]["c"])


def test_gru_in_the_convention_of_cho() -> None:
    golden = GOLDEN["gru"]
    gru = GruConfig(2, bias=False, convention="cho").build().double()
    gru.load_state_dict(
        {
            "cell.weight_ih_l0": tensor([golden["W_r"], golden["W_z"], golden["W"]]).flatten(0, 1),
            "cell.weight_hh_l0": tensor([golden["U_r"], golden["U_z"], golden["U"]]).flatten(0, 1),
        }
    )
    x = steps("gru", "x")[None]
    with record(gru) as seen:
        same(gru(x)[0][0], steps("gru", "h"))
    for tap, letter in {"reset_gate": "r", "update_gate": "z", "candidate": "h_tilde"}.items():
        same(torch.cat(seen[tap]), steps("gru", letter))
    h, state = gru(x, gru.init_state(1))
    same(h[0], steps("gru", "h"))
    same(state.hidden[0], golden["steps"][-1]["h"])


def test_bidirectional_pairs_past_and_future() -> None:
    pair = with_vanilla_weights(BidirectionalConfig(2, RnnConfig(2, bias=False), project=False))
    x, expected = steps("vanilla_rnn", "x")[None], GOLDEN["bidirectional"]["values"]
    y, _ = pair(x, pair.init_state(1))
    same(y[0], expected)
    padded = torch.cat([x, torch.full((1, 2, 2), 9.0)], 1)
    y, _ = pair(padded, pair.init_state(1), Context(lengths=torch.tensor([3])))
    same(y[0, :3], expected)


def test_stacked_layers() -> None:
    stack = with_vanilla_weights(StackConfig(2, (RnnConfig(2, bias=False),) * 2))
    x = steps("vanilla_rnn", "x")[None]
    same(stack(x)[0][0], GOLDEN["stacked"]["second_layer_h"])
    _, state = stack(x, stack.init_state(1))
    same(state[0].hidden[0], VANILLA["steps"][-1]["h"])
    same(state[1].hidden[0], GOLDEN["stacked"]["second_layer_h"][-1])


def test_residual_layers_add_to_the_stream() -> None:
    x, layer = steps("vanilla_rnn", "x")[None], ResidualConfig(2, RnnConfig(2, bias=False))
    for n_layers, key in ((1, "after_one_layer"), (2, "after_two_layers")):
        stack = with_vanilla_weights(StackConfig(2, (layer,) * n_layers))
        same(stack(x)[0][0], GOLDEN["residual"][key])
