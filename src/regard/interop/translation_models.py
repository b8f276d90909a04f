"""Encoder-decoders of other programs as settings of `transformer`: Marian and BART.

    encoder layer i      one of ours
    decoder layer i      two of ours: 2i looks at the text so far, 2i + 1 at the source, and has the net

What each needs: Marian positions that are sines in one half of a vector and cosines in the other, which are ours after
the coordinates of the whole stream have changed places; BART learned positions counted from the third row, and a norm
of what is read. The bias of keys that look at the source adds the same to every score of a query, which a softmax does
not feel: it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.core.stack import BlockConfig, StackConfig
from regard.interop.architecture import Architecture, Names, Plan
from regard.interop.config_keys import ACTIVATIONS, Keys
from regard.interop.weight_table import SAME, Form, Heads, Interleaved, Line, OneRow, Places, both
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.cross import CrossAttentionConfig
from regard.models.encoder import EncoderConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.language import LanguageModelConfig

MODEL = "transformer"
TABLE, SHARED = "embedding.token_to_vector.weight", "model.shared.weight"
LOGITS_BIAS = "final_logits_bias"
OFFSET = 2  # rows of BART's table of positions before the first one
# How a program that writes with such a model is to search, which is asked for anew here.
SEARCH = [
    *(
        "bad_words_ids",
        "do_sample",
        "early_stopping",
        "force_bos_token_to_be_generated",
        "length_penalty",
        "min_length",
    ),
    *("no_repeat_ngram_size", "num_beams", "num_return_sequences", "prefix", "repetition_penalty", "temperature"),
]
# How it was trained.
TRAINING = ["activation_dropout", "classif_dropout", "decoder_layerdrop", "encoder_layerdrop", "init_std", "save_step"]


@dataclass(frozen=True)
class Side:
    """The measures of an encoder, or of a decoder."""

    name: str
    n_layers: int
    n_heads: int
    mlp: MlpConfig

    @property
    def d_model(self) -> int:
        return self.mlp.d_model

    @property
    def heads(self) -> Heads:
        return Heads(self.n_heads, self.n_heads, self.d_model // self.n_heads)


@dataclass(frozen=True)
class Stream:
    """Lines of the parts that read from the residual stream and write to it. halves: see `Interleaved`."""

    halves: bool

    def along(self, *, last: bool, after: Form = SAME) -> Form:
        return Interleaved(last, after) if self.halves else after

    def reads(self, ours: str, *theirs: str, form: Form = SAME, bias: bool = True) -> list[Line]:
        weight, *more = both(ours, *theirs, form=form, bias=bias)
        return [Line(weight.ours, *weight.theirs, form=self.along(last=True, after=form)), *more]

    def writes(self, ours: str, theirs: str) -> list[Line]:
        return both(ours, theirs, form=self.along(last=False))

    def normed(self, ours: str, theirs: str) -> list[Line]:
        return both(ours, theirs, form=self.along(last=False))

    def net(self, ours: str, theirs: str) -> list[Line]:
        return [
            *self.reads(ours + "mlp.input_to_hidden", theirs + "fc1"),
            *self.writes(ours + "mlp.hidden_to_output", theirs + "fc2"),
            *self.normed(ours + "mlp_norm", theirs + "final_layer_norm"),
        ]

    def within(self, ours: str, theirs: str, heads: Heads) -> list[Line]:
        """Attention to the text itself."""
        parts = [f"{theirs}self_attn.{part}_proj" for part in "qkv"]
        return [
            *self.reads(ours + "mixer.input_to_heads", *parts, form=heads),
            *self.writes(ours + "mixer.heads_to_output", theirs + "self_attn.out_proj"),
            *self.normed(ours + "mixer_norm", theirs + "self_attn_layer_norm"),
        ]

    def across(self, ours: str, theirs: str) -> list[Line]:
        """Attention to the source."""
        return [
            *self.reads(ours + "mixer.input_to_queries", theirs + "encoder_attn.q_proj"),
            *self.reads(ours + "mixer.memory_to_keys", theirs + "encoder_attn.k_proj", bias=False),
            *self.reads(ours + "mixer.memory_to_values", theirs + "encoder_attn.v_proj"),
            *self.writes(ours + "mixer.heads_to_output", theirs + "encoder_attn.out_proj"),
            *self.normed(ours + "mixer_norm", theirs + "encoder_attn_layer_norm"),
        ]


def layers_table(encoder: Side, decoder: Side, *, halves: bool) -> list[Line]:
    """All layers, written out: one of their decoder is two of ours."""
    stream, lines = Stream(halves), []
    for number in range(encoder.n_layers):
        ours, theirs = f"encoder.stack.layers.{number}.", f"model.encoder.layers.{number}."
        lines += [*stream.within(ours, theirs, encoder.heads), *stream.net(ours, theirs)]
    for number in range(decoder.n_layers):
        first, second = (f"decoder.stack.layers.{2 * number + part}." for part in (0, 1))
        theirs = f"model.decoder.layers.{number}."
        lines += stream.within(first, theirs, decoder.heads)
        lines += [*stream.across(second, theirs), *stream.net(second, theirs)]
    return lines


def marian(keys: Keys, names: Names) -> Plan:
    for key in ("normalize_before", "normalize_embedding", "add_bias_logits", "add_final_layer_norm"):
        keys.only(key, False)
    keys.only("static_position_embeddings", True)
    keys.only("extra_pos_embeddings", 0)
    keys.only("share_encoder_decoder_embeddings", True)
    encoder, decoder, vocab_size = _sides(keys)
    if keys.count("decoder_vocab_size", vocab_size) != vocab_size:
        raise keys.refused("decoder_vocab_size", f"one vocabulary for both sides is supported, of {vocab_size} tokens")
    length = keys.count("max_position_embeddings", 1024)
    embedding = EmbeddingConfig(
        vocab_size,
        encoder.d_model,
        PositionConfig(encoder.d_model, "sinusoidal"),
        scaled=keys.take("scale_embedding", bool, False),
    )
    table = [Line(f"encoder.{TABLE}", SHARED, form=Interleaved(last=True))]
    table += layers_table(encoder, decoder, halves=True)
    return _plan(keys, embedding, encoder, decoder, table, length, names)


def bart(keys: Keys, names: Names) -> Plan:
    for key in ("normalize_before", "add_bias_logits", "add_final_layer_norm"):
        keys.only(key, False)
    keys.only("static_position_embeddings", False)
    keys.only("normalize_embedding", True)
    encoder, decoder, vocab_size = _sides(keys)
    d_model, length = encoder.d_model, keys.count("max_position_embeddings", 1024)
    places, scaled = PositionConfig(d_model, "learned", length), keys.take("scale_embedding", bool, False)
    embedding = EmbeddingConfig(vocab_size, d_model, places, scaled=scaled, norm=NormConfig(d_model))
    table = [Line(f"encoder.{TABLE}", SHARED)]
    for side in ("encoder", "decoder"):
        positions = f"model.{side}.embed_positions.weight"
        table.append(Line(f"{side}.embedding.position.table.weight", positions, form=Places(OFFSET)))
        table += both(f"{side}.embedding.norm", f"model.{side}.layernorm_embedding")
    table += layers_table(encoder, decoder, halves=False)
    return _plan(keys, embedding, encoder, decoder, table, length, names)


def _sides(keys: Keys) -> tuple[Side, Side, int]:
    """Both sides, and how many tokens there are."""
    d_model = keys.count("d_model", 1024)
    activation = keys.choice("activation_function", ACTIVATIONS, "gelu")
    keys.only("is_decoder", False)
    keys.mark([*SEARCH, *TRAINING, "num_hidden_layers"])
    found = []
    for side in ("encoder", "decoder"):
        mlp = MlpConfig(d_model, keys.count(f"{side}_ffn_dim", 4096), activation)
        heads = keys.count(f"{side}_attention_heads", 16)
        if d_model % heads:
            raise keys.refused(f"{side}_attention_heads", f"{heads} does not divide d_model {d_model}")
        found.append(Side(side, keys.count(f"{side}_layers", 12), heads, mlp))
    return found[0], found[1], keys.count("vocab_size")


def _plan(
    keys: Keys, embedding: EmbeddingConfig, encoder: Side, decoder: Side, table: list[Line], length: int, names: Names
) -> Plan:
    d_model = encoder.d_model
    norm = NormConfig(d_model)
    read = BlockConfig(
        d_model, AttentionConfig(d_model, encoder.n_heads, causal=False), encoder.mlp, norm, placement="after"
    )
    written = (
        BlockConfig(d_model, AttentionConfig(d_model, decoder.n_heads), None, norm, placement="after"),
        BlockConfig(d_model, CrossAttentionConfig(d_model, decoder.n_heads), decoder.mlp, norm, placement="after"),
    )
    keys.only("tie_word_embeddings", True)
    stack, has_bias = StackConfig(d_model, written * decoder.n_layers), LOGITS_BIAS in names
    config = EncoderDecoderConfig(
        EncoderConfig(embedding, StackConfig(d_model, (read,) * encoder.n_layers)),
        LanguageModelConfig(embedding, stack, tied=True, head_bias=has_bias),
        shared=True,
    )
    bias = [Line("decoder.head.bias", LOGITS_BIAS, form=OneRow())] if has_bias else []
    again: list[str] = ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
    unused = ["model.decoder.layers.*.encoder_attn.k_proj.bias"]
    unused += [] if embedding.norm else ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"]
    return Plan(MODEL, config, table + bias, 0, "model.", dict.fromkeys(again, SHARED), tuple(unused), length)


ARCHITECTURES = (
    Architecture("marian", marian, "Marian", has_encoder=True),
    Architecture("bart", bart, "BART", has_encoder=True),
)
