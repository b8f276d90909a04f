"""What is noted of each row after a step of decoding, as one Triton kernel; imported on first use only.

The readable form is in decoding/slots.py.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _note(tokens, log_probs, eos, last, left, alive, out, place, n, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    real = row < n
    at = tl.load(place)
    token = tl.load(tokens + row, mask=real, other=0)
    log_prob = tl.load(log_probs + row, mask=real, other=0.0)
    remaining = tl.load(left + row, mask=real, other=0) - 1
    goes_on = tl.load(alive + row, mask=real, other=0).to(tl.int1)
    goes_on = goes_on & (token != tl.load(eos + row, mask=real, other=0)) & (remaining > 0) & (log_prob == log_prob)
    out += at * 2 * n
    tl.store(out + row, token.to(out.dtype.element_ty), mask=real)
    tl.store(out + n + row, log_prob.to(out.dtype.element_ty), mask=real)
    tl.store(last + row, token, mask=real)
    tl.store(left + row, remaining, mask=real)
    tl.store(alive + row, goes_on, mask=real)
    tl.store(place, at + 1)


def note(
    tokens: Tensor, log_probs: Tensor, eos: Tensor, last: Tensor, left: Tensor, alive: Tensor, out: Tensor,
    place: Tensor,
) -> None:  # fmt: skip
    """Tokens and log-probabilities (B,) of a step into slot `place` of out (ahead, 2, B), and who goes on."""
    n = len(tokens)
    # One warp: `place` is read by all before it is written.
    _note[(1,)](tokens, log_probs, eos, last, left, alive, out, place, n, BLOCK=triton.next_power_of_2(n), num_warps=1)
