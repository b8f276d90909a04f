"""The pages of the API reference: which names stand on which page. Their text are the docstrings."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypeGuard

ABOUT = {
    "core": ("The contract", "What a sequence model is: state, mixer, stack, tap, context, config."),
    "laws": ("The laws", "What every mixer and model must keep, as `regard check` runs it."),
    "tasks": ("Tasks", "What a kind of data is learnt for: one file a task."),
    "mixers": ("Mixers", "How positions exchange information, one idea a file."),
    "layers": ("Layers", "What happens at one position."),
    "models": ("Models", "One paper a file, assembled of mixers and layers."),
    "decoding": ("Decoding", "How texts are drawn, searched and scored, on states alone."),
    "explain": ("Explain", "Looks at what a model does, and the views that they make."),
}


def api_pages(source: Path) -> dict[str, str]:
    """The pages by their place on the site."""
    made = {f"api/{package}.md": _package(source, package, *ABOUT[package]) for package in ABOUT}
    rows = "".join(
        f"| [{title}]({package}.md) | `regard.{package}` | {about} |\n" for package, (title, about) in ABOUT.items()
    )
    made["api/index.md"] = (
        "# API reference\n\nFrom the docstrings. [Python](../python.md) shows the verbs in use. Shapes: `B` batch, `T` "
        "target or query length, `S` source or key length, `D` width, `H` heads, `K` width of a head, `F` inner width, "
        "`V` vocabulary, `N` state size, `C` senses, `W` window, `L` layers.\n\n| | module | |\n| --- | --- | --- |\n"
        f"{rows}\n## The public names\n\n{_public(source)}"
    )
    return made


def _public(source: Path) -> str:
    """What `import regard` gives, under the names that it gives them: here, or a link to the page of its package."""
    homes = next(
        ast.literal_eval(node.value)
        for node in _tree(source, "regard").body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_HOMES"
    )
    rows, entries = list[str](), list[str]()
    for name in sorted((name for name in homes if not name.startswith("_")), key=str.lower):
        module, own = _defined(source, homes[name])
        package = module.split(".")[1]
        anchor = f"{package}.md#{module}.{own}" if package in ABOUT else f"#{module}.{own}"
        rows.append(f"| [`regard.{name}`]({anchor}) | {_first_line(source, module, own)} |\n")
        if package not in ABOUT:
            entries.append(_entry(module, own, f"regard.{name}"))
    return "| name | |\n| --- | --- |\n" + "".join(rows) + "\n" + "".join(entries)


def _first_line(source: Path, module: str, name: str) -> str:
    told = [ast.get_docstring(node) or "" for node in _tree(source, module).body if _is_named(node, name)]
    return told[0].partition("\n")[0] if told else ""


def _is_named(node: ast.stmt, name: str) -> TypeGuard[ast.ClassDef | ast.FunctionDef]:
    return isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name


def _tree(source: Path, module: str) -> ast.Module:
    path = source.parent / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _entry(module: str, name: str, heading: str) -> str:
    options = {"heading": heading, "toc_label": heading, "heading_level": 3}
    told = "".join(f"      {key}: {value}\n" for key, value in options.items())
    return f"::: {module}.{name}\n    options:\n{told}\n"


def _defined(source: Path, home: str) -> tuple[str, str]:
    """The module in which a name is defined, followed through the packages that hand it on."""
    module, _, name = home.partition(":")
    tree = _tree(source, module)
    for node in tree.body if not any(_is_named(one, name) for one in tree.body) else ():
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _defined(source, f"{node.module}:{alias.name}")
    return module, name


def _package(source: Path, package: str, title: str, about: str) -> str:
    """All modules of a package whose names do not begin with a line, one after the other."""
    modules = [path for path in sorted((source / package).rglob("*.py")) if path.stem != "__init__"]
    told = [f"::: {'.'.join(('regard', *path.relative_to(source).with_suffix('').parts))}\n" for path in modules]
    return f"# {title}\n\n{about}\n\n" + "\n".join(told)
