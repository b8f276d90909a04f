"""Every architecture of other programs that is known, by the `model_type` of its config."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from regard.errors import CheckpointError, blamed_on, nearest
from regard.interop import (
    causal_models,
    encoder_models,
    gemma_models,
    state_space_models,
    t5_models,
    translation_models,
)
from regard.interop.architecture import Architecture, Plan
from regard.interop.config_keys import Keys

MODULES = (causal_models, gemma_models, encoder_models, state_space_models, translation_models, t5_models)
ARCHITECTURES: dict[str, Architecture] = {one.name: one for module in MODULES for one in module.ARCHITECTURES}


def plan_of(content: Any, where: str, names: Collection[str]) -> Plan:
    """How the model of a config.json becomes one of ours. names: of the tensors that are beside it."""
    keys = Keys(content, where)
    if "auto_map" in keys.content:
        raise keys.refused("auto_map", "the model is code that comes with the folder, and none of it is ever run")
    if "quantization_config" in keys.content:
        raise keys.refused("quantization_config", "quantised weights are not read; take the model as it was before")
    keys.only("add_cross_attention", False)
    kind = keys.take("model_type", str)
    if kind not in ARCHITECTURES:
        raise CheckpointError(f"{where}: model_type: {kind[:60]!r} is not known{nearest(kind, ARCHITECTURES)}")
    keys.only("is_encoder_decoder", ARCHITECTURES[kind].has_encoder)
    with blamed_on(where):
        plan = ARCHITECTURES[kind].plan(keys, names)
    keys.done()
    return plan
