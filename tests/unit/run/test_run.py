"""The Python verbs."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from hostile import write

import regard
from regard.data.tokenizer import file as tokenizer_file
from regard.errors import UsageError
from regard.run import run as run_module
from regard.tasks.text import TextDataset
from regard.training import run_folder

TEXT = "".join(
    f"the {a} sat on the {b} and saw {n} birds .\n" for a in ("cat", "dog") for b in ("mat", "log") for n in range(20)
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    folder = tmp_path_factory.mktemp("python")
    (folder / "my.txt").write_text(TEXT, encoding="utf-8")
    return regard.train(
        "gru",
        str(folder / "my.txt"),
        budget="20steps",
        size="tiny",
        out=folder / "gru",
        quiet=True,
        lr=1e-2,
        length=16,
        batch_size=4,
        tokens="words",
        d_model=12,
        device="cpu",
    )


def test_no_public_name_is_hidden_by_a_part_of_the_package():
    rooms = {path.name for path in Path(regard.__file__).parent.iterdir() if path.is_dir()}
    assert not rooms & set(regard.__all__)
    assert {"ngram", "lstm", "gpt"} <= set(regard.model_names())


def test_every_public_name_is_there():
    assert len(regard.__all__) <= 20
    assert all(getattr(regard, name) is not None for name in regard.__all__)
    with pytest.raises(AttributeError, match="trane"):
        _ = regard.trane


def test_train_takes_settings_by_their_key_alone(run: regard.Run):
    assert run.config["train"]["lr"] == 1e-2
    assert run.config["model"]["settings"]["d_model"] == 12
    assert run.config["origins"]["data.tokens"] == "argument"
    assert run.tokenizer.kind == "words"


def test_a_misspelt_setting_names_the_nearest(tmp_path: Path):
    (tmp_path / "x.txt").write_text(TEXT, encoding="utf-8")
    with pytest.raises(UsageError, match="did you mean 'batch_size'"):
        regard.train("gpt", tmp_path / "x.txt", batchsize=3)


def test_keywords_are_settings_of_the_model_that_a_recipe_or_the_run_names(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    recipe = tmp_path / "fnn.toml"
    recipe.write_text('[data]\npath = "my.txt"\n[model]\nname = "fnn"\nsize = "tiny"\n', encoding="utf-8")
    options = {"out": tmp_path / "run", "quiet": True, "window": 3, "device": "cpu"}
    run = regard.train(recipe=recipe, budget="1steps", batch_size=2, length=8, **options)
    assert run.config["model"]["settings"]["window"] == 3
    assert regard.train(resume=True, budget="2steps", **options).config["train"]["budget"] == "2steps"
    with pytest.raises(UsageError, match="n_heads: there is no such setting"):
        regard.train(recipe=recipe, n_heads=2)


def test_a_budget_that_is_a_bare_number_is_told_how_it_is_written(tmp_path: Path):
    with pytest.raises(UsageError, match="did you mean 20s or 20steps"):
        regard.train("lstm", "world:stories", budget=20, out=tmp_path)  # type: ignore[arg-type]


def test_what_is_no_text_and_no_number_is_refused_in_words(run: regard.Run):
    with pytest.raises(UsageError, match="expected a text, found the number 3"):
        run.explain(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_tokens must be at least 1, found None"):
        run.generate("a", max_tokens=None)
    for name in ("temperature", "top_p", "min_p"):
        with pytest.raises(UsageError, match=f"{name} must .*found x"):
            run.generate("a", **{name: "x"})


def test_a_text_and_a_cache_may_be_paths(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    options = {"size": "tiny", "budget": "1steps", "batch_size": 2, "length": 8, "device": "cpu", "quiet": True}
    run = regard.train("dan", tmp_path / "my.txt", out=tmp_path / "run", cache=tmp_path / "kept", **options)
    assert run.config["data"]["cache"] == str(tmp_path / "kept")
    assert any((tmp_path / "kept").iterdir())
    assert regard.load(run.path).evaluate() == run.evaluate()


def test_generate_returns_the_prompt_and_what_follows_in_whole_words(run: regard.Run):
    text = run.generate("the cat", max_tokens=6, seed=1)
    assert text.startswith("the cat ")
    assert "the cat" + "".join(run.stream("the cat", max_tokens=6, seed=1)) == text
    assert text == regard.load(run.path).generate("the cat", max_tokens=6, seed=1)
    with pytest.raises(UsageError, match="did you mean 'top_p'"):
        run.generate("the cat", topp=0.5)


def test_a_beam_refuses_what_only_draws_would_heed(run: regard.Run):
    assert run.generate("the cat", beam=2, max_tokens=3, temperature=1.0, top_k=None)
    with pytest.raises(UsageError, match="leave out temperature, top_k or beam"):
        run.generate("the cat", beam=2, temperature=0.5, top_k=3)


def test_a_text_without_a_source_refuses_what_ranks_by_one(run: regard.Run):
    with pytest.raises(UsageError, match="coverage is of a source"):
        run.generate("the cat", beam=2, coverage=0.2)
    with pytest.raises(UsageError, match="n_best is of texts that have a source"):
        run.generate("the cat", beam=2, n_best=2)


def test_the_smoothing_of_an_ngram_is_that_of_its_counts(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    run = regard.train("ngram", tmp_path / "my.txt", smoothing="witten_bell", out=tmp_path / "r", quiet=True)
    assert run.config["model"]["settings"]["smoothing"] == "witten_bell"


def test_texts_do_not_depend_on_those_beside_them(run: regard.Run):
    prompts = ["the cat", "the dog sat on the", ""]
    together = run.write(prompts, max_tokens=5)
    assert [text.prompt for text in together] == prompts
    for alone, beside in zip(run.write(prompts[:2], max_tokens=5), together, strict=False):
        assert (alone.text, alone.tokens, alone.finish) == (beside.text, beside.tokens, beside.finish)
        assert alone.log_prob == pytest.approx(beside.log_prob, abs=1e-5)


def test_score_is_the_chain_rule(run: regard.Run, capsys: pytest.CaptureFixture[str]):
    scored = run.score("the cat sat")
    assert scored.log_prob == pytest.approx(sum(scored.score.log_probs))
    assert scored.token_texts == ("the", "cat", "sat")
    scored.show()
    assert "log p so far" in capsys.readouterr().out


def test_encode_gives_a_vector_for_every_token(run: regard.Run):
    h = run.encode("the cat sat")
    assert h.shape == (3, 12)
    assert not h.requires_grad
    assert run.encode("the cat").allclose(h[:2], atol=1e-6), "a causal model has not seen what follows"


def test_evaluate_is_the_same_before_and_after_loading(run: regard.Run):
    scores, data = run.evaluate().scores, run.dataset
    assert isinstance(data, TextDataset)
    assert scores["tokens"] == data.valid.tokens
    assert regard.load(run.path).evaluate().scores["loss"] == pytest.approx(scores["loss"], abs=1e-9)


@pytest.mark.parametrize("told", [None, "auto"])
def test_a_run_from_before_there_were_tasks_is_one_of_text(run: regard.Run, tmp_path: Path, told: str | None):
    folder = tmp_path / "old"
    shutil.copytree(run.path, folder)
    config = json.loads((folder / "config.json").read_bytes())
    config["data"].pop("task")
    config["origins"].pop("data.task")
    config["data"] |= {} if told is None else {"task": told}
    write(folder, "config.json", config)
    old = regard.load(folder, device="cpu")
    assert old.task.name == "text"
    assert old.evaluate().scores == regard.load(run.path, device="cpu").evaluate().scores
    assert old.generate("the cat", temperature=0.0) == run.generate("the cat", temperature=0.0)
    assert regard.train(out=folder, resume=True, budget="22steps", quiet=True).task.name == "text"


def test_where_every_token_is_a_character_bits_per_character_are_bits_per_token(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "other.txt").write_text(TEXT[::2], encoding="utf-8")
    options = {"order": 2, "tokens": "chars", "quiet": True}
    counted = regard.train("ngram", tmp_path / "my.txt", documents="line", test=0.5, out=tmp_path / "line", **options)
    world = regard.train("ngram", "world:ab?train=20&valid=9", out=tmp_path / "world", **options)
    reports = [counted.evaluate(part=part) for part in ("valid", "test")]
    reports += [counted.evaluate(str(tmp_path / "other.txt")), counted.evaluate(limit=50), world.evaluate()]
    for report in (one.scores for one in reports):
        assert report["bits_per_character"] == pytest.approx(report["loss"] / math.log(2), rel=1e-12)
        assert report["bits_per_byte"] == report["bits_per_character"]
    whole = regard.train("ngram", tmp_path / "my.txt", out=tmp_path / "whole", **options)
    data, report = whole.dataset, whole.evaluate().scores
    assert isinstance(data, TextDataset)
    ends = data.valid.n_documents
    expected = report["loss"] / math.log(2) * report["tokens"] / (report["tokens"] - ends)
    assert report["bits_per_character"] == pytest.approx(expected, rel=1e-12)
    scored = counted.score("the cat")
    assert scored.bits_per_character == pytest.approx(-scored.log_prob / math.log(2) / 7, rel=1e-12)


@pytest.mark.parametrize("model", ["fnn", "bert"])
def test_a_run_that_is_evaluated_does_not_say_where_anything_is_written(tmp_path: Path, model: str):
    data, cache = tmp_path / "d.txt", tmp_path / "cache"
    data.write_text("".join(f"the dog {i} saw the cat {i % 7} .\n" for i in range(300)))
    settings = {"size": "tiny", "budget": "2steps", "length": 8, "batch_size": 2, "device": "cpu"}
    made = regard.train(model, data, out=tmp_path / "run", cache=cache, documents="line", **settings)
    shutil.rmtree(cache)
    loaded = regard.load(tmp_path / "run", device="cpu")
    assert loaded.evaluate().to_dict() == made.evaluate().to_dict()
    assert not cache.exists()


@pytest.mark.parametrize(("model", "data"), [("fnn", "world:stories"), ("tagger", "world:tags"), ("ngram", "world:ab")])
def test_a_vocabulary_that_is_in_memory_is_not_read_again_after_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, data: str
):
    settings = {"size": "tiny", "budget": "2steps", "length": 8, "batch_size": 2, "device": "cpu", "quiet": True}
    with monkeypatch.context() as patch:
        patch.setattr(tokenizer_file, "from_dict", lambda *_: pytest.fail("read again"))
        made = regard.train(model, f"{data}?train=20&valid=4", out=tmp_path / "run", **settings)
    assert regard.load(tmp_path / "run", device="cpu").evaluate().to_dict() == made.evaluate().to_dict()


def test_a_run_drafts_for_another_with_its_tokenizer_and_the_text_for_itself(run: regard.Run):
    options = {"temperature": 0.0, "max_tokens": 30}
    alone = run.generate("the cat sat", **options)
    assert run.generate("the cat sat", draft="ngram", draft_tokens=6, **options) == alone
    assert run.generate("the cat sat", draft=run.path, **options) == alone
    drafter = run.drafter(run, 3)
    assert "".join(run.stream("the cat sat", draft=drafter, **options)) == alone.removeprefix("the cat sat")
    assert drafter.tally.acceptance == 1
    with pytest.raises(UsageError, match="name a draft"):
        run.generate("the", draft_tokens=3)


def test_no_draft_and_no_number_of_its_tokens_are_no_draft(run: regard.Run):
    options = {"temperature": 0.0, "max_tokens": 5}
    alone = run.generate("the cat sat", **options)
    assert run.generate("the cat sat", draft=None, draft_tokens=None, **options) == alone
    assert run.generate("the cat sat", draft_tokens=None, **options) == alone
    assert run.generate("the cat sat", draft=run.drafter("ngram"), draft_tokens=None, **options) == alone
    assert run.generate("the cat sat", draft="ngram", draft_tokens=None, **options) == alone


def test_a_draft_that_is_named_is_loaded_once_until_its_folder_changes(
    run: regard.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    small, loaded = tmp_path / "small", []
    shutil.copytree(run.path, small)
    load = run_module.load
    monkeypatch.setattr(run_module, "load", lambda *path, **options: loaded.append(path) or load(*path, **options))
    own = regard.load(run.path, device="cpu")
    for _ in range(3):
        own.generate("the cat", max_tokens=3, draft=small)
    assert len(loaded) == 1
    with run_folder.claim(small) as folder:
        folder.publish({run_folder.CONFIG: [(small / run_folder.CONFIG).read_bytes() + b"\n"]})
    own.generate("the cat", max_tokens=3, draft=small)
    assert len(loaded) == 2
