"""Conversations: the text that a model reads is the one that transformers renders, and no template gets further."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from foreign_models import hf, tiny_folder
from regard.data.chat import rendered
from regard.errors import CheckpointError, UsageError
from regard.run.chat import conversation

pytest.importorskip("jinja2")

PLAIN = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}bot:{% endif %}"
)
TURNS = (
    "{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}{%- set first = messages[0]['content'] + '\\n' -%}"
    "{%- set rest = messages[1:] -%}{%- else -%}{%- set first = '' -%}{%- set rest = messages -%}{%- endif -%}\n"
    "{%- for message in rest -%}\n    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{ raise_exception('roles must alternate') }}{%- endif -%}\n{{ '<turn>' + message['role'] + '\n' }}"
    "{{ (first if loop.first else '') + message['content'] | trim }}{{ '</s>\n' }}\n{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<turn>model\n' }}{%- endif -%}"
)
TOOLS = (
    "{%- set ns = namespace(last=-1) %}\n{%- for m in messages %}\n  {%- if m.role == 'user' %}"
    "{%- set ns.last = loop.index0 %}{%- endif %}\n{%- endfor %}\n"
    "{% for m in messages %}{% if loop.index0 > ns.last %}{% break %}{% endif %}{{ m | tojson }}{{ '\n' }}{% endfor %}"
    "{%- if tools is not none %}{{ tools | tojson(indent=2) }}{% endif %}"
    "{% generation %}{{ messages[-1].content[:3] }}{% endgeneration %}{{ eos_token }}\n\n"
)
TEMPLATES = {"plain": PLAIN, "turns": TURNS, "tools": TOOLS}
TALK: list[dict[str, str]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": ' the <s> cat é "{{ 7 * 7 }}" {% raw %} '},
    {"role": "assistant", "content": "sat\n"},
    {"role": "user", "content": "on ☃ <|im_end|>"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    where = tmp_path_factory.mktemp("hub") / "llama"
    tiny_folder(where, "llama", "byte_level")
    return where


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_conversation_is_the_text_and_the_tokens_of_transformers(name: str, folder: Path, tmp_path: Path) -> None:
    theirs: Any = hf.AutoTokenizer.from_pretrained(folder)
    theirs.chat_template = TEMPLATES[name]
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    for talk in (TALK, TALK[1:2]):
        expected = theirs.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        assert rendered(TEMPLATES[name], talk, special) == expected
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": TEMPLATES[name]}))
    regard.import_run(folder, tmp_path / "run")
    run = regard.load(tmp_path / "run", device="cpu")
    from dataclasses import replace

    ids = replace(run.writer, in_turns=True).prompt_ids(conversation(run, TALK)).tolist()
    assert ids == theirs.apply_chat_template(TALK, add_generation_prompt=True)["input_ids"]
    assert isinstance(run.chat("the cat", max_tokens=5, temperature=0.0), str)


def test_an_answer_ends_with_its_turn_and_a_file_of_its_own_goes_first(folder: Path, tmp_path: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}!", encoding="utf-8")
    generation = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    changed = generation | {"eos_token_id": [1, 3]}
    (folder / "generation_config.json").write_text(json.dumps(changed), encoding="utf-8")
    run = regard.load(folder, device="cpu")
    (folder / "chat_template.jinja").unlink()
    (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    assert conversation(run, "the cat") == "the cat!"
    assert (run.tokenizer.eos_id, run.tokenizer.turn_id) == (1, 3)
    head: Any = run.model.head
    with torch.no_grad():
        head.weight.zero_()
        head.weight[3] = run.model.encode(run.writer.prompt_ids("the cat!")[None][:, 1:])[0, -1] * 50  # pyright: ignore
    assert run.chat("the cat", max_tokens=5, temperature=0.0) == ""


HOSTILE = {
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "unsafe",
    "{{ cycler.__init__.__globals__.os.system('true') }}": "unsafe",
    "{{ (messages | map(attribute='__class__') | list)[0].__base__ }}": "refused",
    "{{ messages.append(1) }}": "unsafe",
    "{% include '/etc/passwd' %}": "no loader",
    "{{ 'a' * 10 ** 10 }}": "memory",
    "{% for i in range(99999) %}{{ 'a' * 99 }}{% endfor %}": "longer than",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "2 seconds",
    "{{ messages": "TemplateSyntaxError",
}


@pytest.mark.parametrize("template", HOSTILE)
def test_a_template_that_wants_more_than_text_is_refused_in_a_line(template: str) -> None:
    with pytest.raises(CheckpointError, match=HOSTILE[template]) as caught:
        rendered(template, "the cat", {})
    assert "\n" not in str(caught.value)


def test_a_run_without_a_template_says_so(folder: Path, tmp_path: Path) -> None:
    tiny_folder(tmp_path / "plain", "llama", "byte_level")
    with pytest.raises(UsageError, match="has no chat template"):
        regard.load(tmp_path / "plain", device="cpu").chat("hello")


def without_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of PYTHONPATH alone with jinja2, and a child that has no packages of its own."""
    added = tmp_path / "added"
    for name in ("jinja2", "markupsafe"):
        shutil.copytree(Path(str(find_spec(name).origin)).parent, added / name)  # pyright: ignore[reportOptionalMemberAccess]
    (added / "datetime.py").write_text("raise SystemExit('shadowed')")
    (added / "babel.py").write_text(f"open({str(tmp_path / 'reached')!r}, 'w')")
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda argv, **how: run([argv[0], "-S", *argv[1:]], **how))
    monkeypatch.syspath_prepend(str(added))
    for name in ("jinja2", "markupsafe"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return added


def test_jinja2_is_found_where_this_process_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = without_site(tmp_path, monkeypatch)
    assert rendered(PLAIN, "hi", {}) == "user: hi\nbot:"
    # Nothing else of that folder is reached, and what a template may do is what it might before.
    with pytest.raises(CheckpointError, match=r"the chat template is refused: .*unsafe"):
        rendered("{{ messages.__class__.__mro__ }}{{ ''.__class__.__base__.__subclasses__() }}", "hi", {})
    assert not (tmp_path / "reached").exists()
    (added / "markupsafe" / "__init__.py").write_text("raise ImportError('no part of it')")
    with pytest.raises(UsageError, match="rendered by jinja2: no part of it; pip install jinja2"):
        rendered(PLAIN, "hi", {})


def test_what_lies_in_the_working_folder_is_no_jinja2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = without_site(tmp_path, monkeypatch)
    (added / "jinja2" / "__init__.py").write_text(f"open({str(tmp_path / 'reached')!r}, 'w')")
    monkeypatch.chdir(added)
    with pytest.raises(UsageError, match="rendered by jinja2: No module named 'jinja2'; pip install jinja2"):
        rendered(PLAIN, "hi", {})
    assert not (tmp_path / "reached").exists()
