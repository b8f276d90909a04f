"""Recipes, assignments and which of them wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.registry import MODELS, entry
from regard.errors import RegardError, UsageError
from regard.run.recipe import read_recipe
from regard.run.settings import (
    SECTIONS,
    Origin,
    known_settings,
    parse_value,
    read_assignments,
    resolve,
    section_of,
)
from regard.run.task_choice import with_task
from regard.run.train import Job, train_run
from regard.training import settings as train_settings
from regard.training.display import Silent


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        (".5", 0.5),
        ("7", 7),
        ("true", True),
        ("words", "words"),
        ("2m", "2m"),
        ('"7"', "7"),
        ("[1, 2]", [1, 2]),
        ("hash:0.1", "hash:0.1"),
        ("2024-01-01", "2024-01-01"),
        ("1\nx = 2", "1\nx = 2"),
        ("", ""),
        ("{a = 1}", "{a = 1}"),
    ],
)
def test_values_are_toml_and_bare_words_are_strings(text: str, value: object):
    assert parse_value(text) == value


def test_later_layers_win_and_every_setting_keeps_its_origin(tmp_path: Path):
    recipe = write(tmp_path / "r.toml", '[model]\nname = "lstm"\nn_layers = 3\n[train]\nlr = 0.5\nclip = 2.0\n')
    settings = resolve(
        read_recipe(recipe),
        read_assignments(["train.lr=0.25", "model.d_model=16"]),
        {"model.size": Origin("tiny", "flag --size")},
    )
    assert settings["model.name"] == "lstm"
    assert settings["model.n_layers"] == 3
    assert settings["train.lr"] == 0.25
    assert settings["train.clip"] == 2.0
    assert settings.origins["train.lr"] == "--set"
    assert settings.origins["train.clip"] == f"recipe {recipe}"
    assert settings.origins["model.size"] == "flag --size"
    assert settings.origins["model.d_model"] == "--set"
    assert settings.origins["data.tokens"] == "default"
    assert settings.model_changes == {"n_layers": 3, "d_model": 16}


def test_a_size_is_an_origin_of_its_own():
    settings = resolve({"model.size": Origin("tiny", "flag --size")})
    assert settings.origins["model.d_model"] == "size tiny"
    assert settings.model_changes == {}


def test_training_settings_that_suit_the_model_come_from_it_and_give_way():
    assert resolve().origins["train.lr"] == "model gpt"
    assert resolve(read_assignments(["train.lr=0.125"]))["train.lr"] == 0.125


def test_a_recipe_extends_one_beside_it_and_overrides_it(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    write(tmp_path / "base.toml", '[train]\nlr = 0.5\nclip = 3.0\n[data]\npath = "text.txt"\n')
    child = write(tmp_path / "sub" / "child.toml", 'extends = "../base.toml"\n[train]\nlr = 0.25\n')
    layer = read_recipe(child)
    assert (layer["train.lr"].value, layer["train.clip"].value) == (0.25, 3.0)
    assert Path(layer["data.path"].value).resolve() == tmp_path / "text.txt"
    assert layer["train.clip"].place.endswith("base.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[trian]\nlr = 1.0\n", "did you mean 'train'"),
        ("model = 3\n", "[model] is a table"),
        ("[train.deep]\nlr = 1.0\n", "two levels"),
        ("[train\nlr = 1", "recipe"),
        ('extends = ["a", "b"]\n', "extends names one recipe"),
        ('extends = "r.toml"\n', "extends itself"),
        ('extends = "missing.toml"\n', "no such file"),
    ],
)
def test_a_bad_recipe_is_one_line_that_names_it(tmp_path: Path, text: str, words: str):
    recipe = write(tmp_path / "r.toml", text)
    with pytest.raises(UsageError) as caught:
        read_recipe(recipe)
    message = str(caught.value)
    assert words in message
    assert "recipe" in message
    assert "\n" not in message


def test_a_recipe_that_is_not_text_is_refused(tmp_path: Path):
    (tmp_path / "r.toml").write_bytes(b"[train]\nlr = 1.0 # \xff\n")
    with pytest.raises(UsageError, match="not UTF-8 at byte 19"):
        read_recipe(tmp_path / "r.toml")


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("train.lrr=1", "did you mean 'lr'"),
        ("model.n_layer=1", "did you mean 'n_layers'"),
        ("data.token=words", "did you mean 'tokens'"),
        ("mdl.n_layers=1", "did you mean 'model'"),
        ("lr=1", "train.lr"),
        ("train.lr", "section.key=value"),
        ("=1", "section.key=value"),
        ("train.lr=fast", "train.lr"),
        ("train.lr=nan", "train.lr"),
        ("train.lr=inf", "train.lr"),
        ("train.batch_size=1.5", "train.batch_size"),
        ("train.batch_size=true", "train.batch_size"),
        ("model.name=gtp", "did you mean 'gpt'"),
        ("model.size=smal", "did you mean 'small'"),
        ("train.schedule=cosinus", "did you mean 'cosine'"),
        ("data.cache=5", "data.cache: expected str"),
    ],
)
def test_a_bad_assignment_is_refused_with_its_key(assignment: str, words: str):
    with pytest.raises(UsageError) as caught:
        resolve(read_assignments([assignment]))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("assignment", ["model.n_layers=1000000000", "model.d_model=1099511627776"])
def test_absurd_counts_are_refused_before_anything_is_built(assignment: str):
    settings = resolve(read_assignments([assignment]))
    with pytest.raises(UsageError, match=r"model\.[a-z_]+: [0-9]+ is above [0-9,]+; lower it"):
        entry(settings["model.name"]).config(2, settings["model.size"], **settings.model_changes)


@pytest.mark.parametrize(
    ("data", "model", "assignment", "largest"),
    [
        ("world:electricity", "forecaster", "data.history=65537", 65536),
        ("world:electricity", "forecaster", "data.horizon=65537", 65536),
        ("world:shapes?train=8&valid=4", "captioner", "data.size=65537", 65536),
        ("world:stories?train=8&valid=4", "ngram", "model.k=1e10", 1 << 32),
        ("world:stories?train=8&valid=4", "fnn", "model.d_hidden=16777217", 1 << 24),
    ],
)
def test_what_could_not_be_loaded_again_is_refused_before_it_is_trained(
    tmp_path: Path, data: str, model: str, assignment: str, largest: int
):
    layer = read_assignments([f"data.path={data}", f"model.name={model}", "model.size=tiny", assignment])
    with pytest.raises(UsageError, match=rf"{assignment.partition('=')[0]}: .*{largest:,}"):
        train_run(Job(resolve(with_task(layer)), tmp_path / "run", is_large=True), Silent())
    assert not (tmp_path / "run").exists()


def test_a_keyword_finds_its_section():
    assert section_of("lr", "gpt") == "train.lr"
    assert section_of("tokens", "gpt") == "data.tokens"
    assert section_of("n_heads", "gpt") == "model.n_heads"
    assert section_of("model.reverse", "seq2seq") == "model.reverse"
    with pytest.raises(UsageError, match="did you mean 'n_heads'"):
        section_of("n_head", "gpt")


def test_a_keyword_of_a_model_that_counts_is_its_own_where_only_gradients_share_it():
    assert section_of("smoothing", "ngram") == "model.smoothing"
    assert section_of("smoothing", "gpt") == "train.smoothing"
    with pytest.raises(UsageError, match=r"reverse: say which one, .*model\.reverse"):
        section_of("reverse", "seq2seq")


NUMBERS = st.one_of(st.integers(), st.integers(-3, 9), st.floats(), st.floats(0, 1), st.just(10**9), st.just(2**40))
VALUES = st.one_of(NUMBERS, st.booleans(), st.none(), st.text(max_size=8), st.lists(NUMBERS, max_size=3))


@st.composite
def odd_settings(draw: st.DrawFn) -> tuple[str, dict[str, Origin]]:
    """A model and some of its settings with values that nobody would choose."""
    model = draw(st.sampled_from(list(MODELS)))
    keys = [f"{section}.{key}" for section in SECTIONS for key in known_settings(section, model)]
    chosen = draw(st.lists(st.sampled_from([key for key in keys if key != "model.name"]), min_size=1, max_size=3))
    return model, {key: Origin(draw(VALUES), "--set") for key in chosen}


@given(odd_settings())
def test_any_value_is_either_valid_or_refused_in_one_line(case: tuple[str, dict[str, Origin]]):
    model, changes = case
    try:
        settings = resolve({"model.name": Origin(model, "flag --model")}, changes)
        train_settings.from_dict(settings.section("train"))
        entry(model).config(2, settings["model.size"], **settings.model_changes)
    except RegardError as error:
        refusal = str(error)
    else:
        refusal = ""
    assert "\n" not in refusal


@pytest.mark.parametrize("key", ["data.text", "data.label", "data.tag"])
def test_a_column_may_be_told_by_its_number(key):
    assert resolve(read_assignments([f"{key}=2"]))[key] == "2"
    assert resolve(read_assignments([f'{key}="2"']))[key] == "2"
    with pytest.raises(UsageError, match="expected str"):
        resolve(read_assignments([f"{key}=true"]))
