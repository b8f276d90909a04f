"""Seconds of looking at a large CSV, and of answering one beside answering the same texts in memory; peers beside them.

    python benchmarks/files.py [--rows 2000000] [--texts 50000] [--repeats 5] [--only inspect,predict]

inspect   a file of ROWS rows with quoted texts, some with quotes and line ends in them, and a label; each row of the
          table is a whole process, imports included.
predict   the share of the speed that is left when TEXTS texts come from a CSV and answers go to one: seconds of the
          same texts in memory, divided by those of the file. Both in one process, turn by turn.

Seconds are those of the clock and of the processor; of a busy machine the latter tell more.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import regard
from regard.run.answer_file import predict_file

WORDS = [f"word{number}" for number in range(3000)]
GOOD, BAD = ("wonderful", "great", "lovely"), ("awful", "dull", "boring")
READERS = {
    "regard inspect": [sys.executable, "-m", "regard", "inspect", "{}"],
    "pandas.read_csv": [sys.executable, "-c", "import pandas; print(len(pandas.read_csv('{}')))"],
    "polars.read_csv": [sys.executable, "-c", "import polars; print(len(polars.read_csv('{}')))"],
    "csv.reader, counting": [
        *(sys.executable, "-c"),
        "import csv; print(sum(1 for _ in csv.reader(open('{}', newline='', encoding='utf-8'))))",
    ],
}
MODELS: dict[str, dict[str, Any]] = {
    "naive_bayes": {},
    "linear": {},
    "classifier": {"size": "tiny", "budget": "10s"},
}
LEARNT = 8_000  # rows that the runs are trained on


def rows(count: int, least: int, most: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Texts of so many words with their labels; every fiftieth has quotes and a line end in it."""
    draw = random.Random(seed)
    for number in range(count):
        is_good = draw.random() < 0.5
        words = draw.choices(WORDS, k=draw.randint(least, most))
        words[0] = draw.choice(GOOD if is_good else BAD)
        yield " ".join(words) + (' "so"\nit went' if number % 50 == 0 else ""), "pos" if is_good else "neg"


def write(path: Path, count: int, least: int, most: int) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(("text", "label"))
        writer.writerows(rows(count, least, most))
    return path


def of_process(command: list[str]) -> tuple[float, float]:
    """Seconds of the clock and of the processor that a process takes."""
    before, begin = os.times(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    wall, after = time.perf_counter() - begin, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def of_call(call: Callable[[], Any]) -> tuple[float, float]:
    begin, used = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begin, time.process_time() - used


def inspected(folder: Path, count: int, repeats: int) -> None:
    path = write(folder / "large.csv", count, 4, 9)
    print(f"\n{count:,} rows, {path.stat().st_size / 1e6:.0f} MB, {repeats} repeats: median (least to most)\n")
    print("| reader | seconds | processor seconds |\n| --- | --- | --- |")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in READERS}
    for _ in range(repeats):
        for name, command in READERS.items():
            module = name.partition(".")[0]
            if module in ("pandas", "polars") and importlib.util.find_spec(module) is None:
                continue
            times[name].append(of_process([word.format(path) for word in command]))
    for name, found in times.items():
        if found:
            print(f"| {name} | {told([wall for wall, _ in found])} | {told([used for _, used in found])} |", flush=True)


def predicted(folder: Path, count: int, repeats: int) -> None:
    learnt = write(folder / "learnt.csv", LEARNT, 8, 20)
    path, out = write(folder / "asked.csv", count, 8, 20), folder / "answers.csv"
    with path.open(newline="", encoding="utf-8") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    print(f"\n{count:,} texts, the least of {repeats} repeats by the processor; share = seconds in memory / of files\n")
    print("| model | texts a second in memory | file to file | share | median of shares, and each |")
    print("| --- | --- | --- | --- | --- |")
    for name, settings in MODELS.items():
        run = regard.train(name, str(learnt), out=folder / name, quiet=True, **settings)
        run.answers(texts[:500])
        pairs = [
            (of_call(lambda: run.answers(texts)), of_call(lambda: predict_file(run, path, out, force=True)))  # noqa: B023
            for _ in range(repeats)
        ]
        show(name, count, pairs)
    peer(learnt, path, out, texts, count, repeats)


def peer(learnt: Path, path: Path, out: Path, texts: list[str], count: int, repeats: int) -> None:
    """A pipeline of scikit-learn that is read to and written from by pandas."""
    try:
        pandas: Any = importlib.import_module("pandas")
        bags: Any = importlib.import_module("sklearn.feature_extraction.text")
        linear: Any = importlib.import_module("sklearn.linear_model")
        pipelines: Any = importlib.import_module("sklearn.pipeline")
    except ImportError:
        return
    model = pipelines.make_pipeline(bags.TfidfVectorizer(ngram_range=(1, 2)), linear.LogisticRegression())
    frame = pandas.read_csv(learnt)
    model.fit(frame["text"], frame["label"])

    def answered(inputs: Any) -> tuple[Any, Any]:
        chances = model.predict_proba(inputs)
        return model.classes_[chances.argmax(1)], chances.max(1)

    def whole() -> None:
        asked = pandas.read_csv(path)
        asked["answer"], asked["probability"] = answered(asked["text"])
        asked.to_csv(out, index=False)

    pairs = [(of_call(lambda: answered(texts)), of_call(whole)) for _ in range(repeats)]
    show("scikit-learn: tf-idf of words and pairs, logistic regression; pandas", count, pairs)


def show(name: str, count: int, pairs: list[tuple[tuple[float, float], tuple[float, float]]]) -> None:
    shares = [memory[1] / file[1] for memory, file in pairs]
    least = [min(one[side][1] for one in pairs) for side in (0, 1)]
    each = " ".join(f"{share:.2f}" for share in shares)
    speeds = f"{count / least[0]:,.0f} | {count / least[1]:,.0f}"
    print(f"| {name} | {speeds} | {least[0] / least[1]:.2f} | {statistics.median(shares):.2f}: {each} |", flush=True)


def told(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--texts", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="inspect,predict")
    flags = parser.parse_args()
    chosen = flags.only.split(",")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        if "inspect" in chosen:
            inspected(Path(folder), flags.rows, flags.repeats)
        if "predict" in chosen:
            predicted(Path(folder), flags.texts, flags.repeats)


if __name__ == "__main__":
    main()
