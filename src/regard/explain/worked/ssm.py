"""A state space model in its four forms: continuous, recurrence, convolution, and with choice a scan or a matrix.

x' = A x + B u,  y = C x + D u                                     continuous
x_t = A~ x_(t-1) + B~ u_t,  y_t = C x_t + D u_t                    recurrence
y = K * u + D u,  K_j = C A~^j B~                                  convolution        Gu et al. 2021, 2022
h_t = exp(dt_t a) h_(t-1) + dt_t B_t u_t,  y_t = C_t h_t           selective          Gu and Dao 2023
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.tap import record
from regard.explain.view import Curves, Heat, Panel, View
from regard.explain.worked.sheet import answer, array, formula, numbers, sheet, short, steps, tensor, text
from regard.kernels.selective_scan import selective_scan
from regard.kernels.ssd_readable import ssd_quadratic
from regard.mixers.s4d import DiagonalState, Initialisation, S4d, S4dConfig, initial_modes

A, C, D, STEP = tensor([-0.5, -2.0]), tensor([1.0, -0.5]), 0.25, 0.1
U = tensor([1.0, 0.0, -1.0, 2.0])
# The selective model: one channel, one mode, and a choice at every step.
RATE = -1.0
CHOSEN_STEP, WRITE, READ = tensor([0.1, 2.0, 0.01, 0.5]), tensor([1.0, 0.5, -1.0, 2.0]), tensor([1.0, 1.0, 0.5, -1.0])
TIMES, MODES = steps(len(U)), ["mode 1", "mode 2"]


def view() -> View:
    parts = (_continuous, _discrete, _recurrence, _convolution, _selective, _matrix, _starts)
    return sheet("ssm", "A state space model", *(part() for part in parts))


def diagonal() -> S4d:
    """The package's S4D with one channel and the given real modes; B is 1 there as here."""
    mixer = S4dConfig(1, 2, "real").build().double()
    mixer.load_state_dict(
        mixer.state_dict()
        | {
            "log_decay": (-A[None]).log(),
            "frequency": torch.zeros(1, 2),
            "log_step": tensor([STEP]).log(),
            "state_to_channel": torch.stack([C, torch.zeros(2)], -1)[None],
            "skip": tensor([D]),
        }
    )
    return mixer


