"""State spaces of other programs as settings of `mamba` and `mamba2`."""

from __future__ import annotations

from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.interop.architecture import Architecture, Names, Plan
from regard.interop.config_keys import Keys
from regard.interop.weight_table import Line, OneChannel, both
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.ssd import SsdConfig
from regard.models.language import LanguageModelConfig

BLOCK, MIXER = "stack.layers.{}.", "backbone.layers.{}.mixer."
# How steps and weights were begun, and what a program prefers to do.
BEGUN = (
    *("rescale_prenorm_residual", "residual_in_fp32", "time_step_floor", "time_step_init_scheme", "time_step_max"),
    *("time_step_min", "time_step_scale", "use_associative_scan", "use_mambapy", "fused_add_norm", "rms_norm"),
    *("ssm_cfg", "d_model", "n_layer", "d_inner", "pad_vocab_size_multiple"),
)
BOTH = [
    Line("embedding.token_to_vector.weight", "backbone.embeddings.weight"),
    Line(BLOCK + "mixer_norm.weight", "backbone.layers.{}.norm.weight"),
    Line(BLOCK + "mixer.input_to_streams.weight", MIXER + "in_proj.weight"),
    Line(BLOCK + "mixer.convolution.weight", MIXER + "conv1d.weight", form=OneChannel()),
    Line(BLOCK + "mixer.convolution.bias", MIXER + "conv1d.bias"),
    Line(BLOCK + "mixer.log_decay", MIXER + "A_log"),
    Line(BLOCK + "mixer.skip", MIXER + "D"),
    Line(BLOCK + "mixer.hidden_to_output.weight", MIXER + "out_proj.weight"),
    Line("norm.weight", "backbone.norm_f.weight"),
]
MAMBA = [
    *BOTH,
    Line(BLOCK + "mixer.stream_to_selection.weight", MIXER + "x_proj.weight"),
    *both(BLOCK + "mixer.rank_to_step", MIXER + "dt_proj"),
]
MAMBA_2 = [
    *BOTH,
    Line(BLOCK + "mixer.step_bias", MIXER + "dt_bias"),
    Line(BLOCK + "mixer.norm.weight", MIXER + "norm.weight"),
]


def mamba(keys: Keys, _names: Names) -> Plan:
    d_model, expand = keys.count("hidden_size", 768), keys.count("expand", 2)
    keys.only("intermediate_size", expand * d_model)
    said = keys.content.get("time_step_rank", "auto")
    rank = None if said == "auto" else keys.count("time_step_rank")
    mixer = MambaConfig(d_model, keys.count("state_size", 16), expand, keys.count("conv_kernel", 4), rank)
    return _plan("mamba", keys, mixer, MAMBA, [*BEGUN, "time_step_rank"])


def mamba2(keys: Keys, _names: Names) -> Plan:
    d_model, expand, d_head = keys.count("hidden_size"), keys.count("expand", 2), keys.count("head_dim", 64)
    keys.only("num_heads", expand * d_model // d_head)
    keys.only("time_step_limit", [0.0, {"__float__": "Infinity"}], [0.0, float("inf")])
    groups, window = keys.count("n_groups", 8), keys.count("conv_kernel", 4)
    mixer = SsdConfig(
        d_model, keys.count("state_size", 128), d_head, groups, expand, window, keys.count("chunk_size", 256)
    )
    return _plan("mamba2", keys, mixer, MAMBA_2, [*BEGUN, "time_step_rank"])


def _plan(model: str, keys: Keys, mixer: MixerConfig, table: list[Line], unused: list[str]) -> Plan:
    n_layers = keys.count("num_hidden_layers", 32)
    keys.only("hidden_act", "silu")
    keys.only("use_bias", False)
    keys.only("use_conv_bias", True)
    tied = keys.take("tie_word_embeddings", bool, model == "mamba")
    keys.only("layer_norm_epsilon", 1e-5)
    norm = NormConfig(mixer.d_model, "rms")
    block = BlockConfig(mixer.d_model, mixer, norm=norm)
    embedding = EmbeddingConfig(keys.count("vocab_size"), mixer.d_model)
    config = LanguageModelConfig(embedding, StackConfig(mixer.d_model, (block,) * n_layers), norm, tied=tied)
    keys.mark(unused)
    copies = {"lm_head.weight": "backbone.embeddings.weight"} if tied else {}
    lines = table if tied else [*table, Line("head.weight", "lm_head.weight")]
    return Plan(model, config, lines, n_layers, "backbone.", copies)


ARCHITECTURES = (Architecture("mamba", mamba, "Mamba"), Architecture("mamba2", mamba2, "Mamba-2"))
