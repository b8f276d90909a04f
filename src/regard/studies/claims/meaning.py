"""A word's vector moves with its context: bank by the river or in the street, and who "she" is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.charts.chart import bar_chart
from regard.core.registry import build
from regard.core.tap import record
from regard.data.batch import NOT_COUNTED
from regard.studies.claims.fitting import LinearProbe, accuracy, fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

FILLERS = ("then", "we", "saw", "a", "tree", "and", "some", "birds", "near", "old", "houses", "in", "warm", "light")
# What follows "bank" when the cue before it was the first, and the second word.
SENSES = {"river": ("fish", "mud", "reeds"), "street": ("money", "clerk", "vault")}
# What each of them likes, which is what follows "she".
LIKES = {"Fatima": "chess", "Rashonda": "tea", "Anna": "opera", "Mei": "skiing"}
BOYS = ("Tom", "Omar")
END = "."
VOCABULARY = [END, *FILLERS, "bank", *SENSES, *sum(SENSES.values(), ()), "she", *LIKES, *LIKES.values(), *BOYS]
INDEX = {word: i for i, word in enumerate(VOCABULARY)}
LENGTH, ROWS = 14, 32
Sentence = tuple[list[str], int, int, int]


@register_study
class Meaning(Study):
    id: ClassVar[str] = "meaning"
    claim: ClassVar[str] = (
        "River or street decides what bank means, and a name who she is: after attention the vector of the word holds "
        "it, before it does not."
    )
    source: ClassVar[str] = (
        "lecture on self-attention, its examples bank and she; on a generated text of two senses and four names"
    )
    rule: ClassVar[str] = (
        "a linear probe of the word's vector is right within 5 points of chance before the attention layer and at "
        "least 95 per cent of the time after it, for both words; and bank looks at its cue more than at any other word "
        "before"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, make, classes in (("bank", bank_sentence, 2), ("she", she_sentence, 4)):
            torch.manual_seed(lab.seed)
            # One layer of attention, whose output at the word can only tell what attention has brought to it.
            sizes = {"d_model": 32, "n_layers": 1, "n_heads": 2, "max_length": LENGTH, "position": "alibi"}
            model = build("gpt", vocab_size=len(VOCABULARY), size="tiny", **sizes).to(lab.device)

            def batch(step: int, make: Callable[[Random], Sentence] = make) -> tuple[Tensor, Tensor]:
                tokens, _, _, _ = _batch(make, lab.seed * 1_000_000 + step, ROWS, lab.device)
                following = tokens.roll(-1, 1)
                following[:, -1] = NOT_COUNTED
                return tokens, following

            fit(model, batch, lab.pick(800, 1000, 2000), 5e-3)
            train = _batch(make, 8_000_000_000 + lab.seed, 512, lab.device)
            test = _batch(make, 9_000_000_000 + lab.seed, 4096, lab.device)
            before, after = (
                _probe([_vectors(model, part, layer) for part in (train, test)], classes, lab) for layer in (0, 1)
            )
            found[name] = {"chance": 1 / classes, "before": before, "after": after, "looks": _looks(model, test)}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = "; ".join(
            f"{name}: {mean(found, name, 'before'):.2f} before and {mean(found, name, 'after'):.2f} after attention, "
            f"{mean(found, name, 'looks', 'cue'):.2f} of its weight on the cue and at most "
            f"{mean(found, name, 'looks', 'other'):.2f} on another word"
            for name in ("bank", "she")
        )
        return judged(
            found,
            lambda one: (
                all(abs(one[name]["before"] - one[name]["chance"]) <= 0.05 for name in ("bank", "she"))
                and all(one[name]["after"] >= 0.95 for name in ("bank", "she"))
                and one["bank"]["looks"]["cue"] > one["bank"]["looks"]["other"]
            ),
            f"probes that are right: {told}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        rows = [
            (f"{name}, {when}", mean(found, name, when)) for name in ("bank", "she") for when in ("before", "after")
        ]
        return bar_chart("What the vector of a word tells of its context", rows, "share of probes that are right")


def bank_sentence(random: Random) -> Sentence:
    """Words, the place of bank, the place of its cue, and which of the cues it is."""
    sense = random.randrange(2)
    cue = list(SENSES)[sense]
    last = random.choice(SENSES[cue])
    return (*_placed(random, cue, "bank", last), sense)


def she_sentence(random: Random) -> Sentence:
    """Words, the place of she, the place of the name, and which name it is. A boy is named too."""
    number = random.randrange(len(LIKES))
    name, liked = list(LIKES.items())[number]
    return (*_placed(random, name, "she", liked, random.choice(BOYS)), number)


def _placed(random: Random, cue: str, word: str, last: str, *others: str) -> tuple[list[str], int, int]:
    """Fillers with the cue, the others and then the word among them, what follows the word, and ends up to LENGTH."""
    before = [random.choice(FILLERS) for _ in range(random.randint(6, LENGTH - 4))]
    places = random.sample(range(len(before)), 1 + len(others))
    for place, one in zip(places, (cue, *others), strict=True):
        before[place] = one
    words = [*before, word, last]
    return [*words, *[END] * (LENGTH - len(words))], len(before), places[0]


def _batch(
    make: Callable[[Random], Sentence], seed: int, rows: int, device: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens (B, T), and for each row the places of word and cue and the class."""
    random = Random(seed)
    words, places, cues, classes = zip(*(make(random) for _ in range(rows)), strict=True)
    tokens = torch.tensor([[INDEX[word] for word in row] for row in words])
    place, cue, kind = (torch.tensor(part).to(device) for part in (places, cues, classes))
    return tokens.to(device), place, cue, kind


@torch.no_grad()
def _vectors(model: Any, part: tuple[Tensor, ...], layer: int) -> tuple[Tensor, Tensor]:
    """The word's vector in each row before (0) or after (1) the layer, and the classes."""
    tokens, places, _, classes = part
    start = torch.zeros(len(tokens), dtype=torch.long, device=tokens.device)
    vectors = model.embedding(tokens, start) if layer == 0 else model.encode(tokens)
    return vectors[torch.arange(len(tokens), device=tokens.device), places], classes


def _probe(parts: list[tuple[Tensor, Tensor]], classes: int, lab: Lab) -> float:
    """How often a linear map trained on the first part tells the class in the second."""
    train, test = parts
    torch.manual_seed(lab.seed)
    probe = LinearProbe(train[0].shape[1], classes).to(lab.device)
    fit(probe, lambda _: train, 200, 0.05)
    return accuracy(probe, *test)


@torch.no_grad()
def _looks(model: nn.Module, part: tuple[Tensor, ...]) -> dict[str, float]:
    """The mean weight from the word to its cue, and to that one of the other words before it that gets most."""
    tokens, places, cues, _ = part
    with record(model, "*.weights") as seen:
        model(tokens)
    (weights,) = next(iter(seen.values()))
    rows = torch.arange(len(tokens), device=tokens.device)
    looks = weights.mean(1)[rows, places]  # (B, S)
    cue = looks[rows, cues]
    looks[rows, cues] = 0
    looks[rows, places] = 0
    return {"cue": float(cue.mean()), "other": float(looks.amax(1).mean())}
