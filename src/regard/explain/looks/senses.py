"""Senses of a Backpack: what each sense of a word stands for, how the context weighs them, and what one of them does.

    o_i = sum_l sum_j alpha_lij C(x_j)_l          logits_i = E o_i

The logits are linear in the senses, so that sense k of word w times s changes them by a number known before:

    sum over the places j of w of alpha_kij (s - 1) E C(w)_k
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.device import wide
from regard.core.tap import Trace, plain
from regard.decoding.logits_processing import largest
from regard.errors import UsageError
from regard.explain.look import Look, Options, numbers, place_of, position_control, register_look
from regard.explain.outcome import Outcome, outcome
from regard.explain.site import Site, sites
from regard.explain.view import Control, Heat, Listing, Note, Panel, View
from regard.tasks.reading import Reading

TOP, CHANGED = 6, 8
SCALE = re.compile(r"(?P<word>.+):(?P<sense>\d{1,9})=(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)", re.IGNORECASE)
CAVEAT = (
    "A sense is what training made of it: its top words are a reading of it, and the same sense need not mean the same "
    "thing in two words. What is linear is the logits, not the probabilities."
)


@dataclass(frozen=True)
class Scaled:
    """What scaling one sense does to the logits at a place: said before, measured, and the logits before and after."""

    predicted: Tensor
    before: Tensor
    after: Tensor

    @property
    def difference(self) -> float:
        """The largest between what was said before and what was measured."""
        return float((self.after - self.before - self.predicted).abs().max())


def senses(reading: Reading, options: Options) -> View:
    """Senses of a word, their weights at a position, and what each brings to the answer there."""
    site = sites(reading, "senses")[-1]
    place = place_of(reading.main, options.position)
    found = outcome(reading, options.position)
    token = _token(reading, options.word, place)
    seen = reading.trace(f"{site.name}.sense_*")
    word = reading.named(token)
    panels: list[Panel] = [
        _top_words(reading, site, token),
        _weights(reading, site, seen, place),
        _contributions(reading, site, seen, found),
    ]
    if options.scale:
        panels += _scaled(reading, site, seen, place, options.scale)
    title = f"The senses of {word!r}, and what the senses of all words bring to position {numbers(reading.main)[place]}"
    controls = [
        position_control(reading.main, numbers(reading.main)[place]),
        Control(name="word", label="word", kind="text", value=options.word or word),
        Control(name="scale", label="scale a sense, word:sense=factor", kind="text", value=options.scale),
    ]
    about = {"position": numbers(reading.main)[place], "word": word}
    return View(title, panels, about, CAVEAT, controls)


def scaled(reading: Reading, site: Site, place: int, places: list[int], sense: int, factor: float) -> Scaled:
    """Sense number `sense`, from 0 on, of the tokens at `places` times `factor`, at the logits of `place`."""
    seen = reading.trace(f"{site.name}.sense_*")
    alpha = _alpha(site, seen)[sense, place, places]  # (places,)
    vectors = _vectors(site, seen)[places, sense]  # (places, D)
    predicted = _head(reading) @ ((factor - 1) * alpha[:, None] * vectors).sum(0)
    before = reading.run()[0, place]

    def scale(_tap: nn.Module, _inputs: object, value: Tensor) -> Tensor:
        value = value.clone()
        value[:, places, sense] *= factor
        return value

    module: Any = site.module
    handle = module.sense_vectors.register_forward_hook(scale)
    try:
        after = reading.run()[0, place]
    finally:
        handle.remove()
    return Scaled(predicted, before, after)


def parsed(text: str, reading: Reading, n_senses: int) -> tuple[list[int], int, float]:
    """The places of the word, the number of the sense from 0 on, and the factor that `text` asks for."""
    found = SCALE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"scale {text!r}: write word:sense=factor, such as sick:2=0.0")
    word, sense = found["word"], int(found["sense"])
    if not 1 <= sense <= n_senses:
        raise UsageError(f"scale {text!r}: a word has senses 1 to {n_senses}")
    places = [place for place, label in enumerate(reading.main.labels) if label.strip() == word]
    if not places:
        raise UsageError(f"scale {text!r}: there is no token {word!r} in the text")
    return places, sense - 1, float(found["value"])


def _top_words(reading: Reading, site: Site, token: int) -> Listing:
    """The words whose logits each sense raises most."""
    model: Any = plain(reading.model)
    module: Any = site.module
    with torch.no_grad():
        one = torch.tensor([[token]], device=reading.inputs[0].device)
        vector = model.embedding(one, torch.zeros(1, dtype=torch.long, device=one.device))
        logits = module.senses(vector)[0, 0] @ _head(reading).T  # (C, V)
    rows = []
    for sense, row in enumerate(logits):
        best = largest(row, min(TOP, len(row))).tolist()
        rows.append([sense + 1, ", ".join(reading.named(one) for one in best), float(row.max() - row.mean())])
    return Listing(
        title=f"What the senses of {reading.named(token)!r} stand for",
        columns=["sense#", "words that it brings most", "how much more than the mean#"],
        rows=rows,
        note="Each sense through the head of the model: the words whose logits it raises most, in any context.",
        key="words",
    )


def _weights(reading: Reading, site: Site, seen: Trace, place: int) -> Heat:
    weights = _alpha(site, seen)[:, place, : place + 1].cpu().double().numpy()
    return Heat(
        title=f"How {reading.main.labels[place]!r} weighs the senses of each token",
        weights=weights,
        rows=_names(weights.shape[0]),
        columns=reading.main.labels[: place + 1],
        row_name="sense",
        column_name="token",
        high=float(weights.max()),
        scale="weight; each sense sums to 1",
        key="weights",
    )


def _contributions(reading: Reading, site: Site, seen: Trace, found: Outcome) -> Heat:
    """alpha_lij E_answer . C(x_j)_l, whose sum is the logit of the answer."""
    place = found.place or 0
    head = _head(reading)[found.answer]
    parts = _alpha(site, seen)[:, place, : place + 1] * (_vectors(site, seen)[: place + 1] @ head).T  # (C, T)
    high = float(parts.abs().max()) or 1.0
    return Heat(
        title=f"What each sense of each token brings to the logit of {found.told}",
        weights=parts.cpu().double().numpy(),
        rows=_names(len(parts)),
        columns=reading.main.labels[: place + 1],
        row_name="sense",
        column_name="token",
        low=-high,
        high=high,
        scale="part of the logit",
        note=f"They sum to the logit itself, {float(parts.sum()):.4g}.",
        key="contributions",
    )


def _scaled(reading: Reading, site: Site, seen: Trace, place: int, asked: str) -> list[Panel]:
    places, sense, factor = parsed(asked, reading, _alpha(site, seen).shape[0])
    found = scaled(reading, site, place, places, sense, factor)
    if not found.after.isfinite().all():
        raise UsageError(f"scale {asked!r}: the factor is too large, and the logits are no numbers any more")
    before, after = wide(found.before).softmax(-1), wide(found.after).softmax(-1)
    moved = (found.after - found.before).abs()
    shown = dict.fromkeys([*largest(before, CHANGED).tolist(), *largest(moved, CHANGED).tolist()])
    change = found.after - found.before
    rows = [
        [reading.named(one), *(float(part[one]) for part in (before, after, found.predicted, change))]
        for one in sorted(shown, key=lambda one: -float(after[one]))
    ]
    word = reading.main.labels[places[0]].strip()
    listing = Listing(
        title=f"The next word with sense {sense + 1} of {word!r} times {factor:g}",
        columns=["word", "p before#", "p after#", "change of its logit, said before#", "measured#"],
        rows=rows,
        note=f"The two changes differ by at most {found.difference:.2g} over the whole vocabulary.",
        key="scaled",
    )
    best = [reading.named(int(part.argmax())) for part in (before, after)]
    text = f"The most probable next word was {best[0]!r} and is {best[1]!r}."
    return [listing, Note(title="Before and after", text=text, style="answer")]


def _token(reading: Reading, word: str, place: int) -> int:
    """The id of a word: of the text or of the vocabulary; that at a place when no word is asked for."""
    ids = reading.inputs[0][0].tolist()
    if not word:
        return ids[place]
    for token in (*ids, *range(reading.run().shape[-1])):
        if reading.named(token).strip() == word:
            return token
    raise UsageError(f"the run has no token {word!r}: senses are those of single tokens")


def _alpha(site: Site, seen: Trace) -> Tensor:
    """(C, T, S)."""
    return seen[f"{site.name}.sense_weights"][0]


def _vectors(site: Site, seen: Trace) -> Tensor:
    """(T, C, D)."""
    return seen[f"{site.name}.sense_vectors"][0]


def _head(reading: Reading) -> Tensor:
    """E (V, D), which turns what the senses sum to into logits."""
    model: Any = plain(reading.model)
    return model.head.weight.detach()


def _names(count: int) -> list[str]:
    return [f"sense {number}" for number in range(1, count + 1)]


register_look(
    Look(
        "senses",
        "what the senses of a word stand for, and what each brings to the next word",
        senses,
        fits=lambda can: "senses" in can.shows and can.next,
    )
)
