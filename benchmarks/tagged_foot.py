"""Accuracy, F1 of spans and fit seconds of the fitted taggers, of the CRF beside crfsuite, and of the neural tagger.

    python benchmarks/tagged_foot.py DATA_FOLDER [--only ewt,wnut17] [--strength 0.1] [--steps 2400] [--seeds 3]

DATA_FOLDER holds ud_english_ewt/ and wnut17/; scores are those of the validation parts. A fit is all that happens from
words to weights. crfsuite, where it is installed, is given the features that ours keeps, by name, and the same penalty;
its seconds are those of handing them over and of training. One thread; seconds are those of the processor, so that
others on the machine do not count.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.core.context import Context
from regard.core.fitted import FitSettings, Nobody
from regard.data.example import ExampleData, Tagged, column
from regard.data.ragged import in_batches, ragged
from regard.data.rows import TagRows
from regard.data.tagged import read_tagged
from regard.evaluation.tagging import TaggingReport, tagging_report
from regard.fitting.crf import kept
from regard.fitting.grams import Vocabulary
from regard.fitting.word_features import Met, Table, sentences_of, tables
from regard.models.crf import CrfConfig
from regard.models.hmm import HmmConfig
from regard.models.most_frequent import MostFrequentConfig
from regard.models.word_tagger import WordTaggerConfig
from regard.tasks.tag_decoding import best_tags, bio_chain, keeps_bio
from regard.tasks.vocabulary import letters

FILES = {
    "ewt": ("ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-dev.conllu.gz"),
    "wnut17": ("wnut17/train.conll.gz", "wnut17/dev.conll.gz"),
}


@dataclass(frozen=True)
class Data:
    """Sentences to fit on and to be judged by."""

    train: Sequence[Tagged]
    valid: Sequence[Tagged]

    @property
    def classes(self) -> list[str]:
        return sorted(set(chain.from_iterable(column(self.train, "tags"))))

    def given(self) -> ExampleData[Any, Tagged]:
        place = {name: number for number, name in enumerate(self.classes)}
        words = ragged([0] * len(tags) for tags in column(self.train, "tags"))
        tags = ragged([place[tag] for tag in tags] for tags in column(self.train, "tags"))
        return ExampleData(TagRows(words, tags), self.train)


def own(data: Data, config: WordTaggerConfig) -> tuple[TaggingReport, float, str]:
    """Scores, seconds and what is to be said of one of ours."""
    model: Any = config.build()
    given = data.given()
    start = time.process_time()
    facts = model.fit(given, FitSettings(), Nobody())
    seconds = time.process_time() - start
    words, classes = list(column(data.valid, "words")), data.classes
    allowed = bio_chain(classes) if keeps_bio(column(data.train, "tags")) else None
    ids, found = letters(words), dict[int, list[str]]()
    for rows in in_batches(ids.sizes.tolist()):
        tokens, lengths = ids.padded(rows, 0)
        best = best_tags(model, model(tokens, None, Context(lengths=lengths))[0], lengths, allowed)
        found |= {
            int(row): [classes[tag] for tag in one[: len(words[row])]] for row, one in zip(rows, best, strict=True)
        }
    report = tagging_report(list(column(data.valid, "tags")), [found[row] for row in range(len(words))])
    return report, seconds, str(facts["told"])


def attributes(found: Sequence[Table], names: Vocabulary, sizes: np.ndarray) -> Iterator[list[list[str]]]:
    """The names of the features of each word, sentence by sentence."""
    rows = [
        np.split(table.rows.columns + table.first, table.rows.starts[1:-1]) if len(table.rows) else []
        for table in found
    ]
    place = 0
    for size in sizes.tolist():
        yield [
            [names.names[column] for table, own in zip(found, rows, strict=True) for column in own[table.index[at]]]
            for at in range(place, place + size)
        ]
        place += size


def crfsuite(data: Data, strength: float) -> tuple[TaggingReport, float, str] | None:
    try:
        pycrfsuite: Any = importlib.import_module("pycrfsuite")
    except ImportError:
        return None
    words, names = list(column(data.train, "words")), Vocabulary()
    counts, default = Counter(chain.from_iterable(words)), CrfConfig(2)
    given = sentences_of(words)
    found, columns = kept(
        tables(given, Met(counts, own=1), names.added, lambda: len(names)), default.min_words, default.min_pairs
    )
    names = names.kept(columns)
    features = list(attributes(found, names, given.sizes))
    trainer = pycrfsuite.Trainer(verbose=False)
    start = time.process_time()
    for one, tags in zip(features, column(data.train, "tags"), strict=True):
        trainer.append(one, list(tags))
    trainer.set_params({"c1": 0.0, "c2": strength})
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.crfsuite")
        trainer.train(file)
        seconds = time.process_time() - start
        tagger = pycrfsuite.Tagger()
        tagger.open(file)
        asked = sentences_of(column(data.valid, "words"))
        unseen = [table.with_columns(table.rows.columns, 0) for table in tables(asked, Met(counts), names.found, int)]
        answers = [tagger.tag(one) for one in attributes(unseen, names, asked.sizes)]
    steps = (trainer.logparser.last_iteration or {}).get("num")
    return tagging_report(list(column(data.valid, "tags")), answers), seconds, f"{steps} steps"


def neural(train: Path, valid: Path, steps: int, count: int) -> Iterator[tuple[str, tuple[TaggingReport, float, str]]]:
    """The neural tagger as it is by default: `count` seeds in one ensemble, each by itself and all in the mean."""
    import regard

    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        where = {"out": f"{folder}/run", "quiet": True, "valid": str(valid), "threads": 1}
        run = regard.train("tagger", str(train), budget=f"{steps * count}steps", ensemble=count, **where)
        seconds = time.process_time() - start
        parts = sorted((Path(folder) / "run" / "parts").iterdir())
        for seed, part in enumerate(parts):
            yield f"tagger, seed {seed}", (_judged(regard.load(part)), seconds / count, f"{steps} steps")
        told = f"{sum(one.numel() for one in run.model.parameters()):,} parameters"
        yield f"tagger, ensemble of {count}", (_judged(run), seconds, told)


def _judged(run: Any) -> TaggingReport:
    scores = dict(run.evaluate().scores)
    return TaggingReport(scores["accuracy"], scores["tokens"], span_f1=scores.get("span_f1"))


def show(name: str, model: str, found: tuple[TaggingReport, float, str] | None) -> None:
    if found is not None:
        report, seconds, told = found
        f1 = "" if report.span_f1 is None else f"{100 * report.span_f1:.1f}"
        print(f"| {name} | {model} | {100 * report.accuracy:.2f} | {f1} | {seconds:.1f} | {told} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="ewt,wnut17")
    parser.add_argument("--strength", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=0, help="also train the neural tagger for so many steps")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of it, each told by itself and all in the mean")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | model | accuracy | span F1 | fit CPU s | what it took |")
    print("| --- " * 6 + "|")
    for name in options.only.split(","):
        train, valid = (options.folder / file for file in FILES[name])
        data = Data(read_tagged(str(train)), read_tagged(str(valid)))
        n = len(data.classes)
        show(name, "most_frequent", own(data, MostFrequentConfig(n)))
        show(name, "hmm", own(data, HmmConfig(n)))
        show(name, "crf", own(data, CrfConfig(n, strength=options.strength)))
        show(name, "crfsuite, the same features", crfsuite(data, options.strength))
        if "O" in data.classes:
            best = CrfConfig(n, strength=0.1, pairs="all", min_words=2, outside=1.0)
            show(name, "crf strength=0.1 pairs=all min_words=2 outside=1", own(data, best))
        for label, found in neural(train, valid, options.steps, options.seeds) if options.steps else ():
            show(name, label, found)


if __name__ == "__main__":
    main()
