"""Worked examples: every number of a mechanism, from what is given to the answer, for the examples of the lectures.

    from regard.explain.worked import example
    example("ab").show()

Only what an example gives (inputs, weights, counts) is written down; all that follows is calculated in float64 by the
mixers and layers that are trained elsewhere. An example is one file, named like it with `_` for `-`, whose `view()`
makes it; a file is read when its example is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from regard.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.explain.view import View

# In the order of the road from counting to state spaces.
EXAMPLES = {
    "chain-rule": "The probability of a sentence as a product, and bigrams counted, divided and smoothed.",
    "feed-forward": "A net of two layers with ReLU, and gradient descent on a parabola.",
    "rnn": "A vanilla RNN over three inputs; then bidirectional, stacked and residual.",
    "lstm": "The gates of an LSTM and of a GRU over three inputs, and an LSTM set by hand to count.",
    "ab": "Attention over A A B A: one query, q = [0, 10], an average beside it, self-attention.",
    "three-inputs": "Self-attention over three inputs: Q, K, V, scores, softmax and sums, scaled and unscaled.",
    "causal": "The loss of a language model, the triangular matrix of weights, three states in one product.",
    "positions": "Sinusoids, rotations (RoPE), linear biases (ALiBi) and learned rows.",
    "bahdanau": "Attention of a decoder over annotations: a small net as the score, and the dot product in its place.",
    "gnmt-scores": "How a beam ranks its texts: log p, length normalisation and coverage.",
    "sick": "A Backpack chooses the sense of 'sick' in 'that trick was sick', in five readings of alpha.",
    "ssm": "A state space model as recurrence, convolution, selective scan and matrix.",
    "training": "Label smoothing by both conventions, and the learning rate of the Transformer paper.",
}


def examples() -> dict[str, str]:
    """The names of all examples, and what each of them works out."""
    return dict(EXAMPLES)


def example(name: str) -> View:
    """The worked example of that name."""
    if name not in EXAMPLES:
        close = nearest(name, EXAMPLES)
        known = "" if close.startswith(";") else f" Known: {', '.join(sorted(EXAMPLES))}"
        raise UsageError(f"unknown example {name!r}{close}{known}")
    import torch

    module = importlib.import_module(f"regard.explain.worked.{name.replace('-', '_')}")
    # Mixers begin with random weights before those of the example are loaded: the caller's generator stays untouched.
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        return module.view()
