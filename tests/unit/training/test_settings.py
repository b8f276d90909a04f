from __future__ import annotations

import dataclasses
import json

import pytest

from regard.errors import UsageError
from regard.training import settings
from regard.training.settings import TrainSettings, require_resumable

IDENTITY = {
    "class_weights",
    "batch_size",
    "accumulate",
    "length",
    "samples",
    "carry_state",
    "packed",
    "optimiser",
    "ema",
    "precision",
    "seed",
}
IDENTITY |= {"word_dropout", "word_dropout_ramp", "start", "ensemble", "freeze", "vectors"}
OVERRIDE = {"budget", "lr", "weight_decay", "betas", "schedule", "warmup", "min_lr", "clip", "compile", "graphs"}
OVERRIDE |= {"label_smoothing", "smoothing", "ar", "tar", "layer_decay"}
FREE = {
    "calibrate",
    "refit",
    "evaluate_every",
    "save_every",
    "keep",
    "sample_every",
    "patience",
    "on_save_error",
    "track",
}
FREE |= {"threads", "device", "memory", "spill", "choose_by", "parallel", "save_async", "gradient_checkpointing"}


def test_every_field_is_in_exactly_one_class_of_resume():
    names = {field.name for field in dataclasses.fields(TrainSettings)}
    assert len(IDENTITY) + len(OVERRIDE) + len(FREE) == len(names)
    for expected, kind in ((IDENTITY, "identity"), (OVERRIDE, "override"), (FREE, "free")):
        assert {name for name in names if settings.on_resume(name) == kind} == expected


def test_settings_survive_json():
    chosen = TrainSettings(budget="3Mtokens", lr=3e-4, betas=(0.9, 0.98), carry_state=True, save_every=7, warmup=100)
    assert settings.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lr", float("nan")), ("lr", float("inf")), ("lr", 0), ("lr", -1e-3), ("lr", True), ("lr", "fast"),
        ("batch_size", 0), ("batch_size", -1), ("batch_size", 2.0), ("batch_size", 2**40), ("length", 0),
        ("accumulate", 0), ("optimiser", "sgd"), ("schedule", "cosin"), ("betas", (0.9,)), ("betas", (0.9, 1.0)),
        ("ema", 1.0), ("clip", -1), ("clip", float("nan")), ("precision", "float64"), ("device", "tpu"),
        ("device", "cuda:x"), ("threads", 0), ("seed", -1), ("seed", 2**63), ("compile", "yes"), ("keep", 0),
        ("min_lr", 1.5), ("label_smoothing", 1.0), ("smoothing", "some"), ("budget", "5 parsecs"), ("budget", 5),
        ("carry_state", 1), ("packed", 1), ("samples", "lines"), ("on_save_error", "ignore"), ("evaluate_every", 0),
        ("weight_decay", float("inf")), ("graphs", 1), ("compile", 1), ("freeze", ""), ("freeze", "head,"),
        ("freeze", 3), ("layer_decay", 0), ("layer_decay", 1.5),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_by_its_key(key, value):
    with pytest.raises(UsageError, match=rf"^train\.{key}: ") as caught:
        settings.from_dict({key: value})
    assert "\n" not in str(caught.value)


def test_a_misspelt_key_names_the_nearest_one():
    with pytest.raises(UsageError, match=r"train\.batchsize: .*'batch_size'"):
        settings.from_dict({"batchsize": 3})


@pytest.mark.parametrize("field", sorted(IDENTITY))
def test_a_resume_refuses_another_value_of_an_identity_field(field):
    other = {
        "samples": "windows",
        "carry_state": False,
        "packed": True,
        "optimiser": "muon",
        "ema": 0.5,
        "precision": "bfloat16",
    }
    other |= {
        "word_dropout": 0.5,
        "start": "runs/bert",
        "class_weights": "balanced",
        "freeze": "head",
        "vectors": "glove.txt",
    }
    changed = dataclasses.replace(TrainSettings(), **{field: other.get(field, 3)})
    with pytest.raises(UsageError, match=rf"train\.{field}: the run was started with"):
        require_resumable(TrainSettings(), changed)
    with pytest.raises(UsageError, match=rf"train\.{field}: part of what the run is"):
        require_resumable(TrainSettings(), changed, override=[field])


def test_a_resume_changes_a_rate_only_when_told_and_a_free_field_at_will():
    changed = TrainSettings(lr=0.5)
    with pytest.raises(UsageError, match=r"train\.lr: the run was started with None .* --set train\.lr=VALUE"):
        require_resumable(TrainSettings(), changed)
    require_resumable(TrainSettings(), changed, override=["lr"])
    require_resumable(TrainSettings(), TrainSettings(keep=5, threads=2))
    with pytest.raises(UsageError, match="'budget'"):
        require_resumable(TrainSettings(), TrainSettings(), override=["buget"])
