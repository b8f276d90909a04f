"""Contributions: what each word adds to an answer, exactly, by leaving it out.

    DAN   p(answer | mean of the words) - p(answer | mean of the others)
    FNN   p(answer | window) - p(answer | window with one slot empty), and how large the weights of each slot are

For both there is a text without the word that differs in nothing else: a mean has no order, and places before the
beginning of a window are zeros.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from regard.decoding.logits_processing import largest
from regard.errors import UsageError
from regard.explain.look import MANY_PASSES, MOST_BARS, Look, Options, position_control, register_look
from regard.explain.outcome import Outcome, answers, columns_of, embedding_of, log_probs_at, number_of, outcome, without
from regard.explain.site import sites
from regard.explain.view import Bars, Heat, Panel, View
from regard.mixers.window import Window
from regard.tasks.reading import Reading

CANDIDATES = 8
CAVEAT = (
    "What one word adds depends on the words beside it: two that say the same may each seem to add nothing, and the "
    "parts need not sum to the whole."
)


def contributions(reading: Reading, options: Options) -> View:
    """What each word of a mean, or each slot of a window, adds to the answer."""
    found = outcome(reading, options.position)
    number = number_of(reading, found.place)
    window = _window(reading)
    if window is None:
        places, left = without_words(reading, found)
        panels = _panels(reading, found, places, left)
        title = "What each word adds to the answer"
    else:
        places, left = without_slots(reading, found, window.window)
        panels = [*_panels(reading, found, places, left), _slots(window)]
        title = f"What each of the {window.window} slots of the window adds to the answer"
    if number is None:
        return View(title, panels, {}, CAVEAT)
    controls = [position_control(reading.main, number)]
    return View(f"{title} at position {number}", panels, {"position": number}, CAVEAT, controls)


def without_words(reading: Reading, found: Outcome) -> tuple[list[int], Tensor]:
    """Places up to that of the answer, and log p (places, V) without each of them."""
    last = len(reading.main) - 1 if found.place is None else found.place
    places = list(range(last + 1))
    if len(places) < 2:
        raise UsageError("a mean of one word has nothing left without it: give a longer text or a later position")
    tokens = reading.inputs[0][:, : last + 1]
    rows = without(tokens, [[column] for column in columns_of(reading, 0, places)])
    return places, answers(reading, 0, rows, lambda outputs, _: log_probs_at(outputs, last - 1))


def without_slots(reading: Reading, found: Outcome, size: int) -> tuple[list[int], Tensor]:
    """Places in the window of the answer, and log p (places, V) with the slot of each empty."""
    last = len(reading.main) - 1 if found.place is None else found.place
    first = 0 if found.place is None else max(0, last - size + 1)
    places = list(range(first, last + 1))

    def emptied(_module: nn.Module, _inputs: object, vectors: Tensor) -> Tensor:
        vectors = vectors.clone()
        vectors[torch.arange(len(vectors)), torch.tensor(places)] = 0
        return vectors

    handle = embedding_of(reading, 0).register_forward_hook(emptied)
    try:
        rows = reading.inputs[0].expand(len(places), *reading.inputs[0].shape[1:])
        with torch.no_grad():
            left = log_probs_at(reading.forward(rows), found.place)
    finally:
        handle.remove()
    return places, left


def _panels(reading: Reading, found: Outcome, places: list[int], left: Tensor) -> list[Panel]:
    """What each adds to the probability of the answer, and to the log-probabilities of the likeliest ones."""
    gained = found.log_probs.exp()[found.answer] - left[:, found.answer].exp()
    shown = _shown(gained)
    labels = [reading.main.labels[places[row]] for row in shown]
    candidates = largest(found.log_probs, min(CANDIDATES, len(found.log_probs))).tolist()
    changes = (found.log_probs[candidates] - left[:, candidates])[shown].cpu().double().numpy()
    high = float(np.abs(changes).max()) or 1.0
    p = float(found.log_probs[found.answer].exp())
    note = "" if len(shown) == len(places) else f"The {len(shown)} of {len(places)} that add or take most."
    return [
        Bars(
            title=f"What each adds to the probability {p:.3g} of {found.told}",
            names=labels,
            values=gained[shown].tolist(),
            unit="probability",
            note=note,
            key="added",
        ),
        Heat(
            title="What each adds to the likeliest answers",
            weights=changes,
            rows=labels,
            columns=[reading.named(token) for token in candidates],
            row_name="left out",
            column_name="answer",
            low=-high,
            high=high,
            scale="log p with it less log p without",
            key="candidates",
        ),
    ]


def _shown(gained: Tensor) -> list[int]:
    """The rows that matter most, in the order of the text."""
    return sorted(largest(gained.abs(), min(MOST_BARS, len(gained))).tolist())


def _slots(window: Window) -> Bars:
    """Norms of the weights that each slot of the window meets, the newest first."""
    weight = window.window_to_hidden.weight.detach().unflatten(1, (window.window, window.d_model))  # (F, W, D)
    norms = weight.norm(dim=(0, 2)).flip(0).tolist()
    names = ["the token itself", *(f"{back} before" for back in range(1, window.window))]
    return Bars(title="How large the weights of each slot are", names=names, values=norms, unit="norm", key="slots")


def _window(reading: Reading) -> Window | None:
    """The window over the tokens themselves; none where they are averaged."""
    if sites(reading, "mean"):
        return None
    found = [site.module for site in sites(reading, "window")]
    wide = [module for module in found if isinstance(module, Window) and module.window > 1]
    if not wide:
        raise UsageError("every window of the model is one token wide: there is nothing to leave out")
    return wide[0]


register_look(
    Look(
        "contributions",
        "what each word adds to the answer of a mean or of a window",
        contributions,
        fits=lambda can: bool(can.shows & {"mean", "window"}) and can.tokens and not can.source,
        max_tokens=MANY_PASSES,
    )
)
