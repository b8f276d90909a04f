"""config.json of another program, key by key: what is not asked for by name is refused, never passed over."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from regard.core.config import decode
from regard.core.limits import require_possible
from regard.errors import CheckpointError, UsageError, nearest

REQUIRED: Any = object()
# Keys that say nothing of what a model computes from given tokens: names and versions, how it was trained, what a
# program keeps or returns, heads that are no part of it, and ids that the tokenizer tells.
INERT = frozenset(
    [
        "_attn_implementation",
        "_name_or_path",
        "architectures",
        "attention_dropout",
        "attention_probs_dropout_prob",
        "attn_pdrop",
        "begin_suppress_tokens",
        "bos_token_id",
        "chunk_size_feed_forward",
        "classifier_dropout",
        "cross_attention_hidden_size",
        "decoder_start_token_id",
        "dropout",
        "dtype",
        "embd_pdrop",
        "eos_token_id",
        "finetuning_task",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "gradient_checkpointing",
        "hidden_dropout",
        "hidden_dropout_prob",
        "id2label",
        "initializer_range",
        "is_llama_config",
        "label2id",
        "max_length",
        "model_type",
        "n_ctx",
        "output_attentions",
        "output_hidden_states",
        "output_past",
        "pad_token_id",
        "pretraining_tp",
        "problem_type",
        "qa_dropout",
        "reorder_and_upcast_attn",
        "resid_pdrop",
        "return_dict",
        "sep_token_id",
        "seq_classif_dropout",
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
        "task_specific_params",
        "tie_encoder_decoder",
        "tokenizer_class",
        "torch_dtype",
        "transformers.js_config",
        "transformers_version",
        "use_bfloat16",
        "use_cache",
    ]
)
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


class Keys:
    """An object of a JSON file whose keys are taken one by one. where: the file, and the key of an object in it."""

    def __init__(self, content: Any, where: str, inert: frozenset[str] = INERT) -> None:
        if not isinstance(content, dict):
            raise CheckpointError(f"{where}: expected an object, found {type(content).__name__}")
        self.content, self.where, self._inert = content, where, inert
        self._asked: set[str] = set()

    def take(self, key: str, hint: Any, default: Any = REQUIRED) -> Any:
        """The value of a key as the type `hint`."""
        self._asked.add(key)
        if key not in self.content:
            if default is REQUIRED:
                raise self.refused(key, "is missing")
            return default
        try:
            value = decode(self.content[key], hint, key)
            require_possible(value, key)
        except UsageError as error:
            raise CheckpointError(f"{self.where}: {error}") from None
        return value

    def count(self, key: str, default: Any = REQUIRED) -> int:
        """A whole number above 0, or null where that may be left open."""
        value: int = self.take(key, int | None if default is None else int, default)
        if value is not None and value < 1:
            raise self.refused(key, f"expected a positive number, found {value}")
        return value

    def only(self, key: str, *allowed: Any) -> None:
        """Refuse a value that would change what is computed in a way that regard lacks; none said is the first."""
        self._asked.add(key)
        value = self.content.get(key, allowed[0])
        if value not in allowed or isinstance(value, bool) != isinstance(allowed[0], bool):
            told = " or ".join(json.dumps(one) for one in allowed)
            raise self.refused(key, f"{json.dumps(value)[:60]} is not supported, {told} is")

    def choice(self, key: str, choices: dict[str, Any], default: Any = REQUIRED) -> Any:
        """What one of several words stands for."""
        word = self.take(key, str, default)
        if word not in choices:
            raise self.refused(key, f"{word!r} is not supported{nearest(word, choices)}")
        return choices[word]

    def inner(self, key: str) -> Keys | None:
        """The object of a key, None where there is none."""
        self._asked.add(key)
        value = self.content.get(key)
        return None if value is None else Keys(value, f"{self.where}: {key}", frozenset())

    def mark(self, unused: Iterable[str]) -> None:
        """Know keys that change nothing in this place."""
        self._asked.update(unused)

    def done(self) -> None:
        """Refuse keys that nobody asked for."""
        known = self._asked | self._inert
        for key in self.content:
            if key not in known:
                raise self.refused(
                    str(key)[:60], f"is not known, and what it changes is not{nearest(key, self._asked)}"
                )

    def refused(self, key: str, why: str) -> CheckpointError:
        return CheckpointError(f"{self.where}: {key}: {why}")
