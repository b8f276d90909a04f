"""Encoder-decoders of other programs as runs of the pairs task: what they write is what transformers writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from foreign_models import TRANSLATORS
from piece_models import translator_folder
from regard.errors import CheckpointError
from regard.tasks.pairs import PairProcessor

SOURCES = ["the cat sat", "dog", "the dog sat the cat"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(3)
    whole = tmp_path_factory.mktemp("hub")
    for name in TRANSLATORS:
        translator_folder(whole / name, name)
    return whole


def written_by(theirs: Any, processor: PairProcessor, text: str, **options: Any) -> list[int]:
    """What transformers writes after the tokens that every text begins with."""
    opening, pad = processor.target.opening, processor.target.pad_id
    source = torch.from_numpy(processor.read(text))[None]
    begun = torch.tensor([opening])
    found = theirs.generate(
        source, decoder_input_ids=begun, max_new_tokens=8, do_sample=False, bad_words_ids=[[pad]], **options
    )
    ids = found[0, len(opening) :].tolist()
    return ids[: ids.index(processor.target.eos_id)] if processor.target.eos_id in ids else ids


@pytest.mark.parametrize("name", TRANSLATORS)
def test_an_imported_encoder_decoder_is_a_run_like_any_other(name: str, folders: Path, tmp_path: Path) -> None:
    found = regard.import_run(folders / name, tmp_path / "run")
    assert (found.task, found.architecture) == ("pairs", name.partition("-")[0])
    run = regard.load(tmp_path / "run", device="cpu")
    from transformers import AutoModelForSeq2SeqLM

    theirs = AutoModelForSeq2SeqLM.from_pretrained(folders / name).eval()
    processor: Any = run.processor
    for beam in (None, 3):
        options: dict[str, Any] = {} if beam is None else {"beam": beam}
        searched = {} if beam is None else {"num_beams": beam, "length_penalty": 0.0, "early_stopping": False}
        answers = run.answers(SOURCES, max_tokens=8, **options)
        for text, answer in zip(SOURCES, answers, strict=True):
            expected = written_by(theirs, processor, text, **searched)
            assert len(expected) > 1
            assert answer.text == processor.target.decode(expected).replace("\n", " ").replace("\r", " ")
    rows = "".join(f"{text}\tder Hund\n" for text in SOURCES)
    (tmp_path / "my.tsv").write_text("source\ttarget\n" + rows, encoding="utf-8")
    assert run.evaluate(str(tmp_path / "my.tsv")).scores["chrf"] >= 0
    assert "alignment" in run.views
    for view in ("alignment", "attention"):
        assert run.explain("the cat", view=view, target="die Katze").to_dict()


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_pair_is_scored_as_transformers_scores_it(name: str, folders: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM

    theirs = AutoModelForSeq2SeqLM.from_pretrained(folders / name).eval()
    run = regard.load(folders / name, device="cpu")
    processor: Any = run.processor
    source, target = torch.from_numpy(processor.read("the cat")), torch.from_numpy(processor.write("die Katze"))
    end = torch.tensor([processor.target.eos_id])
    labels = torch.cat([target, end])
    read = torch.cat([torch.tensor([processor.target.start_id]), target])
    with torch.no_grad():
        logits = theirs(input_ids=source[None], decoder_input_ids=read[None]).logits[0]
    expected = logits.log_softmax(-1).gather(-1, labels[:, None])[:, 0]
    scored = run.score("the cat\tdie Katze")
    torch.testing.assert_close(torch.tensor(scored.score.log_probs), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(regard.errors.UsageError, match="SOURCE and TARGET with a TAB between"):
        run.score("the cat")


def test_marian_reads_each_side_by_its_own_pieces_and_ids_of_a_list(folders: Path) -> None:
    run = regard.load(folders / "marian", device="cpu")
    processor: Any = run.processor
    vocabulary = json.loads((folders / "marian" / "vocab.json").read_text(encoding="utf-8"))
    names = lambda ids: [next(name for name, number in vocabulary.items() if number == one) for one in ids]  # noqa: E731
    assert names(processor.read("the die").tolist()) == ["▁the", "▁", "d", "i", "e", "</s>"]
    assert names(processor.write("the die").tolist()) == ["▁", "t", "h", "e", "▁die"]
    assert names(processor.read(">>deu<< the #").tolist()) == [">>deu<<", "▁the", "▁", "<unk>", "</s>"]
    assert processor.target.decode(processor.write("die Katze saß").tolist()) == "die Katze saß"
    assert processor.target.start_id == vocabulary["<pad>"] == processor.target.pad_id


def test_a_folder_that_does_not_say_where_writing_begins_is_refused(folders: Path, tmp_path: Path) -> None:
    for name in TRANSLATORS:
        folder = tmp_path / name
        translator_folder(folder, name)
        for file in ("config.json", "generation_config.json"):
            content = json.loads((folder / file).read_text(encoding="utf-8"))
            content.pop("decoder_start_token_id", None)
            (folder / file).write_text(json.dumps(content), encoding="utf-8")
        for number in (None, -1, 1 << 40):
            content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            told = content | ({} if number is None else {"decoder_start_token_id": number})
            (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
            with pytest.raises(CheckpointError, match=f"decoder_start_token_id: {number} is no token"):
                regard.import_run(folder, tmp_path / "run")
        assert not (tmp_path / "run").exists()
