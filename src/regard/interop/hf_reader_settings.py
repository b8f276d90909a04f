"""The same for what reads a whole text: BERT and its kin, and encoder-decoders."""

from __future__ import annotations

from regard.core.config import Config
from regard.interop.hf_settings import WORDS, Attentive, Settings, attentive, measured
from regard.interop.t5_models import NETS
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.language import LanguageModelConfig


def bert(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    if found is None:
        return None
    act = {"hidden_act": WORDS.get(found.mlp.activation, "gelu"), "layer_norm_eps": found.norm.epsilon}
    return found.sizes | act | {"type_vocab_size": 2, "tie_word_embeddings": found.tied or not _has_head(config)}


def roberta(config: Config, length: int, ids: Settings) -> Settings | None:
    said = bert(config, length, ids)
    if said is None or "pad_token_id" not in ids:
        return None
    return said | {"max_position_embeddings": said["max_position_embeddings"] + ids["pad_token_id"] + 1}


def distilbert(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    return found and {
        "vocab_size": found.embedding.vocab_size,
        "dim": found.embedding.d_model,
        "hidden_dim": found.mlp.d_hidden,
        "n_layers": len(found.blocks),
        "n_heads": found.attention.n_heads,
        "max_position_embeddings": found.length,
        "activation": WORDS.get(found.mlp.activation, "gelu"),
        "tie_word_embeddings": found.tied or not _has_head(config),
    }


def translation(config: Config, length: int, ids: Settings) -> Settings | None:
    """Marian's and BART's."""
    sides = _sides(config, length)
    if sides is None:
        return None
    read, written = sides
    layers = {"encoder": len(read.blocks), "decoder": len(written.blocks) // 2}  # one of theirs is two of ours
    said: Settings = {
        "vocab_size": written.embedding.vocab_size,
        "d_model": written.embedding.d_model,
        "activation_function": WORDS.get(written.mlp.activation, "relu"),
        "scale_embedding": written.embedding.scaled,
        "max_position_embeddings": written.length,
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
        **_ends(ids),
    }
    for name, side in (("encoder", read), ("decoder", written)):
        said |= {f"{name}_layers": layers[name], f"{name}_attention_heads": side.attention.n_heads}
        said[f"{name}_ffn_dim"] = side.mlp.d_hidden
    return said


def t5(config: Config, length: int, ids: Settings) -> Settings | None:
    """T5's, of both kinds."""
    sides = _sides(config, length)
    if sides is None:
        return None
    read, written = sides
    nets = {net: word for word, net in NETS.items()}
    return {
        "vocab_size": read.embedding.vocab_size,
        "d_model": read.embedding.d_model,
        "d_kv": read.attention.d_head or read.attention.d_model // read.attention.n_heads,
        "d_ff": read.mlp.d_hidden,
        "num_layers": len(read.blocks),
        "num_decoder_layers": len(written.blocks) // 2,  # one of theirs is two of ours
        "num_heads": read.attention.n_heads,
        "relative_attention_num_buckets": read.attention.relative.n_buckets,
        "relative_attention_max_distance": read.attention.relative.farthest,
        "feed_forward_proj": nets.get((read.mlp.activation, read.mlp.gated), "relu"),
        "layer_norm_epsilon": read.norm.epsilon,
        "n_positions": length,
        "tie_word_embeddings": written.tied,
        "is_encoder_decoder": True,
        **_ends(ids),
    }


def _sides(config: Config, length: int) -> tuple[Attentive, Attentive] | None:
    """The encoder and the decoder of a Transformer that has both."""
    if not isinstance(config, EncoderDecoderConfig):
        return None
    read = measured(config.encoder.embedding, config.encoder.stack, length, tied=True)
    written = measured(config.decoder.embedding, config.decoder.stack, length, config.decoder.tied)
    return None if read is None or written is None else (read, written)


def _ends(ids: Settings) -> Settings:
    """Keys of what reads one text and writes another. Padding is told by lengths here, and needs no token."""
    return {"pad_token_id": ids.get("pad_token_id", ids["eos_token_id"]), "forced_eos_token_id": None}


def _has_head(config: Config) -> bool:
    return isinstance(config, LanguageModelConfig) and config.transform is not None