def driven(inputs: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """States (T, 2) and outputs (T,) of the recurrence from a state."""
    mixer = diagonal()
    start = mixer.init_state(1)
    assert isinstance(start, DiagonalState)
    state = DiagonalState(torch.stack([before, torch.zeros(2)], -1)[None, None], start.count)
    states, outputs = [], []
    for u in inputs:
        with record(mixer, "channels") as seen:
            _, state = mixer.step(u.reshape(1, 1), state)
        assert isinstance(state, DiagonalState)
        states.append(state.modes[0, 0, :, 0])
        outputs.append(seen["channels"][0][0, 0])
    return torch.stack(states), torch.stack(outputs)


def _continuous() -> Sequence[Panel]:
    return [
        formula("x' = A x + B u    y = C x + D u", title="A state that decays and is driven by the input"),
        text("A is diagonal, so that every mode lives by itself. Here are two, a slow one and a fast one."),
        numbers(
            "modes",
            torch.stack([A, torch.ones(2), C]),
            f"D = {D}    dt = {STEP}",
            title="Given",
            rows=["A", "B", "C"],
            columns=MODES,
        ),
        numbers("u", U, "u_t", title="Input", rows=["u"], columns=TIMES),
    ]


def _discrete() -> Sequence[Panel]:
    nothing = torch.zeros(2, dtype=torch.float64)
    a_bar = driven(tensor([0.0]), nothing + 1)[0][0]  # what is left of 1 after a step
    b_bar = driven(tensor([1.0]), nothing)[0][0]  # what an input of 1 leaves
    half = STEP * A / 2
    bilinear = torch.stack([(1 + half) / (1 - half), STEP / (1 - half)])
    return [
        text(
            "Inputs come in steps of dt. If u stays the same during a step (zero-order hold), the equation is solved "
            "exactly.",
            "From continuous to discrete",
        ),
        numbers(
            "zoh",
            torch.stack([a_bar, b_bar]),
            "A~ = exp(dt A)    B~ = (A~ - 1) / A",
            title="Zero-order hold",
            rows=["A~", "B~"],
            columns=MODES,
        ),
        numbers(
            "bilinear",
            bilinear,
            "A~ = (1 + dt A / 2) / (1 - dt A / 2)    B~ = dt / (1 - dt A / 2)",
            title="The bilinear rule, for comparison",
            rows=["A~", "B~"],
            columns=MODES,
            note="Nearly the same where dt is small. All that follows uses the zero-order hold.",
        ),
    ]


def _recurrence() -> Sequence[Panel]:
    states, outputs = driven(U, torch.zeros(2, dtype=torch.float64))
    lines = {mode: [(float(t + 1), float(v)) for t, v in enumerate(states[:, n])] for n, mode in enumerate(MODES)}
    return [
        numbers("states", states, "x_t = A~ x_(t-1) + B~ u_t", title="As a recurrence", rows=TIMES, columns=MODES),
        Curves(key="state_curves", title="The states over time", lines=dict(lines), x="t", y="x"),
        numbers("y_recurrent", outputs, "y_t = C x_t + D u_t", title="Outputs", rows=["y"], columns=TIMES),
        answer(
            "What does a step cost?", "The same at every step: the state has two numbers, however long the input is."
        ),
    ]


def _convolution() -> Sequence[Panel]:
    mixer = diagonal()
    with record(mixer) as seen:
        mixer(U[None, :, None])
    kernel, outputs = seen["kernel"][0][0, 0], seen["channels"][0][0, :, 0]
    gap = (outputs - driven(U, torch.zeros(2, dtype=torch.float64))[1]).abs().max()
    with record(mixer, "kernel") as far:
        mixer(torch.zeros(1, 64, 1, dtype=torch.float64))
    curve = [(float(j), float(value)) for j, value in enumerate(far["kernel"][0][0, 0])]
    return [
        numbers(
            "kernel",
            kernel,
            "K_j = C A~^j B~",
            title="As a convolution",
            rows=["K"],
            columns=[f"j = {j}" for j in range(4)],
        ),
        Curves(key="kernel_curve", title="How an input is still felt", lines={"K": curve}, x="steps ago", y="K"),
        numbers("y_convolution", outputs, "y = K * u + D u", title="Outputs", rows=["y"], columns=TIMES),
        answer(
            "Is it the same?",
            f"Yes, to within {short(gap)}. The convolution reads all inputs at once, which is how it is trained; the "
            "recurrence reads one, which is how it generates.",
        ),
    ]


def scanned(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """States and outputs of the selective model, (T,) each."""
    h = torch.zeros(1, 1, 1, dtype=torch.float64)
    u, dt, b, c = (values.reshape(1, -1, 1) for values in (inputs, CHOSEN_STEP, WRITE, READ))
    states, outputs = [], []
    for t in range(len(inputs)):
        now = slice(t, t + 1)
        y, h = selective_scan(u[:, now], dt[:, now], tensor([[RATE]]), b[:, now], c[:, now], h)
        states.append(h.flatten()[0])
        outputs.append(y.flatten()[0])
    return torch.stack(states), torch.stack(outputs)


def _selective() -> Sequence[Panel]:
    states, outputs = scanned(U)
    return [
        text(
            "So far every input is treated alike. Mamba chooses: the step dt, what is written (B) and what is read (C) "
            "depend on the input. A large dt forgets the past and takes the input; a small one skips it.",
            "Selective",
        ),
        numbers(
            "chosen",
            torch.stack([U, CHOSEN_STEP, WRITE, READ]),
            f"a = {RATE:g}",
            title="What was chosen at each step",
            rows=["u", "dt", "B", "C"],
            columns=TIMES,
        ),
        numbers(
            "selective_decay",
            (CHOSEN_STEP * RATE).exp(),
            "exp(dt_t a)",
            title="What is kept of the state",
            rows=["A~"],
            columns=TIMES,
        ),
        numbers(
            "selective_states",
            states,
            "h_t = exp(dt_t a) h_(t-1) + dt_t B_t u_t",
            title="States",
            rows=["h"],
            columns=TIMES,
        ),
        numbers("selective_y", outputs, "y_t = C_t h_t", title="Outputs", rows=["y"], columns=TIMES),
    ]


def _matrix() -> Sequence[Panel]:
    dt, b, c = (v.reshape(1, -1, 1, 1) for v in (CHOSEN_STEP, WRITE, READ))
    # A head of width 4 whose input at t is one-hot: its outputs are the columns of M. A fifth column carries u.
    x = torch.cat([torch.eye(4, dtype=torch.float64), U[:, None]], 1)[None, :, None] * dt
    y = ssd_quadratic(x, dt[..., 0] * RATE, b, c)[0, :, 0]
    matrix, outputs = y[:, :4], y[:, 4]
    largest = float(matrix.abs().max())
    return [
        formula("y = M u    M_ij = C_i exp(sum over j < k <= i of dt_k a) dt_j B_j    j <= i", title="As one matrix"),
        numbers("M", matrix, "M", title="What each output takes of each input", rows=TIMES, columns=TIMES),
        Heat(
            key="M_heat",
            title="A triangle like that of causal attention",
            weights=array(matrix),
            rows=TIMES,
            columns=TIMES,
            row_name="output",
            column_name="input",
            low=-largest,
            high=largest,
            scale="M",
        ),
        numbers("y_matrix", outputs, "y = M u", title="Outputs", rows=["y"], columns=TIMES),
        answer(
            "Is this attention?",
            "Nearly (Mamba-2): C plays the query, B the key, dt u the value, and a decay stands in the place of the "
            f"softmax. The outputs are those of the scan, to within {short((outputs - scanned(U)[1]).abs().max())}.",
        ),
    ]


def _starts() -> Sequence[Panel]:
    named: dict[Initialisation, tuple[str, int]] = {
        "lin": ("-1/2 + i pi n", 8),
        "inv": ("-1/2 + i (N/pi) (N/(2n+1) - 1),  N = 8", 8),
        "real": ("-(n + 1)", 4),
    }
    panels: list[Panel] = [
        numbers(
            f"start_{name}",
            torch.view_as_real(initial_modes(name, size)).T,
            f"A_n = {equation}",
            title=f"S4D-{name.capitalize()}",
            rows=["real", "imaginary"],
            columns=[f"n = {n}" for n in range(4)],
        )
        for name, (equation, size) in named.items()
    ]
    return [text("Where the modes begin decides what can be remembered. Imaginary parts oscillate.", "Starts"), *panels]
