"""The page's modules as one script, for a file and a notebook, which load nothing.

Every module becomes a function that is called once and returns what the module exports, in the order in which they
import each other. Modules keep to two forms, so that no parser is needed: `import { a, b } from "./name.js";`, and
`export` before a function, a class or a constant.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

WEB = files("regard.explain") / "web"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache
def style() -> str:
    """The style sheet."""
    return _read("style.css")


@cache
def file_script() -> str:
    """The script of a file: draws the views that the file holds."""
    return f'(() => {{\n"use strict";\n{_modules("file")}\nfile_js.start();\n}})();\n'


@cache
def widget_module() -> str:
    """The module of a notebook's widget: exports what draws it."""
    return f"{_modules('widget')}\nexport default {{ render: widget_js.render }};\n"


def _modules(entry: str) -> str:
    """The module `entry` and all it imports, each after those it needs."""
    done: dict[str, str] = {}
    _add(entry, done, ())
    joined = "\n".join(done.values())
    if "</script" in joined.lower() or "<!--" in joined:
        raise ValueError(f"{entry}.js: a script in a page cannot hold its own end")
    return joined


def _add(name: str, done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' -> '.join((*above, name))}")
    if name in done:
        return
    source = _read(f"{name}.js")
    for _, needed in IMPORT.findall(source):
        _add(needed, done, (*above, name))
    body = IMPORT.sub(lambda found: f"const {{{found[1]}}} = {found[2]}_js;\n", source)
    exported = EXPORT.findall(body)
    body = EXPORT.sub("", body)
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name}.js: an import or export of another form than those of regard.explain.render.script")
    done[name] = f"const {name}_js = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();"


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")
