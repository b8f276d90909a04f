"""Drawing on a CPU by compiled C (draw.c): one pass for the likeliest token, one for what all weigh, one to draw.

    log p_v = l_v - max l - log sum_w e^(l_w - max l)

torch's passes over 16 rows of 47,609 logits took 3.6 ms of a step of 25 (two free cores). A token is drawn as
`drawn_from` (decoding/drawing.py) says, up to the rounding of the sums.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.kernels.compiled import library
from regard.kernels.compiled_call import are_read, is_made_for_others, loaded

# From so many logits on a row is drawn here, whatever is drawn beside it: otherwise its neighbours would have a say in
# how its sums round.
WIDE = 1 << 15


def takes(logits: Tensor) -> bool:
    """Whether logits (B, V) are many, and plain numbers of float32 on a CPU."""
    if is_made_for_others():
        return False  # before sizes are looked at: what is made would be so for these alone
    if logits.shape[-1] < WIDE or torch.is_grad_enabled() or not are_read(logits):
        return False
    return logits.is_contiguous() and library() is not None


def draw(logits: Tensor, temperature: Tensor, greedy: Tensor, uniform: Tensor | None) -> tuple[Tensor, Tensor]:
    """A token for each row (B,) and its log-probability (B,), of temperature (B, 1) and greedy (B, 1).

    uniform  (B,) in [0, 1), None where all are greedy.
    """
    found, (rows, width) = loaded(), logits.shape
    tokens, log_probs = logits.new_empty(rows, dtype=torch.long), logits.new_empty(rows)
    # Of each row, or one for all.
    temperature, greedy = (part.expand(rows, 1).contiguous() for part in (temperature.double(), greedy))
    uniform = None if uniform is None else uniform.double().expand(rows).contiguous()
    sums = logits.new_empty(rows, found.draw_pieces(width), dtype=torch.float64)
    places = [part.data_ptr() for part in (tokens, log_probs, logits, temperature, greedy)]
    found.draw(*places, None if uniform is None else uniform.data_ptr(), sums.data_ptr(), rows, width)
    return tokens, log_probs
