"""The probability of a target given its source, token by token, its end among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from regard.core.device import device_of
from regard.decoding.score import TextSize, score
from regard.decoding.scored_text import ScoredText
from regard.errors import UsageError
from regard.tasks.reading import fitted, token_label

if TYPE_CHECKING:
    from regard.tasks.pairs import PairProcessor

BETWEEN = "\t"


def scored_pair(model: Any, processor: PairProcessor, pair: str) -> ScoredText:
    """log p of each token of the target, of a pair typed as SOURCE, a TAB and TARGET."""
    from regard.data.ragged import ragged

    source, between, target = pair.partition(BETWEEN)
    if not between or BETWEEN in target:
        raise UsageError("a pair is scored: give SOURCE and TARGET with a TAB between them, and no other TAB")
    read = fitted(ragged([processor.read(source)]), model.max_source_length, processor.truncate)
    tokens, lengths = read.padded(torch.zeros(1, dtype=torch.long).numpy(), 0)
    device, tokenizer = device_of(model), processor.target
    written = torch.tensor([*processor.write(target).tolist(), tokenizer.eos_id])
    given = model.given(tokens.to(device), lengths.to(device))
    (found,) = score(given, [written], start_id=tokenizer.start_id, sizes=[TextSize.of(target)])
    return ScoredText(target, found, tuple(token_label(tokenizer, token) for token in found.tokens))
