"""Tiny random models of transformers, saved as it saves them, and ours made of the same folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.interop.architectures import plan_of
from regard.interop.hf_folder import is_hf_folder
from regard.interop.tensor_files import Weights, opened
from regard.storage import tensors

hf: Any = transformers
hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()
VOCABULARY, POSITIONS, N_LAYERS = 29, 32, 2
TEXT = ["the cat sat on the mat", "a dog sang of the fox", "über die Brücke, 100 %", "\tone  two\n"]
ENDS: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
WIDE: dict[str, Any] = ENDS | {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 24}
WIDE |= {"num_hidden_layers": N_LAYERS, "num_attention_heads": 4, "max_position_embeddings": POSITIONS}
GROUPED: dict[str, Any] = WIDE | {"num_key_value_heads": 2}
TIED = {"hidden_size": 32, "tie_word_embeddings": True}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 16}
LINEAR = {"rope_type": "linear", "rope_theta": 5000.0, "factor": 4.0}
LM = hf.AutoModelForCausalLM.from_config
MASKED = hf.AutoModelForMaskedLM.from_config
SMALL = {"n_positions": POSITIONS, "n_embd": 16, "n_layer": N_LAYERS, "n_head": 4}
GEMMA = {"num_hidden_layers": 3, "head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 11}
GEMMA |= {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
GGUF = GEMMA | {"query_pre_attn_scalar": 8, "layer_types": ["sliding_attention"] * 3}  # as such a file implies
STATE = ENDS | {"state_size": 4, "num_hidden_layers": N_LAYERS, "time_step_rank": 1}
# By name: those that look back, and those that look both ways.
CAUSAL: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: LM(hf.GPT2Config(vocab_size=VOCABULARY, **SMALL, **ENDS)),
    "llama": lambda: LM(hf.LlamaConfig(**GROUPED)),
    "llama-3": lambda: LM(hf.LlamaConfig(**GROUPED | TIED, rope_parameters=LLAMA3)),
    "llama-biased": lambda: LM(hf.LlamaConfig(**WIDE, rope_parameters=LINEAR, attention_bias=True, mlp_bias=True)),
    "mistral": lambda: LM(hf.MistralConfig(**GROUPED, head_dim=6, sliding_window=5)),
    "qwen2": lambda: LM(hf.Qwen2Config(**GROUPED, use_sliding_window=True, sliding_window=4, max_window_layers=1)),
    "qwen3": lambda: LM(hf.Qwen3Config(**GROUPED, head_dim=8)),
    "gemma-3": lambda: LM(hf.Gemma3TextConfig(**GROUPED | GEMMA)),
    "gpt-neox": lambda: LM(hf.GPTNeoXConfig(**WIDE | {"hidden_size": 32})),
    "gpt-neox-in-turn": lambda: LM(hf.GPTNeoXConfig(**WIDE | {"hidden_size": 32}, use_parallel_residual=False)),
    "mamba": lambda: LM(hf.MambaConfig(vocab_size=VOCABULARY, hidden_size=16, **STATE)),
    "mamba2": lambda: LM(
        hf.Mamba2Config(
            vocab_size=VOCABULARY,
            hidden_size=16,
            num_heads=4,
            head_dim=8,
            n_groups=1,
            chunk_size=8,
            tie_word_embeddings=True,
            **STATE,
        )
    ),
}
BOTH_WAYS: dict[str, Callable[[], Any]] = {
    "bert": lambda: MASKED(hf.BertConfig(**WIDE)),
    "roberta": lambda: MASKED(hf.RobertaConfig(**WIDE | {"pad_token_id": 1})),
    "distilbert": lambda: MASKED(
        hf.DistilBertConfig(
            vocab_size=VOCABULARY,
            max_position_embeddings=POSITIONS,
            dim=16,
            hidden_dim=24,
            n_layers=N_LAYERS,
            n_heads=4,
        )
    ),
}


PAIRS = hf.AutoModelForSeq2SeqLM.from_config
BOTH_SIDES: dict[str, Any] = {"vocab_size": VOCABULARY, "d_model": 16, "max_position_embeddings": POSITIONS}
BOTH_SIDES |= {"encoder_layers": 1, "decoder_layers": N_LAYERS}
for _side, _heads, _inner in (("encoder", 4, 24), ("decoder", 2, 20)):
    BOTH_SIDES |= {f"{_side}_attention_heads": _heads, f"{_side}_ffn_dim": _inner}
FROM_PAD = {"pad_token_id": 0, "eos_token_id": 1, "forced_eos_token_id": 1, "decoder_start_token_id": 0}
T5: dict[str, Any] = {"vocab_size": VOCABULARY, "d_model": 16, "d_kv": 6, "d_ff": 24, "num_layers": 2}
T5 |= {"num_decoder_layers": N_LAYERS, "num_heads": 2, "relative_attention_num_buckets": 8, **FROM_PAD}
T5 |= {"relative_attention_max_distance": 20}
# Those that read one text and write another.
TRANSLATORS: dict[str, Callable[[], Any]] = {
    "marian": lambda: PAIRS(
        hf.MarianConfig(**BOTH_SIDES, **FROM_PAD, scale_embedding=True, activation_function="swish")
    ),
    "bart": lambda: PAIRS(hf.BartConfig(**BOTH_SIDES)),
    "t5": lambda: PAIRS(hf.T5Config(**T5)),
    "t5-gated": lambda: PAIRS(hf.T5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
}


def theirs_of(name: str) -> Any:
    """Weights far from their initial values, so that nothing hides behind a 0 or a 1."""
    model = (CAUSAL | BOTH_WAYS | TRANSLATORS | {"gemma-3-gguf": lambda: LM(hf.Gemma3TextConfig(**GROUPED | GGUF))})[
        name
    ]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.25)
        if name in TRANSLATORS and hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
        if name == "marian":
            exact_places(model)
    return model.eval()


def exact_places(marian: Any) -> None:
    """Marian's table of positions, which it rounds to float32, as it is to be."""
    for side in (marian.model.encoder, marian.model.decoder):
        table = side.embed_positions.weight
        rows, width = table.shape
        angles = torch.arange(rows).double()[:, None] / 10000 ** (torch.arange(0, width, 2).double() / width)
        exact = torch.cat([angles.sin(), angles.cos()], 1)
        side.embed_positions.weight = torch.nn.Parameter(exact, requires_grad=False)


