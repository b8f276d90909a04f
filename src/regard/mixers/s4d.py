"""S4D: a diagonal linear state space model for each channel (Gu et al. 2022), as a convolution and as a recurrence.

    s'(t) = A s(t) + B u(t),  y(t) = C s(t) + D u(t)          continuous
    s_t = A~ s_(t-1) + B~ u_t,  y_t = 2 Re(C s_t) + D u_t     discrete, zero-order hold:
    A~ = exp(dt A),  B~ = (A~ - 1) / A * B                    B = 1, absorbed in C

The same map as a convolution, K_j = 2 Re(C A~^j B~), y = K * u + D u, computed by FFT over a chunk. Conjugate pairs
are kept once, hence the factor 2; the real initialisation has no pairs and no factor.

Glossary
N    state size of a channel (N / 2 complex pairs, or N reals)
dt   step of a channel, exp(log_step), between 0.001 and 0.1 at the start
A    diagonal, real part negative.  lin: -1/2 + i pi n;  inv: -1/2 + i N/pi (N/(2n+1) - 1);  real: -(n+1);
     legs: eigenvalues of the normal part of HiPPO-LegS
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, stepped, zero_position
from regard.core.tap import Tap
from regard.layers.linear import Linear

Initialisation = Literal["lin", "inv", "legs", "real"]
Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class DiagonalState(State):
    """modes (B, D, N', 2): real and imaginary part of every mode of every channel."""

    modes: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class S4dConfig(MixerConfig, kind="s4d"):
    """d_state: N. The output goes through GELU and a gated linear map (GLU), as in the paper's block."""

    d_state: int = 64
    init: Initialisation = "lin"
    step_min: float = 0.001
    step_max: float = 0.1

    def __post_init__(self) -> None:
        check(self.d_state >= 2 and self.d_state % 2 == 0, f"d_state must be even and positive, found {self.d_state}")
        check(0 < self.step_min <= self.step_max, "step_min must be positive and at most step_max")

    def build(self) -> S4d:
        return S4d(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {f"s4d-{init}" if init != "lin" else "s4d": cls(8, 4, init) for init in ("lin", "inv", "legs", "real")}


class S4d(Mixer):
    """Convolution by FFT for a chunk, recurrence for a step, from any state."""

    skips_state = True
    writes_to_stream = ("hidden_to_output",)

    def __init__(self, config: S4dConfig) -> None:
        super().__init__()
        span = math.log(config.step_max) - math.log(config.step_min)
        with torch.device("cpu"):  # few numbers; the first arithmetic on the meta device loads two seconds of torch
            modes = initial_modes(config.init, config.d_state)  # (N',) complex
            log_step = torch.rand(config.d_model) * span + math.log(config.step_min)
        self.conjugate_factor = 1.0 if config.init == "real" else 2.0
        width, count = config.d_model, len(modes)
        self.log_decay = nn.Parameter(torch.empty(width, count).copy_(torch.log(-modes.real)))
        self.frequency = nn.Parameter(torch.empty(width, count).copy_(modes.imag))
        self.log_step = nn.Parameter(torch.empty(width).copy_(log_step))
        self.state_to_channel = nn.Parameter(torch.empty(width, count, 2).normal_(std=0.5**0.5))
        self.skip = nn.Parameter(torch.empty(width).normal_())
        self.hidden_to_output = Linear(width, 2 * width)
        self.received, self.kernel, self.channels = Tap(), Tap(2), Tap()

    def init_state(self, batch_size: int) -> State:
        modes = self.zeros(batch_size, *self.state_to_channel.shape, dtype=self.dtype_of_sums())
        return DiagonalState(modes, zero_position(batch_size, modes.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        log_decay, drive, read = self.discrete()
        powers = self._powers(log_decay, x.shape[1])  # A~^0 .. A~^(T-1), (D, N', T)
        y = self._convolve(x, powers, drive, read)
        if state is None:
            return self._output(y), None
        assert isinstance(state, DiagonalState)
        before = torch.view_as_complex(state.modes.contiguous())  # (B, D, N')
        # What the state from before the chunk still says: 2 Re(C A~^(t+1) s).
        carried = torch.einsum("DNT,BDN->BTD", (read * log_decay.exp())[..., None] * powers, before)
        y = y + self.conjugate_factor * carried.real.to(x.dtype)
        after = self._final_state(x, before, powers, log_decay, drive, context.lengths)
        return self._output(y), DiagonalState(after, advance(state.count, x.shape[1], context.lengths))

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, DiagonalState)
        keep, drive, read = self._discrete_parts()
        (a, b), (m, n) = keep, state.modes.unbind(-1)  # real and imaginary parts apart: other programs lack the pair
        modes = torch.stack([a * m - b * n, a * n + b * m], -1) + torch.stack(drive, -1) * x[:, :, None, None]
        said = read[0] * modes[..., 0] - read[1] * modes[..., 1]
        y = self.conjugate_factor * said.sum(-1).to(x.dtype) + self.skip * x
        return self._output(y), DiagonalState(modes, stepped(state.count, context.owned))

    def discrete(self) -> tuple[Tensor, Tensor, Tensor]:
        """dt A, B~ and C, complex (D, N')."""
        decay, frequency, step, read = self._continuous()
        rate = torch.complex(-decay, frequency)
        log_decay = rate * step
        return log_decay, torch.expm1(log_decay) / rate, torch.view_as_complex(read)

    def _discrete_parts(self) -> tuple[Pair, Pair, Pair]:
        """A~, B~ and C as pairs of real and imaginary part, (D, N') each."""
        decay, frequency, step, read = self._continuous()
        real, turn = -decay * step, frequency * step
        keep = real.exp() * turn.cos(), real.exp() * turn.sin()
        # e^z - 1 without the loss of digits near z = 0, divided by A.
        less = torch.expm1(real) * turn.cos() - 2 * (turn / 2).sin() ** 2
        size = decay**2 + frequency**2
        drive = (frequency * keep[1] - decay * less) / size, -(decay * keep[1] + frequency * less) / size
        return keep, drive, (read[..., 0], read[..., 1])

    def _continuous(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """-Re A, Im A, dt (D, 1) and C. Float32 at least: a rounded decay is another memory."""
        parameters = (self.log_decay, self.frequency, self.log_step, self.state_to_channel)
        decay, frequency, step, read = (parameter.to(self.dtype_of_sums()) for parameter in parameters)
        return decay.exp(), frequency, step.exp()[:, None], read

    @staticmethod
    def _powers(log_decay: Tensor, length: int) -> Tensor:
        return torch.exp(log_decay[..., None] * torch.arange(length, device=log_decay.device))

    def _convolve(self, x: Tensor, powers: Tensor, drive: Tensor, read: Tensor) -> Tensor:
        """K * u + D u by FFT, zero-padded to twice the length so that nothing wraps around."""
        length, x = x.shape[1], self.received(x)
        kernel = self.kernel(self._weights(powers, drive, read)[None])[0]
        u = x.transpose(1, 2).to(kernel.dtype)  # (B, D, T)
        spectrum = torch.fft.rfft(u, 2 * length) * torch.fft.rfft(kernel, 2 * length)
        y = torch.fft.irfft(spectrum, 2 * length)[..., :length].transpose(1, 2)
        return y.to(x.dtype) + self.skip * x

    def weights(self, length: int) -> Tensor:
        """K_0 .. K_(length - 1) of every channel, (D, length)."""
        log_decay, drive, read = self.discrete()
        return self._weights(self._powers(log_decay, length), drive, read)

    def _weights(self, powers: Tensor, drive: Tensor, read: Tensor) -> Tensor:
        return self.conjugate_factor * ((read * drive)[:, None] @ powers).real[:, 0]

    def _final_state(
        self, x: Tensor, before: Tensor, powers: Tensor, log_decay: Tensor, drive: Tensor, lengths: Tensor | None
    ) -> Tensor:
        """s after each row's last real token, (B, D, N', 2)."""
        batch, length, _ = x.shape
        count = torch.full((batch,), length, device=x.device) if lengths is None else lengths.to(x.device)
        # Each row is moved to end at the last place, so that A~^(T-1-t) is the age of its tokens; zeros come before.
        source = torch.arange(length, device=x.device) - (length - count[:, None])  # (B, T)
        u = x.gather(1, source.clamp(min=0)[..., None].expand_as(x)) * (source >= 0)[..., None]
        driven = torch.einsum("DNT,BTD->BDN", powers.flip(-1), u.to(powers.dtype)) * drive
        return torch.view_as_real(driven + torch.exp(log_decay * count[:, None, None]) * before)

    def _output(self, y: Tensor) -> Tensor:
        return F.glu(self.hidden_to_output(F.gelu(self.channels(y))), -1)


def initial_modes(init: Initialisation, d_state: int) -> Tensor:
    """The diagonal A at the start; N / 2 complex numbers, or N reals for "real"."""
    if init == "real":
        return torch.complex(-(torch.arange(d_state, dtype=torch.float64) + 1), torch.zeros(d_state).double())
    n = torch.arange(d_state // 2, dtype=torch.float64)
    if init == "legs":
        return _legs_modes(d_state)
    imaginary = math.pi * n if init == "lin" else d_state / math.pi * (d_state / (2 * n + 1) - 1)
    return torch.complex(torch.full_like(n, -0.5), imaginary)


def _legs_modes(d_state: int) -> Tensor:
    """Eigenvalues of the normal part of HiPPO-LegS: -1/2 on the diagonal, a skew matrix around it (S4, eq. 2)."""
    root = torch.sqrt(2 * torch.arange(d_state, dtype=torch.float64) + 1)
    product = root[:, None] * root / 2
    skew = torch.triu(product, 1) - torch.tril(product, -1)
    imaginary = torch.linalg.eigvalsh(skew * -1j)
    return torch.complex(torch.full((d_state // 2,), -0.5).double(), imaginary[d_state // 2 :])
