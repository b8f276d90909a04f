"""Word dropout: while training, words of the input are hidden at random, so that no single one is relied on.

    p(step) = p * min(1, step / ramp)

Hidden words become `<unk>`, or `<eos>` where a tokenizer has none (Bowman et al. 2016, 3.1; Iyyer et al. 2015, 3.1 drop
them altogether). What is hidden is a pure function of (seed, sample, epoch), as everything about a batch is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from regard.data.batch import Batch
from regard.data.order import mixed

if TYPE_CHECKING:
    from regard.data.rows import Shuffled


@dataclass(frozen=True)
class WordDropout:
    """The batches of another sampler with words hidden.

    share  p, the part of the words that is hidden in the end.
    ramp   steps until it is.
    """

    sampler: Shuffled
    share: float
    ramp: int
    hidden: int
    seed: int

    def batch(self, step: int, batch_size: int) -> Batch:
        batch = self.sampler.batch(step, batch_size)
        share = self.share * min(1.0, step / self.ramp if self.ramp else 1.0)
        random = np.random.default_rng(mixed(self.seed, step, 7))
        chosen = torch.from_numpy(random.random(batch.tokens.shape[:2]) < share)
        tokens = batch.tokens.clone()
        if tokens.dim() == 2:
            tokens[chosen] = self.hidden
        else:  # words with their spelling: both are hidden
            tokens[chosen] = 0
            tokens[..., 0][chosen] = self.hidden
        # What a text begins with in a decoder is no word.
        if batch.source is not None:
            tokens[:, 0] = batch.tokens[:, 0]
        return replace(batch, tokens=tokens)
