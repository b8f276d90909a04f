"""Recipes: settings of a run in a TOML file.

It has the three tables data, model and train and, at the top, at most one `extends` naming a recipe to start from: a
file beside it, or one of those that come with the package, which have names (`regard list`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from regard.errors import UsageError, nearest
from regard.run.settings import SECTIONS, Layer, Origin
from regard.storage.regular import NotRegular, TooLarge, read_regular
from regard.training.track import names_in

FILES = (("data", "path"), ("data", "valid"), ("data", "cache"), ("train", "start"))
LARGEST_RECIPE = 1 << 16
SHIPPED, ENDING = Path(__file__).parent / "recipes", ".toml"


def read_recipe(path: str | Path) -> Layer:
    """The settings of a recipe, by its path or by the name of one that comes with the package, and of those it extends.

    A file of that name in the working folder is the recipe.
    """
    return _read(_found(Path(), str(path)), seen=())


def shipped() -> dict[str, str]:
    """The recipes that come with the package: the first line of each by its name."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(SHIPPED.glob(f"*{ENDING}"))}
    return {name: text.partition("\n")[0].lstrip("# ") for name, text in found.items()}


def shipped_text(name: str) -> str:
    """What stands in a recipe of the package."""
    if name not in shipped():
        raise UsageError(f"there is no recipe {name!r} in the package{nearest(name, shipped())}")
    return (SHIPPED / f"{name}{ENDING}").read_text(encoding="utf-8")


def _found(folder: Path, named: str) -> Path:
    """A file where there is one, else the recipe of the package that has such a name."""
    path = folder / named
    return SHIPPED / f"{named}{ENDING}" if named in shipped() and not path.exists() else path


def _read(path: Path, seen: tuple[Path, ...]) -> Layer:
    where = f"recipe {path.stem if path.parent == SHIPPED else path}"
    resolved = path.resolve()
    if resolved in seen:
        raise UsageError(f"{where}: extends itself through {' -> '.join(p.name for p in (*seen, resolved))}")
    table = _parse(path, where)
    parent = table.pop("extends", None)
    layer: Layer = {}
    if parent is not None:
        if not isinstance(parent, str):
            raise UsageError(f"{where}: extends names one recipe, found {parent!r}")
        layer = _read(_found(path.parent, parent), (*seen, resolved))
    for section, values in table.items():
        if section not in SECTIONS:
            raise UsageError(f"{where}: unknown section {section!r}{nearest(section, (*SECTIONS, 'extends'))}")
        if not isinstance(values, dict):
            raise UsageError(f"{where}: [{section}] is a table of settings, found {section} = {values!r}")
        for key, value in values.items():
            if isinstance(value, dict):
                raise UsageError(f"{where}: {section}.{key}: a recipe has two levels, found a third")
            names_file = (section, key) in FILES and not str(value).startswith(("hash:", "tail:"))
            names_file |= (section, key) == ("data", "target") and (path.parent / str(value)).exists()
            if (section, key) == ("train", "track") and names_in(str(value)) != str(value):
                raise UsageError(
                    f"{where}: train.track names trackers; their options are typed: --track NAME:KEY=VALUE"
                )
            layer[f"{section}.{key}"] = Origin(_beside(path, value) if names_file else value, where)
    return layer


def _parse(path: Path, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read_regular(path, LARGEST_RECIPE).decode("utf-8"))
    except (NotRegular, TooLarge) as error:
        raise UsageError(f"{where}: {error.strerror}; a recipe is a TOML file of settings") from None
    except FileNotFoundError:
        named = "" if path.suffix else nearest(path.name, shipped())
        raise UsageError(f"{where}: no such file; `regard new {path}` writes one to start from{named}") from None
    except IsADirectoryError:
        raise UsageError(f"{where}: is a folder, not a TOML file") from None
    except NotADirectoryError:
        raise UsageError(f"{where}: a part of this path is a file, not a folder") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:  # beside what is no TOML, numbers of thousands of digits
        raise UsageError(f"{where}: {error}") from None


def _beside(recipe: Path, data: Any) -> Any:
    """A path in a recipe is meant from the recipe's folder."""
    if not isinstance(data, str) or data == "-" or ":" in data.partition("/")[0]:
        return data
    # Of pairs two files, joined by a comma.
    parts = [data] if (recipe.parent / data).exists() else data.split(",")
    return ",".join(str(recipe.parent / Path(part).expanduser()) for part in parts)