def ours_of(theirs: Any, folder: Path) -> Any:
    """Our model in float64 with the numbers of theirs, by way of a folder."""
    theirs.save_pretrained(folder)
    assert is_hf_folder(folder)
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with opened(folder) as files:
        plan = plan_of(content, "config.json", files.forms)
        model = plan.config.build().double()
        own = tensors.weights_of(model)
        weights = Weights(files, plan, tensors.forms_of(own), "config.json", torch.float64)
        tensors.copy_into(own, {name: weights[name] for name in own})
    return model.eval()


def byte_level() -> Tokenizer:
    """As GPT-2's: bytes, of which merges make words with the space before them."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>", "<pad>", "<mask>"]
    made.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, special_tokens=special, show_progress=False),
    )
    return made


def sentence_piece() -> Tokenizer:
    """As Llama 2's: spaces as a sign, one put before a text, and bytes for what has no token."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *bytes_, "▁", *"abcdefghijklmnopqrstuvwxyz"]
    merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e")]
    vocabulary = {token: number for number, token in enumerate([*tokens, *("".join(pair) for pair in merges)])}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(parts)
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    return made


def word_piece() -> Tokenizer:
    """As BERT's: words in small letters, and pieces that go on."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        TEXT, trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    )
    return made


NAMED = {
    "byte_level": (byte_level, {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}),
    "sentence_piece": (sentence_piece, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}),
    "word_piece": (word_piece, {f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "pad", "mask", "unk")}),
}


def with_tokenizer(folder: Path, kind: str) -> Tokenizer:
    """Put a tokenizer into a folder."""
    make, special = NAMED[kind]
    made = make()
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(special), encoding="utf-8")
    return made


def tiny_folder(folder: Path, name: str, kind: str) -> Any:
    """A whole folder, as one downloads it, of a model with as many rows as its tokenizer has tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    size = with_tokenizer(folder, kind).get_vocab_size()
    config = (CAUSAL | BOTH_WAYS)[name]().config
    config.vocab_size = size
    model = (LM if name in CAUSAL else MASKED)(config).eval()
    model.save_pretrained(folder)
    return model
