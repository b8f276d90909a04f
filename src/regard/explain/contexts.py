"""Contexts: sentences that a model reads beside the text it is asked about, to find where else it does the same.

They are few, of everyday words and of no source but this file: who finds no neighbour here need not have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regard.core.context import Context
from regard.core.device import wide
from regard.core.tap import plain
from regard.data.ragged import Ragged, in_batches, ragged
from regard.explain.inputs import positions_of, read
from regard.explain.layers import reader_of, vectors_by_layer
from regard.explain.outcome import NO_WORDS
from regard.tasks.reading import Reading

KNOWN = 0.8  # of the tokens of a sentence, at least
SENTENCES = (
    "He put the money into his account at the bank.",
    "The bank lends to farmers who want to buy land.",
    "She works as a clerk in a bank in the city.",
    "We walked along the bank of the stream until it was dark.",
    "The boat lay on the muddy bank below the bridge.",
    "Grass and reeds grew on the river bank.",
    "The waves broke on the shore all night.",
    "They pulled the canoe up to the edge of the lake.",
    "The lender asked for a higher rate of interest.",
    "Her savings were lost when the firm failed.",
    "Anna said that she would come on Monday.",
    "Mary lost her keys, so she called her brother.",
    "Tom told his father that he was tired.",
    "The queen spoke, and she was heard by all.",
    "When Peter fell he hurt his knee.",
    "The children sang because they were happy.",
    "The ship lost her sails and she sank.",
    "A spring in the old clock was broken.",
    "The flowers come out in spring.",
    "Clear water came from a spring in the rock.",
    "She lit the fire with a match.",
    "Our team won the match by two goals.",
    "The bat flew out of the cave at dusk.",
    "He hit the ball with his bat.",
    "The judge read the sentence to the court.",
    "Write one sentence about your summer.",
    "The plant needs light and water.",
    "The plant makes steel and employs a thousand men.",
    "This box is light enough to carry.",
    "Turn off the light before you sleep.",
    "The capital of France is Paris.",
    "Berlin is the capital of Germany.",
    "Rome and Madrid are old cities in the south.",
    "The firm raised new capital from its owners.",
    "Two and three make five.",
    "It cost ten dollars and fifty cents.",
    "In 1914 the war began, and it ended in 1918.",
    "On Tuesday it rained, on Wednesday the sun came out.",
    "My favourite colours are red, green and blue.",
    "A dog chased the cat across the garden.",
    "Horses, cows and sheep stood in the field.",
    "The doctor gave the sick child some medicine.",
    "That trick was sick, said the boy with the board.",
    "She plays the piano and the violin.",
    "The play was written by a young author.",
    "He drank a cup of hot tea with milk.",
    "Bread, cheese and apples were on the table.",
    "The train leaves the station at noon.",
    "They drove the car through the long tunnel.",
    "The teacher explained the rule to the class.",
    "I have never seen such a beautiful morning.",
    "This film was dull, and the end was worse.",
    "What a wonderful story, we loved every page!",
    "If it is cold tomorrow, then we shall stay at home.",
    "He could not open the door because it was locked.",
    "The king gave the land to his eldest son.",
    "Scientists measured the speed of light with great care.",
    "The program reads a file and prints every line.",
    "Snow covered the roofs of the small town.",
    "The market opened higher and then prices fell.",
)


@dataclass(frozen=True, eq=False)
class Contexts:
    """Readings of sentences, one each, that can be read side by side."""

    readings: list[Reading]

    @cached_property
    def ids(self) -> Ragged:
        return ragged([one.inputs[0][0].cpu().numpy() for one in self.readings])

    def batches(self) -> Iterator[tuple[list[int], Tensor, Context]]:
        """The numbers of some readings, their tokens (B, T), and how long each is."""
        for rows in in_batches(self.ids.sizes.tolist()):
            tokens, lengths = self.ids.padded(rows, 0)
            device = self.readings[0].inputs[0].device
            yield rows.tolist(), tokens.to(device), Context(lengths=lengths.to(device))


def contexts(run: Any) -> Contexts:
    """The sentences that a run has tokens for; there may be none."""
    found, room = [], positions_of(run)
    unknown = getattr(run.processor.tokenizer, "unknown_id", None)
    for sentence in SENTENCES:
        ids = run.task.ids(run.processor, sentence)
        known = 1 - float((ids == unknown).mean()) if unknown is not None else 1.0
        if known >= KNOWN and (room is None or len(ids) <= room):
            found.append(replace(read(run, sentence), given=sentence))
    return Contexts(found)


def snippet(reading: Reading, group: int, reach: int = 4) -> str:
    """A word of a text with some before and after it, itself in brackets."""
    labels = reading.sides[0].groups.labels
    near = [place for place in range(group - reach, group + reach + 1) if 0 <= place < len(labels)]
    words = [
        f"[{labels[place]}]" if place == group else labels[place] for place in near if labels[place] not in NO_WORDS
    ]
    return " ".join(words)


@torch.no_grad()
def group_means(vectors: Tensor, reading: Reading) -> Tensor:
    """The mean of the vectors (T, D) of each word of a text, (G, D)."""
    members = reading.sides[0].groups.members
    return torch.stack([vectors[torch.tensor(one, device=vectors.device)].mean(0) for one in members])


def words_in(known: Contexts, layer: str) -> tuple[list[tuple[int, int]], Tensor]:
    """Every word of the sentences, as the number of its sentence and of its group, and their vectors (n, D)."""
    places: list[tuple[int, int]] = []
    found: list[Tensor] = []
    model, part = plain(known.readings[0].model), reader_of(known.readings[0])
    for rows, tokens, context in known.batches():
        seen = vectors_by_layer(part, lambda tokens=tokens, context=context: model(tokens, None, context))[layer]
        for row, number in enumerate(rows):
            one = known.readings[number]
            vectors = wide(group_means(seen[row], one))
            kept = [group for group, word in enumerate(one.sides[0].groups.labels) if word not in NO_WORDS]
            places += [(number, group) for group in kept]
            found.append(vectors[kept])
    return places, torch.cat(found)
