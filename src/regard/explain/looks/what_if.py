"""What if: tokens in another order, another token later on, a token left out.

shuffle   without positions and mask, outputs of shuffled tokens are the shuffled outputs
future    what comes later changes nothing before it, where a model is causal
drop      how much worse the answer is without each token
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.device import wide
from regard.core.tap import plain
from regard.errors import UsageError
from regard.explain.look import (
    Look,
    Options,
    by_token,
    numbers,
    place_of,
    position_control,
    register_look,
    seed_control,
    side_control,
    side_number,
)
from regard.explain.outcome import (
    Outcome,
    answers,
    columns_of,
    embedding_of,
    log_probs_at,
    number_of,
    others,
    outcome,
    passes,
    pieces,
    replaced,
    without,
    words_of,
)
from regard.explain.site import Site, sites
from regard.explain.view import Bars, Control, Listing, Note, Panel, View
from regard.tasks.reading import Capabilities, Reading, Side
from regard.terminal.label import label

# Outputs that lie so near are equal but for rounding.
NEAR = 1e-4
MOST = 64


def shuffle(reading: Reading, options: Options) -> View:
    """The tokens in another order: are the outputs the same ones in that order?"""
    number = side_number(reading, options.side, 0)
    side, words = reading.sides[number], words_of(reading.sides[number])
    if len(words) < 2:
        raise UsageError(f"the {side.name} has fewer than two tokens to shuffle: give a longer one")
    columns = columns_of(reading, number, range(len(side)))
    tokens = reading.inputs[number][0, columns]
    order = _order(tokens, words, options.seed)
    moved = reading.inputs[number].clone()
    moved[0, columns] = tokens[order]
    shuffled = reading.with_input(number, moved, tuple(side.labels[place] for place in order))
    before, after = _log_probs(reading.run()), _log_probs(shuffled.run())
    alike = number == len(reading.sides) - 1 and before.dim() == 3
    distance = (after - (before[:, order] if alike else before)).abs().amax(-1)[0]  # (T,), or one number
    panels = _order_panels(reading, shuffled, number, distance, alike)
    about = {"largest": float(distance.max()), "side": side.name, "seed": options.seed}
    controls = [*_side_controls(reading, side.name), seed_control(options.seed)]
    caveat = "One shuffle that changes nothing proves little; that no part of the model tells places apart proves it."
    return View(f"The {side.name} shuffled", panels, about, caveat, controls)


def _order_panels(reading: Reading, shuffled: Reading, number: int, distance: Tensor, alike: bool) -> list[Panel]:
    parts = _breaking(reading, number)
    panels: list[Panel] = [
        Note(
            title="The shuffled tokens",
            text=" ".join(token.strip() or label(token) for token in shuffled.sides[number].labels),
            key="shuffled",
        ),
        Note(title="Is order felt?", text=_order_told(float(distance.max()), alike), style="answer", key="told"),
        Listing(
            title="Parts that are not blind to order",
            columns=["part", "why"],
            rows=parts,
            note="" if parts else "There are none: positions are nowhere told, and every mixer treats them alike.",
            key="parts",
        ),
    ]
    if distance.dim():
        title, unit = "How far log p lies apart", "nats at most"
        panels.append(by_token(shuffled.main, distance.tolist(), title=title, unit=unit, key="differences"))
    return panels


def future(reading: Reading, options: Options) -> View:
    """Another token at a position, and which outputs that changes."""
    side, words = reading.main, words_of(reading.main)
    if len(words) < 2:
        raise UsageError(f"the {side.name} has fewer than two tokens: give a longer one")
    place = words[len(words) // 2] if options.position is None else place_of(side, options.position)
    number, tokens = len(reading.sides) - 1, reading.inputs[-1]
    changed = replaced(tokens, [place], others(tokens, [place], words, options.seed))
    before, after = _log_probs(reading.run()), _log_probs(reading.with_input(number, changed).run())
    distance = (after - before).abs().amax(-1)[0]
    largest = float(distance[:place].max()) if place else 0.0
    new = next(side.labels[one] for one in words if torch.equal(tokens[0, one], changed[0, place]))
    panels = [
        Note(text=_future_told(largest, place), title="Does it look ahead?", style="answer", key="told"),
        by_token(side, distance.tolist(), title="How far log p moves", unit="nats at most", key="differences"),
    ]
    at = numbers(side)[place]
    title = f"Another token at position {at}: {new!r} for {side.labels[place]!r}"
    about = {"largest": largest, "position": at, "seed": options.seed}
    caveat = "A change of 0 with one other token is what causality demands, not a proof of it; `regard check` tests it."
    return View(title, panels, about, caveat, [position_control(side, at), seed_control(options.seed)])


def drop(reading: Reading, options: Options) -> View:
    """Each token left out in turn, and the log-probability of the answer without it; of a long text parts of it."""
    number = side_number(reading, options.side, 0)
    side = reading.sides[number]
    found = outcome(reading, options.position)
    own = number == len(reading.sides) - 1 and found.place is not None
    places = _droppable(reading, number, found.place if own else None)
    if not places or len(side) < 2:
        raise UsageError(f"nothing of the {side.name} can be left out: choose a later position, or give a longer one")
    parts = pieces(places, passes(reading))
    change = _missed(reading, number, parts, found, own)
    shown = sorted(change.abs().argsort(descending=True, stable=True)[:MOST].tolist())
    position = number_of(reading, found.place)
    what = "token" if len(parts) == len(places) else "part"
    told = f"Log p of it is {found.log_prob:.4g} with all tokens. To the left: the {what} is missed."
    if len(shown) < len(parts):
        told += f" Shown are {len(shown)} of {len(parts)} {what}s, those that change it most."
    if what == "part":
        told += (
            f" A part has {len(parts[0])} tokens: to leave out each of {len(places)} would take this model too long."
        )
    bars = Bars(
        title=f"Change of log p of {found.told}, without each {what}",
        names=[_part_named(side, parts[row]) for row in shown],
        values=change[shown].tolist(),
        unit="nats",
        note=told,
        key="changes",
    )
    at = "" if position is None else f" at position {position}"
    about = {"side": side.name, "position": position}
    controls = _side_controls(reading, side.name)
    controls += [] if position is None else [position_control(reading.main, position)]
    caveat = f"A text without a {what} is another text: what follows moves nearer to what came before it."
    return View(f"The answer{at} without each {what} of the {side.name}", [bars], about, caveat, controls)


def _missed(reading: Reading, number: int, parts: list[list[int]], found: Outcome, own: bool) -> Tensor:
    """The change of log p of the answer without each of some parts of a side, all but the last of one size."""
    model: Any = plain(reading.model)

    def log_p(outputs: Tensor, places: list[list[int]]) -> Tensor:
        said = []
        for row, part in enumerate(places):
            place = found.place
            if own and place is not None:
                place -= sum(one <= place for one in part)
            one = outputs[row : row + 1]
            # Of vectors the head is asked for the one answer alone.
            one = one if reading.vectors is None or place is None else model.head(one[:, place])
            said.append(log_probs_at(one, place)[0, found.answer])
        return torch.stack(said)

    changes = []
    for group in ([part for part in parts if len(part) == size] for size in dict.fromkeys(map(len, parts))):
        rows = without(reading.inputs[number], [columns_of(reading, number, part) for part in group])
        keep = lambda outputs, part, group=group: log_p(outputs, group[part])  # noqa: E731
        changes.append(answers(reading, number, rows, keep, reading.vectors))
    return (torch.cat(changes) - found.log_prob).cpu().double()


def _part_named(side: Side, places: list[int]) -> str:
    """A token, or the first of a part with the positions of all."""
    if len(places) == 1:
        return side.labels[places[0]]
    first, last = (numbers(side)[place] for place in (places[0], places[-1]))
    return f"{label(side.labels[places[0]])} ({first} to {last})"


def _droppable(reading: Reading, number: int, place: int | None) -> list[int]:
    """Words of a side; of the answer's own text those that it may depend on, and never a word that is answered for."""
    words = words_of(reading.sides[number])
    if place is None:
        return words
    model: Any = plain(reading.model)
    if getattr(model, "causal", False) or len(reading.sides) == 2:
        return [word for word in words if 0 < word <= place]
    return [word for word in words if word != place]


