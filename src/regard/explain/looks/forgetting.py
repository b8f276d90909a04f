"""Forgetting: how far back a model still feels a token.

    gradient    |d log p(answer at t) / d x_j|       x_j the vector of token j
    occlusion   KL(p_t || p_t with token j replaced by another token of the text)

The first is what a small change of a token would do, the second what another token does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.errors import UsageError
from regard.explain.look import (
    MANY_PASSES,
    Look,
    Options,
    position_control,
    register_look,
    seed_control,
    side_control,
    side_number,
    spread,
)
from regard.explain.outcome import (
    Outcome,
    answers,
    columns_of,
    gradients,
    log_probs_at,
    number_of,
    others,
    outcome,
    passes,
    replaced,
    words_of,
)
from regard.explain.view import Bars, Control, Curves, Panel, View
from regard.tasks.reading import Reading

# Tokens that are changed, answers that are watched, and tokens that are shown by name.
MOST, ASKED, NAMED = 64, 16, 40
DRAWS = 2
# The same of a model so large that the text can be read a few times only.
FEWEST_CHANGED, FEWEST_ASKED = 12, 3
# A change below so many times the precision of its numbers is rounding.
ROUNDING = 10
CAVEAT = (
    "A gradient of 0 means that a small change does nothing, not that the token is unused; a replaced token makes a "
    "text that the model may never have seen the like of."
)


@dataclass(frozen=True)
class Felt:
    """places   of the tokens that were changed, by their indices.
    asked    places whose answers were watched; None where one answer stands for the whole.
    gradient, occlusion   (places, asked).
    """

    places: list[int]
    asked: list[int | None]
    gradient: np.ndarray
    occlusion: np.ndarray


def forgetting(reading: Reading, options: Options) -> View:
    """Gradient and occlusion by token for one answer, and by distance for many."""
    number = side_number(reading, options.side)
    side = reading.sides[number]
    if side.name == "picture" or len(words_of(side)) < 2:
        raise UsageError(f"the {side.name} has fewer than two tokens of text: give a longer one")
    found = outcome(reading, options.position)
    felt = feel(reading, number, found, options.seed)
    own = number == len(reading.sides) - 1 and found.place is not None
    panels = [*(_by_distance(felt) if own else []), *_by_token(reading, number, felt, found)]
    names = [one.name for one in reading.sides if one.name != "picture"]
    controls: list[Control] = [side_control(names, side.name)] if len(names) > 1 else []
    position = number_of(reading, found.place)
    if position is not None:
        controls.append(position_control(reading.main, position))
    at = "" if position is None else f" at position {position}"
    title = f"How far the answer{at} still feels each token of the {side.name}"
    about = {"position": position, "side": side.name}
    return View(title, panels, about, CAVEAT, [*controls, seed_control(options.seed)])


def feel(reading: Reading, number: int, found: Outcome, seed: int) -> Felt:
    """How much every token counts for every answer, or for a choice of them where the text is long."""
    words = words_of(reading.sides[number])
    if found.place is None:
        asked: list[int | None] = [None]
    else:
        own = number == len(reading.sides) - 1
        # A gradient costs three passes for each answer.
        count = min(ASKED, max(FEWEST_ASKED, passes(reading) // 3))
        asked = [*sorted({*(spread(len(reading.main), count) if own else ()), found.place})]
    most = min(MOST, max(FEWEST_CHANGED, passes(reading) // DRAWS))
    nearest = words if len(words) <= most else words[-most // 2 :]
    places = sorted({*nearest, *(words[place] for place in spread(len(words), most // 2))})
    return Felt(
        places,
        asked,
        _gradient(reading, number, asked)[places],
        _occlusion(reading, number, places, asked, seed),
    )


def _gradient(reading: Reading, number: int, asked: list[int | None]) -> np.ndarray:
    """|d log p / d x_j| (T, asked), each answer that counts at its place."""
    chosen = _log_probs(reading.run(), asked)[0].argmax(-1)
    for row, place in enumerate(asked):
        target = reading.targets[place] if reading.targets and place is not None else None
        chosen[row] = chosen[row] if target is None else target

    def score(outputs: Tensor) -> Tensor:
        rows = torch.arange(len(asked), device=outputs.device)
        at = outputs if outputs.dim() == 2 else outputs[rows, torch.tensor(asked, device=outputs.device)]
        return at.log_softmax(-1)[rows, chosen]

    norms = gradients(reading, number, score, len(asked)).norm(dim=-1).T
    return _rounded(norms, float(norms.max()))


def _occlusion(reading: Reading, number: int, places: list[int], asked: list[int | None], seed: int) -> np.ndarray:
    """KL (places, asked), the mean over a few replacements."""
    tokens = reading.inputs[number]
    columns = columns_of(reading, number, places)
    source = columns_of(reading, number, words_of(reading.sides[number]))
    before = _log_probs(reading.run(), asked)[0]

    def distance(outputs: Tensor, _part: slice) -> Tensor:
        after = _log_probs(outputs, asked)
        return (before.exp() * (before - after)).sum(-1).clamp(min=0)

    draws = [
        answers(reading, number, replaced(tokens, columns, others(tokens, columns, source, seed + draw)), distance)
        for draw in range(DRAWS)
    ]
    return _rounded(torch.stack(draws).mean(0), 1.0)


def _log_probs(outputs: Tensor, asked: list[int | None]) -> Tensor:
    """log p (n, asked, V) at the places that are watched."""
    return torch.stack([log_probs_at(outputs, place) for place in asked], 1)


def _rounded(values: Tensor, size: float) -> np.ndarray:
    """Values, and 0 for what is rounding beside numbers of that size."""
    least = ROUNDING * torch.finfo(values.dtype).eps * size
    return values.where(values > least, 0).cpu().double().numpy()


def _by_token(reading: Reading, number: int, felt: Felt, found: Outcome) -> list[Panel]:
    side = reading.sides[number]
    column = felt.asked.index(found.place)
    shown = range(len(felt.places))[-NAMED:]
    names = [side.labels[felt.places[row]] for row in shown]
    kinds = {
        "occlusion": (
            f"What replacing each token does to the answer, {DRAWS} replacements each",
            felt.occlusion,
            "nats",
        ),
        "gradient": (f"Gradient of log p of {found.told}", felt.gradient, "per unit of a token's vector"),
    }
    note = "" if len(shown) == len(side.labels) else f"{len(shown)} of the {len(side.labels)} positions."
    return [
        Bars(title=title, names=names, values=values[list(shown), column].tolist(), unit=unit, note=note, key=key)
        for key, (title, values, unit) in kinds.items()
    ]


def _by_distance(felt: Felt) -> list[Panel]:
    """Means over all pairs of tokens that lie so far apart."""
    distance = np.array([[asked - place for asked in felt.asked if asked is not None] for place in felt.places])
    panels: list[Panel] = []
    for key, values, y in (("occlusion", felt.occlusion, "KL, nats"), ("gradient", felt.gradient, "gradient")):
        lines = {}
        for name, sign in (("tokens before", 1), ("tokens after", -1)):
            far = sorted({int(abs(d)) for d in distance[distance * sign >= (sign < 0)].ravel()})
            means = [(float(d), float(values[distance == sign * d].mean())) for d in far]
            # A logarithm has no place for 0: what is not felt at all is no point of the line.
            points = [point for point in means if point[1] > 0]
            lines |= {name: points} if len(points) > 1 else {}
        if lines:
            title = f"{key.capitalize()} by distance, mean over the answers at all positions"
            panels.append(
                Curves(title=title, lines=lines, x="distance in tokens", y=y, y_log=True, key=f"{key}_by_distance")
            )
    return panels


register_look(
    Look(
        "forgetting",
        "how far back a model still feels a token, by gradient and by occlusion",
        forgetting,
        fits=lambda can: can.tokens and can.answers and not can.fitted,
        max_tokens=MANY_PASSES,
    )
)
