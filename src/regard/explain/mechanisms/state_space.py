"""State spaces worked out for one channel: a convolution for S4D, a selective scan for Mamba and Mamba-2.

A channel is asked for as a head, from 1 on; of Mamba-2, whose heads share a step, a head by its first channel.
"""

from __future__ import annotations

import numpy as np

from regard.errors import UsageError
from regard.explain.mechanism import Mechanism, register_mechanism
from regard.explain.mechanisms.calculation import READABLE, Calculation, equation
from regard.explain.scan import mamba_states, rate_of, s4d_states, ssd_states, states
from regard.explain.view import Numbers, Panel
from regard.mixers.mamba import Mamba
from regard.mixers.s4d import S4d
from regard.mixers.ssd import Ssd


def s4d(given: Calculation) -> list[Panel]:
    """y_t as a sum over the past, each input weighed by the kernel of its age."""
    channel = _channel(given, given.input.shape[1])
    kernel = given.seen["kernel"][channel]
    ages = np.arange(min(given.place + 1, READABLE))
    inputs = given.input[given.place - ages, channel]
    products = kernel[ages] * inputs
    skip = float(_numbers(given.site.module.skip)[channel]) * given.input[given.place, channel]
    whole = float(kernel[: given.place + 1][::-1] @ given.input[: given.place + 1, channel])
    return [
        equation("y_t = sum_j K_j u_(t-j) + D u_t        K_j = 2 Re(C A^j B)"),
        Numbers(
            title=f"Channel {channel + 1} at {given.label!r}",
            key="convolution",
            values=np.stack([inputs, kernel[ages], products], 1),
            rows=[given.labels[given.place - age] for age in ages],
            columns=["u", "K (age)", "K u"],
            note=f"ages 0 to {ages[-1]}",
        ),
        Numbers(
            title="Output",
            key="output",
            values=np.array([[whole, skip, whole + skip]]),
            columns=["sum over all ages", "D u", "y"],
        ),
    ]


def selective(given: Calculation) -> list[Panel]:
    """The state of one channel, token by token: how much is let in, and how much of the past stays."""
    stream, steps = given.seen["stream"], given.seen["steps"]
    write, read = given.seen["inputs"], given.seen["readers"]
    every = states(given.site, given.trace).cpu().double().numpy()
    rate, skip = _numbers(rate_of(given.site)), _numbers(given.site.module.skip)
    if stream.ndim == 3:  # Mamba-2: heads of several channels share a step and a decay
        head = _channel(given, stream.shape[1], "heads")
        channel, group = head * stream.shape[2], head * write.shape[1] // stream.shape[1]
        u, dt, h = stream[:, head, 0], steps[:, head], every[:, head, 0]
        write, read, rate, skip = write[:, group], read[:, group], rate[head], skip[head]
    else:
        channel = _channel(given, stream.shape[1])
        u, dt, h = stream[:, channel], steps[:, channel], every[:, channel]
        rate, skip = rate[channel], skip[channel]
    decay = np.exp(dt[:, None] * rate) * np.ones_like(write)  # (T, N)
    written = (dt * u)[:, None] * write
    y = (h * read).sum(1)
    last = np.arange(max(0, given.place + 1 - READABLE), given.place + 1)
    labels = [given.labels[t] for t in last]
    columns = ["u", "dt", "keep exp(dt A)", "write dt B u", "h", "C"]
    values = np.stack([u, dt, decay[:, 0], written[:, 0], h[:, 0], read[:, 0]], 1)[last]
    result = np.array([[y[given.place], skip * u[given.place], y[given.place] + skip * u[given.place]]])
    return [
        equation("h_t = exp(dt_t A) h_(t-1) + dt_t B_t u_t        y_t = C_t . h_t + D u_t"),
        Numbers(
            title=f"Channel {channel + 1}, the first of {h.shape[1]} states",
            key="scan",
            values=values,
            rows=labels,
            columns=columns,
            note="dt large: the token is let in and the past is let go; dt small: the token passes by",
        ),
        Numbers(title=f"Output at {given.label!r}", key="output", values=result, columns=["C . h", "D u", "y"]),
    ]


def _channel(given: Calculation, count: int, what: str = "channels") -> int:
    channel = 1 if given.options.head is None else given.options.head
    if not 1 <= channel <= count:
        raise UsageError(f"head {channel}: {what} of this layer are 1 to {count}")
    return channel - 1


def _numbers(parameter: object) -> np.ndarray:
    return parameter.detach().cpu().double().numpy()  # pyright: ignore[reportAttributeAccessIssue]  # a parameter


register_mechanism(
    S4d,
    Mechanism(
        "s4d",
        "S4D",
        "S4D",
        s4d,
        states=s4d_states,
        order=lambda _: "weighs tokens by how long ago they were",
        shows=frozenset({"kernel"}),
        rank=7,
    ),
)
for _part, _kind, _named, _title, _states in (
    (Mamba, "mamba", "Mamba", "selective scan", mamba_states),
    (Ssd, "ssd", "Mamba-2", "state space duality", ssd_states),
):
    register_mechanism(
        _part,
        Mechanism(
            _kind,
            _named,
            _title,
            selective,
            states=_states,
            order=lambda _: "reads one token after the other",
            shows=frozenset({"selection"}),
            rank=8,
        ),
    )
