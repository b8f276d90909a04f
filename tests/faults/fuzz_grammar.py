"""What is fuzzed with: files of every kind, a tiny run of every task, and commands drawn from the flags there are."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = (
    "".join(
        f"the {a} sat on the {b} and sang to the {c} .\n"
        for a in ["cat", "dog", "fox"]
        for b in ["mat", "log"]
        for c in ["hen", "owl", "elk", "bee", "ant"]
    )
    * 3
)
HOSTILE_WORDS = [
    "",
    " ",
    "-",
    "--",
    "é" * 50,
    "x" * 5000,
    "../..",
    "/dev/null",
    "/dev/zero",
    "nan",
    "-1",
    "1e400",
    "\x1b]0;title\x07",
    "a\nb",
    "*",
    "~",
    "$(ls)",
    "%s%n",
    "{}",
    "[]",
    "null",
    "\u202e",
]


class Ground:
    """Files of every kind and a tiny run of every task, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "text.txt").write_text(TEXT)
        (folder / "valid.txt").write_text(TEXT[:900])
        (folder / "pairs.tsv").write_text("".join(f"a b {n}\tb a {n}\n" for n in range(60)))
        (folder / "labels.csv").write_text(
            "text,label\n" + "".join(f"good film {n},{'pos' if n % 2 else 'neg'}\n" for n in range(60))
        )
        (folder / "tags.conll").write_text("".join(f"dog\tN\nruns{n}\tV\n\n" for n in range(60)))
        hours = (f"2024-01-{1 + n // 24:02d} {n % 24:02d}:00,{n % 24 + n * 37 % 101}\n" for n in range(24 * 28))
        (folder / "series.csv").write_text("time,load\n" + "".join(hours))
        (folder / "recipe.toml").write_text('[model]\nname = "rnn"\n[train]\nlr = 1e-3\n')
        (folder / "bad.toml").write_text('[model]\nname = "pay:x"\n')
        (folder / "empty.txt").write_text("")
        (folder / "latin.txt").write_bytes("déjà vu ".encode("latin-1") * 200)
        (folder / "bytes.bin").write_bytes(bytes(range(256)) * 40)
        self.data = [
            "text.txt",
            "pairs.tsv",
            "labels.csv",
            "tags.conll",
            "series.csv",
            "world:stories?train=60&valid=10",
            "world:reviews?train=60&valid=10",
            "world:tags?train=60&valid=10",
            "world:dates?train=60&valid=10",
        ]
        self.odd = [
            "empty.txt",
            "latin.txt",
            "bytes.bin",
            ".",
            "nowhere.txt",
            "world:",
            "world:nope",
            "world:stories?train=-1",
            "world:stories?x=1",
            "recipe.toml",
            "runs",
            "/dev/null",
            "/dev/zero",
            "-",
        ]
        self.runs: list[str] = []

    def train(self, call: Callable[[list[str]], tuple[int, str, str]]) -> None:
        small = ["--size", "tiny", "--budget", "2steps", "--set", "train.batch_size=4", "--quiet"]
        short = ["--set", "train.length=16"]
        wanted = {
            "gpt": ["text.txt", *short],
            "lstm": ["text.txt", *short],
            "mamba": ["text.txt", *short],
            "backpack": ["text.txt", "--set", "data.tokens=words", *short],
            "bert": ["text.txt", *short],
            "transformer": ["pairs.tsv"],
            "seq2seq": ["pairs.tsv"],
            "classifier": ["labels.csv"],
            "tagger": ["tags.conll"],
            "forecaster": [
                "series.csv",
                "--set",
                "data.history=48",
                "--set",
                "data.horizon=12",
                "--set",
                "model.lags=[1,2]",
            ],
        }
        for name, words in wanted.items():
            code, _, error = call(["train", *words, "--model", name, "--out", f"runs/{name}", *small])
            assert code == 0, (name, error)
            self.runs.append(f"runs/{name}")
        code, _, error = call(["train", "text.txt", "--model", "ngram", "--out", "runs/ngram", "--quiet"])
        assert code == 0, error
        call(["export", "runs/ngram", "counted.arpa"])
        self.runs += ["runs/ngram", "counted.arpa"]


