"""Generation and translation beside CTranslate2, which runs models of transformers that it has converted.

Both sides have the same sizes and random weights of their own, and write as many tokens as they are asked for.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from regard.bench.floor import generation_cost
from regard.bench.generation import FIGURES, PROMPT, TOKENS, gpt2, our_texts, random_prompts
from regard.bench.race import Row, Work, installed, speed_row
from regard.bench.seq2seq import (
    MANY,
    STEPS,
    TRANSLATOR,
    WIDTH,
    decoder_of,
    our_beam,
    pairs,
    searched_cost,
    source_lengths,
)
from regard.bench.step import CPU
from regard.bench.translator import marian
from regard.storage.temporary import temporary_folder

END, UNKNOWN = "</s>", "<unk>"
PADDING = "<pad>"


def ctranslate2(repeats: int, device: torch.device = CPU) -> list[Row]:
    """The rows, where CTranslate2 and transformers are installed."""
    if not (installed("ctranslate2") and installed("transformers")):
        return []
    repeats = max(2, repeats // 2)
    with temporary_folder(None, "regard-bench-") as folder:
        return [*_generation(repeats, device, folder), _translation(repeats, device, folder)]


def _generation(repeats: int, device: torch.device, folder: Path) -> list[Row]:
    from transformers import GPT2Config, GPT2LMHeadModel

    ours, count = gpt2(device), TOKENS[device.type]
    peer = _opened("Generator", _converted(GPT2LMHeadModel(GPT2Config()), folder / "gpt2"), device)
    rows = []
    for batch in FIGURES:
        prompts = random_prompts(batch)
        texts = [_spelt(row) for row in prompts.tolist()]
        name = f"generate, GPT-2 small's size, batch {batch}, beside CTranslate2"
        cost = generation_cost(ours, batch, PROMPT, count)
        work = our_texts(ours, prompts, count)
        rows.append(speed_row(name, batch * count, work, _texts(peer, texts, count), repeats, None, cost=cost))
    return rows


def _texts(peer: Any, prompts: list[list[str]], count: int) -> Work:
    return lambda: peer.generate_batch(
        prompts, max_length=count, min_length=count, sampling_topk=1, include_prompt_in_result=False
    )


def _translation(repeats: int, device: torch.device, folder: Path) -> Row:
    batch = pairs(MANY).to(device)
    ours = decoder_of("transformer", TRANSLATOR, device)
    peer = _opened("Translator", _converted(marian(TRANSLATOR), folder / "marian"), device)
    assert batch.source is not None
    rows = zip(batch.source.tolist(), source_lengths(batch), strict=True)
    sources = [_spelt(row[:length]) for row, length in rows]

    def work() -> object:
        return peer.translate_batch(sources, beam_size=WIDTH, max_decoding_length=STEPS, min_decoding_length=STEPS)

    name = f"transformer beam {WIDTH}, {TRANSLATOR}, {MANY} sources, {STEPS} steps, beside CTranslate2"
    cost = searched_cost(ours, batch)
    return speed_row(name, MANY, our_beam(ours, batch), work, repeats, None, "sentences/s", cost)


def _opened(kind: str, path: str, device: torch.device) -> Any:
    """A converted model, with the threads and number type of our side."""
    number_type = "float32" if device.type == "cpu" else "bfloat16"
    opened = getattr(importlib.import_module("ctranslate2"), kind)
    return opened(path, device=device.type, compute_type=number_type, intra_threads=torch.get_num_threads())


def _converted(model: Any, folder: Path) -> str:
    """A model of transformers in the files of CTranslate2."""
    converters = importlib.import_module("ctranslate2.converters")

    class Given(converters.TransformersConverter):
        """Converts the model that is here: neither it nor a tokenizer is read from a file."""

        def load_model(self, *_: Any, **__: Any) -> Any:
            return model.eval()

        def load_tokenizer(self, *_: Any, **__: Any) -> Any:
            return _Words(model.config.vocab_size)

    model.config.save_pretrained(folder)
    return Given(str(folder)).convert(str(folder / "converted"))


class _Words:
    """What a converter asks of a tokenizer: words by number, of which the first two end a text and stand for others.

    The last pads, as with Marian's models, whose converter takes it out.
    """

    bos_token = eos_token = END
    unk_token = UNKNOWN

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def get_vocab(self) -> dict[str, int]:
        words = [*_spelt(range(self.vocab_size - 1)), PADDING]
        return {word: number for number, word in enumerate(words)}

    def convert_ids_to_tokens(self, number: int) -> str:
        return _spelt([number])[0]


def _spelt(numbers: Any) -> list[str]:
    reserved = {0: END, 1: UNKNOWN}
    return [reserved.get(number, f"w{number}") for number in numbers]
