"""Which architecture of other programs says all that a model of ours is, and what stands in the way where none does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from regard.core.config import Config
from regard.errors import RegardError, UsageError
from regard.interop import hf_reader_settings as reading
from regard.interop import hf_settings as causal
from regard.interop.architecture import Plan
from regard.interop.architectures import plan_of
from regard.interop.hf_settings import Settings
from regard.interop.translation_models import LOGITS_BIAS
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.language import LanguageModelConfig

# Their names, the class that transformers builds of each, and who writes its keys.
Writer = Callable[[Config, int, Settings], Settings | None]
WRITERS: dict[str, tuple[str, Writer]] = {
    "gpt2": ("GPT2LMHeadModel", causal.gpt2),
    "llama": ("LlamaForCausalLM", causal.llama),
    "mistral": ("MistralForCausalLM", causal.mistral),
    "qwen2": ("Qwen2ForCausalLM", causal.qwen),
    "qwen3": ("Qwen3ForCausalLM", causal.qwen3),
    "gemma3_text": ("Gemma3ForCausalLM", causal.gemma3),
    "gpt_neox": ("GPTNeoXForCausalLM", causal.gpt_neox),
    "mamba": ("MambaForCausalLM", causal.mamba),
    "mamba2": ("Mamba2ForCausalLM", causal.mamba2),
    "bert": ("BertForMaskedLM", reading.bert),
    "roberta": ("RobertaForMaskedLM", reading.roberta),
    "distilbert": ("DistilBertForMaskedLM", reading.distilbert),
    "marian": ("MarianMTModel", reading.translation),
    "bart": ("BartForConditionalGeneration", reading.translation),
    "t5": ("T5ForConditionalGeneration", reading.t5),
}
# Settings of training alone, which a model in use does not feel.
OF_TRAINING = frozenset({"dropout", "locked", "row_dropout", "init_std", "embedding_std", "weight_dropout"})
FAR = 1 << 10
SHOWN = 3  # settings that a refusal names
# Names by which the import knows that a model has a head that fills in masks.
HEADS = ("cls.predictions.transform.dense.weight", "lm_head.dense.weight", "vocab_transform.weight")


@dataclass(frozen=True)
class Outgoing:
    """kind: their name of the architecture. settings: its config.json. plan: how the import reads it."""

    kind: str
    settings: Settings
    plan: Plan


def outgoing(config: Config, length: int, ids: Settings, known: str | None = None) -> Outgoing:
    """The architecture that says all of `config`.

    ids    of special tokens, by their keys. known: the one that the model came from, tried first.
    length positions, where the model has no end of its own.
    """
    order = sorted(WRITERS, key=lambda kind: kind != known)
    refused: list[tuple[str, list[Difference]]] = []
    for kind in order:
        name, writer = WRITERS[kind]
        said = writer(config, length, ids)
        if said is None:
            continue
        settings = {"model_type": kind, "architectures": [name]} | ids | said
        try:
            plan = plan_of(dict(settings), "config.json", _names(config))
        except RegardError:  # a key of theirs has no such value: another one is nearer
            continue
        found = list(differences(canonical(config.to_dict()), canonical(plan.config.to_dict())))
        if not found:
            return Outgoing(kind, settings, plan)
        refused.append((kind, found))
    if not refused:
        raise UsageError("no architecture of transformers is built like it; --to onnx takes every neural model")
    kind, found = min(refused, key=lambda pair: _distance(pair[1]))
    told = {one.setting: f"{one.place} = {_brief(one.ours)}" for one in reversed(found)}
    raise UsageError(
        f"no architecture of transformers says {', '.join(list(told.values())[::-1][:SHOWN])}; {kind} is nearest, with "
        f"{_brief(found[0].theirs)} for the first; --to onnx takes every neural model"
    )


def _distance(found: list[Difference]) -> int:
    """How many settings differ; another kind of model, or one that looks the other way, is farther than any of them."""
    names = {one.setting for one in found}
    return len(names) + (FAR if names & {"", "causal"} else 0)


def _names(config: Config) -> list[str]:
    """Names of tensors by which the import knows what a model has beside what its config says."""
    is_masked = isinstance(config, LanguageModelConfig) and config.transform is not None
    has_bias = isinstance(config, EncoderDecoderConfig) and config.decoder.head_bias
    return list(HEADS) if is_masked else [LOGITS_BIAS] if has_bias else []


@dataclass(frozen=True)
class Difference:
    """A setting that theirs cannot say."""

    place: str
    ours: Any
    theirs: Any

    @property
    def setting(self) -> str:
        """Its name, wherever it stands."""
        return self.place.rpartition(".")[2]


def canonical(value: Any) -> Any:
    """Settings as JSON without those of training, and with defaults said that are worked out of others."""
    if isinstance(value, list):
        return [canonical(part) for part in value]
    if not isinstance(value, dict):
        return value
    found = {key: canonical(part) for key, part in value.items() if key not in OF_TRAINING}
    if found.get("kind") == "attention":
        found["n_kv_heads"] = found["n_kv_heads"] or found["n_heads"]
        found["d_head"] = found["d_head"] or found["d_model"] // found["n_heads"]
        found["output_bias"] = found["bias"] if found["output_bias"] is None else found["output_bias"]
        if found["position"] != "rotary":
            del found["rotary"]
        if not found["qk_norm"]:
            del found["qk_epsilon"]
    if found.get("kind") == "rotary" and found["scaling"] != "llama3":
        found = {key: part for key, part in found.items() if key not in ("low", "high", "trained")}
    if found.get("kind") == "position" and found["form"] == "sinusoidal":
        del found["max_length"]  # sinusoids have no end
    if found.get("kind") == "mamba":
        found["rank"] = found["rank"] or math.ceil(found["d_model"] / 16)
    if found.get("kind") == "sentence_encoder":
        found = {key: part for key, part in found.items() if key not in ("pooling", "normalised")}  # of other files
    return found


def differences(ours: Any, theirs: Any, place: str = "") -> Iterator[Difference]:
    """Where two trees differ, the deepest places."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.get("kind") == theirs.get("kind"):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key), theirs.get(key), f"{place}.{key}" if place else key)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{place}.{number}")
    elif ours != theirs:
        yield Difference(place, ours, theirs)


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("kind", "an object"))
    return "true" if value is True else "false" if value is False else "none" if value is None else str(value)[:60]