class Grammar:
    """Commands drawn from the parameters that the program itself declares."""

    def __init__(self, ground: Ground, seed: int) -> None:
        import typer

        from regard.cli.main import application
        from regard.core.registry import MODELS
        from regard.run.settings import data_settings, train_settings

        self.ground, self.chance = ground, random.Random(seed)
        self.commands: dict[str, Any] = typer.main.get_command(application()).commands  # pyright: ignore[reportAttributeAccessIssue]
        self.models = list(MODELS)
        self.keys = [f"data.{k}" for k in data_settings()] + [f"train.{k}" for k in train_settings()]
        self.weights = {
            "train": 8,
            "generate": 8,
            "explain": 8,
            "score": 4,
            "evaluate": 5,
            "show": 4,
            "export": 2,
            "new": 1,
            "list": 1,
            "reproduce": 1,
            "check": 1,
            "compare": 1,
            "lab": 1,
        }

    def command(self) -> list[str]:
        name = self.chance.choices(list(self.weights), list(self.weights.values()))[0]
        words = [name]
        for one in self.commands[name].params:
            if one.opts[0].startswith("-"):
                if (
                    one.name in ("debug", "plugins", "yes_really", "everything", "opens", "help")
                    or self.chance.random() > 0.1
                ):
                    continue
                words.append(one.opts[0])
                if not one.is_flag:
                    words.append(self.value(one.name))
            elif self.chance.random() < 0.97:
                words.append(self.value(one.name))
        return self.kept_small(name, words)

    def kept_small(self, name: str, words: list[str]) -> list[str]:
        """Nothing that takes minutes: what is fuzzed is what is refused."""
        free = f"out/{self.chance.randrange(10**9)}"
        if name == "train":
            words += [
                "--size",
                "tiny",
                "--budget",
                self.chance.choice(["1steps", "2steps", "0.2s"]),
                "--set",
                "train.length=16",
            ]
            words += [] if "--out" in words else ["--out", free]
        if name == "compare":
            words += [
                "--models",
                self.chance.choice(["ngram", "ngram,rnn", "gpt", "classifier"]),
                "--budget",
                "4steps",
                "--out",
                free,
            ]
        if name == "generate":
            words += ["--max-tokens", "8"]
        if name == "evaluate":
            words += ["--limit", "40"]
        if name == "reproduce":
            words += ["--list"]
        if name == "check":
            words = [name, self.chance.choice(["nope", "pay:x", "", "mean", "window"])]
        if name == "lab":
            words = [name, "nowhere", "--port", self.chance.choice(["x", "-1", "99999", "1"])]
        return words

    def value(self, name: str) -> str:
        chance, ground = self.chance, self.ground
        if chance.random() < 0.04:
            return chance.choice(HOSTILE_WORDS)
        pools: dict[str, list[str]] = {
            "run": ground.runs,
            "runs": ground.runs,
            "start": ground.runs,
            "compare": ["the dog sat", "a cat"],
            "data": ground.data if chance.random() < 0.85 else ground.odd,
            "valid": ["hash:0.2", "tail:0.2", "valid.txt", "hash:2"],
            "model": self.models,
            "models": ["ngram,rnn"],
            "size": ["tiny", "tiny", "small", "huge"],
            "task": ["text", "labelled", "auto", "series"],
            "target": [*ground.runs, *self.models, "runs", "load", "label", "nope"],
            "recipe": ["recipe.toml", "recipe.toml", "bad.toml", "text.txt"],
            "budget": ["1steps", "2steps", "0.1s", "-1s", "5 minutes"],
            "out": [f"out/{chance.randrange(10**9)}", ground.runs[0], "text.txt", "a b/c d"],
            "sets": [self.setting()],
            "memory": ["1M", "64M", "x"],
            "spill": [".", "nowhere"],
            "resume": ["last", "auto", "never"],
            "device": ["cpu", "auto", "cuda", "tpu"],
            "seed": ["0", "7", "-1", "x"],
            "text": ["the cat sat", "a b", "", "dog runs", "é"],
            "prompt": ["the cat", "", "a [MASK] b", "series.csv", "dog"],
            "length_penalty": ["gnmt", "power", "none", "x"],
            "view": ["attention", "steps", "gates", "nope", "heads", "drop", "forgetting", "next"],
            "side": ["source", "target", "x"],
            "reduce": ["mean", "max", "x"],
            "word": ["the", "cat"],
            "scale": ["the:1=2", "x"],
            "file": [f"out/{chance.randrange(10**9)}.toml"],
            "html": ["out/a.html"],
            "png": ["out/a.png"],
            "svg": ["out/a.svg"],
            "ids": ["mask", "p13"],
            "stop": [".", "the"],
        }
        return chance.choice(pools.get(name, ["1", "1", "2", "2", "3", "0.5", "0.9", "1", "0", "-1", "1e9", "x"]))

    def setting(self) -> str:
        rare = ["model.n_layers", "model.d_model", "model.order", "nonsense", "train.nope"]
        values = ["0", "1", "2", "-1", "0.1", "true", "x", "[]", "1e18", "words", "bfloat16", "muon", "line"]
        return f"{self.chance.choice([*self.keys, *rare])}={self.chance.choice(values)}"
