"""Importing modules of other people: only because somebody typed it, never because a file says so.

`--import MODULE`, `module:Name` on the command line and in a call from Python come through here. What is read from
files (recipes, run folders, data) is looked up by plain names, and a name with a colon in it is then refused.
Packages that are installed may announce parts of theirs by entry points, a group for each kind of part:
`regard.models`, `regard.mixers`, `regard.tasks`, `regard.looks`, `regard.studies`, `regard.trackers`. An entry point
names a module that registers something when it is imported, as a module of `--import` does. `examples/plugin` is such a
package.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from regard.errors import RegardError, UsageError

LISTED = ("regard.models", "regard.mixers", "regard.tasks", "regard.looks", "regard.studies")
_loaded: set[str] = set()
_imported: set[str] = set()


def typed_name(text: str) -> str:
    """The plain name behind what a person typed; of `module:name` the module is imported first, so that it registers.

    Settings after a question mark, as `compare` takes them, stay.
    """
    name, mark, settings = text.partition("?")
    module, _, plain = name.rpartition(":")
    if module:
        import_module(module)
    return f"{plain}{mark}{settings}"


def import_module(module: str) -> ModuleType:
    """Import a module that registers something, from the environment or, where it has none such, the current folder.

    The current folder comes last on the path, so that nothing in it takes the place of another module, and stays there
    only when the module came from it.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"{module!r} is no name of a module; write such as my_module or my_package.my_module")
    try:
        here = os.getcwd()
    except OSError:
        raise UsageError(f"{module}: the current folder is gone or closed to you; change into another") from None
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    found = None
    try:
        found = importlib.import_module(module)
        _imported.add(module)
        return found
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise UsageError(f"no module {module!r} here or in the environment") from None
        raise UsageError(f"importing {module} failed: {error}; install what it needs") from error
    except RegardError:
        raise
    except Exception as error:
        raise UsageError(f"importing {module} failed: {type(error).__name__}: {error}") from error
    finally:
        if added and not (found is not None and _found_in(found, here)):
            sys.path.remove(here)


def imported() -> list[str]:
    """The modules that were imported by name, for other processes to do the same."""
    return sorted(_imported)


def is_announced() -> bool:
    """Whether parts from outside are there to be listed: of installed packages, or imported by name."""
    return bool(_imported) or any(entry_points(group=group) for group in LISTED)


def load_entry_points(group: str) -> None:
    """Import what installed packages announce under a group, such as `regard.models`; once for each group."""
    if group in _loaded:
        return
    _loaded.add(group)  # before anything is imported, which may ask for names itself
    for point in entry_points(group=group):
        try:
            point.load()
        except Exception as error:
            _loaded.discard(group)
            told = error if isinstance(error, RegardError) else f"{type(error).__name__}: {error}"
            raise UsageError(f"the entry point {point.name} = {point.value} of {group} failed: {told}") from error


def _found_in(module: ModuleType, folder: str) -> bool:
    """Whether a module was found by that entry of the path: as many folders below it as its name has parts.

    An environment below the current folder is another entry.
    """
    places = getattr(module, "__path__", None) or [getattr(module, "__file__", None)]
    depth = module.__name__.count(".")
    above = [Path(os.path.abspath(place)).parents for place in places if place]
    return any(len(folders) > depth and folders[depth] == Path(folder) for folders in above)
