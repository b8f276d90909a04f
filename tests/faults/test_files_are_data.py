"""Files are data, never code: no name in a file that is read causes an import."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from calling import TEXT, call_here, call_process, environment
from hostile import places, replaced, vouch, write

from regard.core import plugin, registry
from regard.errors import UsageError

PAYLOAD = "from pathlib import Path\nPath(__file__).with_name('PWNED').touch()\n"
TINY = ("--size", "tiny", "--device", "cpu", "--quiet", "--set", "train.batch_size=4", "--set", "train.length=16")
NAME = "pay_load:x"
TOY = """
from regard.core.registry import register
from regard.core.stack import StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.mixers.lstm import LstmConfig
from regard.models.language import LanguageModelConfig

@register("{0}", sizes={{"tiny": {{"d_model": 8}}, "small": {{}}}}, paper="none")
def {0}(vocab_size: int, *, d_model: int = 16) -> LanguageModelConfig:
    return LanguageModelConfig(EmbeddingConfig(vocab_size, d_model), StackConfig(d_model, (LstmConfig(d_model),)))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a module in it that leaves a mark when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    monkeypatch.setattr(plugin, "_imported", set(plugin.imported()))  # other processes are told to import the same
    (tmp_path / "pay_load.py").write_text(PAYLOAD)
    (tmp_path / "my.txt").write_text(TEXT)
    return tmp_path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A neural run, a counted one and a comparison."""
    home = tmp_path_factory.mktemp("made")
    (home / "my.txt").write_text(TEXT)
    for model in ("lstm", "ngram"):
        path = str(home / model)
        assert (
            call_here("train", str(home / "my.txt"), "--model", model, "--budget", "2steps", "--out", path, *TINY).code
            == 0
        )
    command = (
        "compare",
        str(home / "my.txt"),
        "--models",
        "ngram",
        "--budget",
        "2steps",
        "--out",
        str(home / "c"),
        "-q",
    )
    assert call_here(*command).code == 0
    assert call_here("export", str(home / "ngram"), str(home / "m.arpa")).code == 0
    return home


def require_untouched(here: Path) -> None:
    assert not (here / "PWNED").exists()
    assert "pay_load" not in sys.modules
    assert str(here) not in sys.path
    assert "" not in sys.path


RECIPES = [
    f'[model]\nname = "{NAME}"\n',
    'extends = "parent.toml"\n',
    f'[data]\ntask = "{NAME}"\n',
    f'[data]\npath = "{NAME}"\n',
    f'[data]\ntokens = "{NAME}"\n',
    f'[model]\nencoder = "{NAME}"\nname = "classifier"\n',
    f'[train]\noptimiser = "{NAME}"\n',
    f'[train]\nstart = "{NAME}"\n',
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_imports_nothing(here: Path, recipe: str):
    (here / "r.toml").write_text(recipe)
    (here / "parent.toml").write_text(RECIPES[0])
    for verb in ("train", "compare"):
        models = () if verb == "train" else ("--models", "ngram")
        outcome = call_here(verb, "my.txt", "--recipe", "r.toml", "--budget", "1steps", "--out", "x", "-q", *models)
        assert outcome.code in (0, 2, 3, 4), outcome.err
    require_untouched(here)


def test_a_recipe_that_names_a_module_says_what_to_do(here: Path):
    (here / "r.toml").write_text(RECIPES[0])
    outcome = call_here("train", "my.txt", "--recipe", "r.toml")
    assert outcome.code == 2
    assert "--import MODULE" in outcome.err
    assert outcome.err.count("\n") == 1


def verbs(run: str) -> list[tuple[str, ...]]:
    return [
        ("show", run), ("generate", run, "the", "--max-tokens", "1"), ("score", run, "the cat"), ("evaluate", run),
        ("explain", run, "the cat sat"), ("export", run, "out.arpa"), ("train", "--resume", "--out", run, "-q"),
        ("train", "my.txt", "--from", run, "--out", "y", "-q", "--budget", "1steps"),
    ]  # fmt: skip


@pytest.mark.sweep(2)
@pytest.mark.parametrize("model", ["lstm", "ngram"])
def test_no_name_in_a_run_folder_imports_anything(here: Path, made: Path, model: str):
    """Every text of every JSON file, at once, is the name of a module; then one after the other for loading."""
    for file in ("config.json", "tokenizer.json"):
        shutil.rmtree(here / "run", ignore_errors=True)
        shutil.copytree(made / model, here / "run")
        sound = json.loads((here / "run" / file).read_bytes())
        texts = [place for place in places(sound) if isinstance(_at(sound, place), str)]
        named = [("model", "name"), ("model", "config", "kind"), ("data", "task"), ("data", "path"), ("kind",)]
        for place in [place for place in named if place in texts]:
            write(here / "run", file, replaced(sound, place, NAME))
            for command in verbs("run"):
                assert call_here(*command).code in (0, 2, 3, 4), command
        for place in [place for place in texts if place[0] not in ("origins", "environment")]:
            write(here / "run", file, replaced(sound, place, NAME))
            assert call_here("show", "run").code in (0, 4), place
    require_untouched(here)


def test_no_name_in_metrics_samples_checkpoints_comparisons_and_data_imports_anything(here: Path, made: Path):
    shutil.copytree(made / "lstm", here / "run")
    for file in ("metrics.jsonl", "samples.txt"):
        (here / "run" / file).write_text(json.dumps({"step": 1, "loss": 1.0, "kind": NAME, NAME: NAME}) + "\n")
    vouch(here / "run", "metrics.jsonl", "samples.txt")
    point = next((here / "run" / "checkpoints").iterdir())
    write(point, "state.json", json.loads((point / "state.json").read_bytes()) | {"environment": {"python": NAME}})
    for command in verbs("run"):
        assert call_here(*command).code in (0, 2, 3, 4), command
    shutil.copytree(made / "c", here / "c")
    for file in ("comparison.json", "state.json"):
        (here / "c" / file).write_text(
            json.dumps({"model.name": NAME, NAME: {"digest": NAME, "outcome": {"path": NAME}}})
        )
        assert call_here("compare", "my.txt", "--models", "ngram", "--budget", "2steps", "--out", "c", "-q").code in (
            2,
            4,
        )
    (here / "m.arpa").write_text((made / "m.arpa").read_text().replace("the", NAME))
    assert call_here("score", "m.arpa", "the cat").code in (0, 3)
    files = {
        "a.tsv": f"{NAME}\tx\n",
        "a.csv": f"time,{NAME}\n1,2\n",
        "a.jsonl": json.dumps({"text": NAME, "label": NAME}) + "\n",
    }
    files |= {"a.conll": f"{NAME} {NAME}\n", "a.txt": f"{NAME} world:{NAME} import pay_load\n" * 9}
    for file, text in files.items():
        (here / file).write_text(text * 20)
        assert call_here("train", file, "--budget", "1steps", "--out", "z", *TINY).code in (0, 2, 3)
        shutil.rmtree(here / "z", ignore_errors=True)
    require_untouched(here)


def test_the_registry_imports_nothing_for_a_name_with_a_colon(here: Path):
    with pytest.raises(UsageError, match=r"--import MODULE"):
        registry.entry(NAME)
    require_untouched(here)


@pytest.mark.parametrize(
    "words",
    [("--import", "{0}", "show", "{1}"), ("show", "{0}:{1}"), ("train", "my.txt", "--model", "{0}:{1}"),
     ("train", "my.txt", "--set", "model.name={0}:{1}")],
    ids=lambda words: " ".join(words),
)  # fmt: skip
def test_what_is_typed_imports_and_the_run_keeps_the_plain_name(here: Path, words: tuple[str, ...], request):
    number = abs(hash(request.node.name)) % 10**8
    module, name = f"outside_{number}", f"toy_{number}"
    (here / f"{module}.py").write_text(TOY.format(name))
    more = () if "show" in words else ("--out", "run", *TINY, "--budget", "2steps")
    outcome = call_here(*(word.format(module, name) for word in words), *[word for word in more if word != "--quiet"])
    assert outcome.code == 0, outcome.err
    assert sys.path[-1] == str(here)
    if "train" in words:
        config = json.loads((here / "run" / "config.json").read_text())
        assert config["model"]["name"] == name
        registry._entries.pop(name)
        again = call_here("train", "--resume", "--out", "run", "--budget", "3steps")
        assert again.code == 4
        assert "--import MODULE" in again.err
        assert "config.json" in again.err


def test_an_entrant_that_is_typed_imports_and_keeps_its_settings(here: Path):
    (here / "an_entrant.py").write_text("")
    assert plugin.typed_name("an_entrant:lstm?n_layers=3&data.path=a:b") == "lstm?n_layers=3&data.path=a:b"
    assert "an_entrant" in sys.modules


def test_the_current_folder_takes_the_place_of_no_module(here: Path):
    """It comes last while something is imported from it, and is gone again when the module came from elsewhere."""
    (here / "colorsys.py").write_text(PAYLOAD)
    assert plugin.import_module("colorsys").__file__ != str(here / "colorsys.py")
    assert str(here) not in sys.path
    assert not (here / "PWNED").exists()


@pytest.mark.parametrize("name", ["mod_of_env", "pkg_of_env", "pkg_of_env.part"])
def test_the_current_folder_leaves_the_path_when_the_module_is_of_an_environment_below_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    site = here / "venv" / "site-packages"
    (site / "pkg_of_env").mkdir(parents=True)
    (site / "mod_of_env.py").touch()
    (site / "pkg_of_env" / "__init__.py").touch()
    (site / "pkg_of_env" / "part.py").touch()
    monkeypatch.syspath_prepend(site)
    for known in [one for one in sys.modules if one.partition(".")[0] in ("mod_of_env", "pkg_of_env")]:
        monkeypatch.delitem(sys.modules, known)
    plugin.import_module(name)
    assert str(here) not in sys.path


@pytest.mark.parametrize("name", ["pkg_of_here", "pkg_of_here.part"])
def test_the_current_folder_stays_last_on_the_path_when_the_module_came_from_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    (here / "pkg_of_here").mkdir()
    (here / "pkg_of_here" / "__init__.py").touch()
    (here / "pkg_of_here" / "part.py").touch()
    monkeypatch.setattr(sys, "path", list(sys.path))
    for known in [one for one in sys.modules if one.startswith("pkg_of_here")]:
        monkeypatch.delitem(sys.modules, known)
    plugin.import_module(name)
    assert sys.path[-1] == str(here)


def test_a_current_folder_that_is_gone_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m regard list"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 6
    assert done.stderr == "regard: error: the current folder is gone or closed to you; change into another\n"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the current folder is gone"):
        plugin.import_module("some_module")


@pytest.mark.parametrize("name", ["", ".x", "a/b", "x y", "no_such_module_at_all"])
def test_a_module_that_is_none_is_one_line(here: Path, name: str):
    outcome = call_here("--import", name, "list")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1


def test_a_module_that_fails_is_one_line_and_no_bug_of_ours(here: Path):
    (here / "broken_module.py").write_text("1 / 0\n")
    outcome = call_here("--import", "broken_module", "list")
    assert outcome.code == 2
    assert "importing broken_module failed: ZeroDivisionError" in outcome.err


def test_python_m_regard_runs_no_module_of_the_current_folder(here: Path):
    for name in ("json", "torch", "typing", "typer", "re", "tomllib", "__future__", "numpy", "traceback", "difflib"):
        (here / f"{name}.py").write_text(PAYLOAD)
    outcome = call_process("list", "--json", cwd=here)
    assert outcome.code == 0, outcome.err
    assert not (here / "PWNED").exists()


def _at(value, place):
    for key in place:
        value = value[key]
    return value