def _order(tokens: Tensor, words: list[int], seed: int) -> list[int]:
    """A shuffle of tokens (T, ...) that changes something; what is no word stays where it is."""
    if (tokens[words] == tokens[words[0]]).all():
        raise UsageError("every token is the same, and no shuffle changes anything: give a text with different ones")
    generator = torch.Generator().manual_seed(seed)
    order = list(range(len(tokens)))
    while torch.equal(tokens[order], tokens):
        drawn = torch.randperm(len(words), generator=generator).tolist()
        for place, other in zip(words, drawn, strict=True):
            order[place] = words[other]
    return order


def _breaking(reading: Reading, number: int) -> list[list[str]]:
    """Parts over a side that can tell one order of its tokens from another, and why."""
    embedding: Any = embedding_of(reading, number)
    adds = getattr(embedding, "position", None) is not None
    rows = [["embedding", "adds positions to the vectors"]] if adds else []
    side = reading.sides[number].name
    for site in sites(reading):
        if site.rows.name == side:
            why = _why(site)
            if why:
                where = f"{site.kind} {site.layer}{', backward' if site.backward else ''}"
                rows.append([where, why])
    return rows


def _why(site: Site) -> str:
    """Why a part feels order: as its mechanism says, or as the part declares; empty where it does not."""
    known = site.mechanism
    if known is not None:
        return known.order(site.module) if known.order is not None else ""
    if site.module.permutes:
        return ""
    return "sees only what came before" if site.module.causal else "tells positions apart"


def _order_told(largest: float, alike: bool) -> str:
    if largest < NEAR:
        return f"No: the outputs {'are shuffled alike' if alike else 'stay the same'}, up to {largest:.2g}."
    same = "be shuffled alike" if alike else "stay the same"
    return f"Yes: the outputs would {same} if it were not, and lie up to {largest:.3g} apart."


def _future_told(largest: float, place: int) -> str:
    if place == 0:
        return "There is no output before the first position: change a later one."
    if largest == 0:
        return "No: no output before it changes, not by the last bit."
    if largest < NEAR:
        return f"No: outputs before it change by {largest:.2g} at most, which is rounding."
    return f"Yes: outputs before it change by up to {largest:.3g}."


def _side_controls(reading: Reading, side: str) -> list[Control]:
    return [side_control([one.name for one in reading.sides], side)] if len(reading.sides) > 1 else []


def _of_tokens(can: Capabilities) -> bool:
    return can.tokens and can.answers and not can.fitted


def _log_probs(outputs: Tensor) -> Tensor:
    return wide(outputs).log_softmax(-1)


register_look(
    Look(
        "drop",
        "how much worse the answer is without each token",
        drop,
        fits=_of_tokens,
    )
)
register_look(Look("shuffle", "whether order is felt, and which parts feel it", shuffle, fits=_of_tokens))
register_look(
    Look(
        "future",
        "whether a later token changes what was said before it",
        future,
        fits=lambda can: _of_tokens(can) and not can.whole,
    )
)
