"""The file of a view, without a browser: what it allows, what it holds, and that words stay words."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from regard.explain.render import file as script
from regard.explain.render.file import as_data, to_html
from regard.explain.render.notebook import bundle, frame
from regard.explain.view import Bars, Heat, Note, View

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> \u2028 \u2029 ' \" & \ud800"


class Tags(HTMLParser):
    """Elements with their attributes and what is in scripts and styles, as a browser would split a file."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.texts.append((self.found[-1][0], data))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def view(text: str = "plain") -> View:
    return View(
        text, [Note(text=text), Bars(names=[text], values=[1.0], title=text)], about={"text": text}, name="view"
    )


def test_the_policy_allows_the_one_script_and_the_one_style_sheet_and_no_network() -> None:
    page = to_html(view())
    policy = next(a["content"] for a in Tags(page).named("meta") if a.get("http-equiv"))
    assert policy is not None
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    assert set(parts) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    for element, name in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert parts[name] == f"'sha256-{digest}'"


def test_words_of_a_view_never_become_elements() -> None:
    plain, hostile = Tags(to_html(view())), Tags(to_html(view(HOSTILE)))
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in plain.found]
    assert len(hostile.named("script")) == 2
    to_html(view(HOSTILE)).encode("utf-8")  # half a surrogate pair does not stop it from being written


def test_the_data_of_a_file_is_the_view() -> None:
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    page = to_html(View(HOSTILE, [Heat(weights=weights, rows=["a", HOSTILE], columns=["a", "b"])], name="attention"))
    data = re.search(r'id="regard-view">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    told = json.loads(data[1])
    assert told["title"] == HOSTILE
    assert told["panels"][0]["rows"] == ["a", HOSTILE]
    packed = told["panels"][0]["weights"]
    assert np.frombuffer(base64.b64decode(packed["data"]), "<f4").reshape(packed["shape"]).tolist() == weights.tolist()


def test_data_in_a_script_is_ascii_without_the_sign_that_ends_it() -> None:
    told = as_data([HOSTILE, "é"])
    assert told.isascii()
    assert "<" not in told
    assert json.loads(told) == [HOSTILE, "é"]


def test_modules_are_joined_each_after_those_it_imports() -> None:
    joined = script.file_script()
    places = {name: joined.index(f"const {name}_js = ") for name in re.findall(r"const (\w+)_js = \(", joined)}
    for name, place in places.items():
        for needed in re.findall(r"= (\w+)_js;", joined[place : joined.index("\n})();", place)]):
            assert places[needed] < place, f"{name} imports {needed}"
    assert not re.search(r"^\s*(import|export)\b", joined, re.MULTILINE)
    assert script.widget_module().count("export default") == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"one": 'import { a } from "./two.js";\n', "two": 'import { b } from "./one.js";\n'}, "import each other"),
        ({"one": 'import * as two from "./two.js";\n'}, "of another form"),
        ({"one": "export default 1;\n"}, "of another form"),
        ({"one": 'const end = "</script>";\n'}, "its own end"),
    ],
)
def test_a_module_that_cannot_be_joined_is_refused(
    files: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "_read", lambda name: files[name.removesuffix(".js")])
    with pytest.raises(ValueError, match=message):
        script._modules("one")


def test_no_module_puts_text_in_as_html_or_calls_elsewhere() -> None:
    for file in script.WEB.iterdir():
        source = file.read_text(encoding="utf-8")
        for namespace in ("http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"):
            source = source.replace(namespace, "")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "http:",
            "https:",
            "//cdn",
        ):
            assert word not in source, f"{file.name}: {word}"


def test_a_notebook_gets_html_and_text_whatever_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    shown = bundle(view("words"))
    assert set(shown) == {"text/plain", "text/html"}
    assert "words" in shown["text/plain"]
    assert shown["text/html"].startswith("<iframe sandbox=")


def test_the_frame_of_a_notebook_holds_the_file_in_one_attribute() -> None:
    (tag,) = Tags(frame(view(HOSTILE.replace("\ud800", "")))).found
    assert tag[0] == "iframe"
    assert tag[1]["sandbox"] == "allow-scripts"
    assert tag[1]["srcdoc"] == to_html(view(HOSTILE.replace("\ud800", "")))


def test_a_widget_asks_the_view_again_and_tells_failures() -> None:
    pytest.importorskip("anywidget")
    from dataclasses import replace

    from regard.errors import UsageError
    from regard.explain.render.notebook import widget

    def remake(asked: dict[str, int]) -> View:
        if asked["head"] > 2:
            raise UsageError("there are heads 1 and 2")
        return replace(view(f"head {asked['head']}"), remake=remake)

    shown = widget(remake({"head": 1}))
    assert shown.view["title"] == "head 1"
    shown.asked = {"number": 1, "values": {"head": 2}}
    assert (shown.view["title"], shown.failure) == ("head 2", "")
    shown.asked = {"number": 2, "values": {"head": 9}}
    assert (shown.view["title"], shown.failure) == ("head 2", "there are heads 1 and 2")
    assert "application/vnd.jupyter.widget-view+json" in bundle(remake({"head": 1}))
