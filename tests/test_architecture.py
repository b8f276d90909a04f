"""How the package is built: which room may import which, what lies at the root, one door for parts of every kind."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from regard import tasks
from regard.core import config, registry
from regard.core.stack import MixerConfig
from regard.explain import look
from regard.explain import registry as explain
from regard.run import readers
from regard.studies import registry as studies

SOURCE = Path(tasks.__file__).parents[1]
# Beside the rooms.
ROOT = {"__init__.py", "__main__.py", "errors.py", "py.typed"}
# A room imports from those on lines above its own, and on its own line from those to the left of it. `Run` has explain
# for one of its verbs; explain looks at what a task calls `Trained`, and knows no run.
ORDER = (
    ("terminal", "charts", "storage"),
    ("core",),
    ("kernels", "layers", "mixers"),
    ("ngram", "fitting", "models"),
    ("data", "decoding", "evaluation", "training"),
    ("tasks",),
    ("explain",),
    ("run",),
    ("studies",),
    ("lectures",),
    ("serving",),
    ("interop",),
    ("bench",),
    ("cli",),
)
# Rooms that know less than their line would let them: these alone.
ALONE = {
    "terminal": set[str](),
    "charts": {"terminal"},
    "storage": set[str](),
    "core": set[str](),
    "kernels": {"core"},
    "laws": {"core"},
    "ngram": {"core", "storage"},
    "fitting": {"core", "storage"},
    "models": {"core", "kernels", "layers", "mixers", "ngram", "fitting"},
}
# Rooms that others would let them know, and which they do not.
NEVER = {
    "data": {"mixers", "models", "ngram"},
    "decoding": {"layers", "mixers", "models", "ngram"},
    "evaluation": {"kernels", "layers", "mixers", "models", "ngram"},
    "serving": {"studies"},
    "interop": {"studies", "serving"},
    "cli": {"kernels", "layers", "mixers"},
}
# What Windows, macOS or Linux have alone. Such a module is imported where it is used, after a look whether it is there.
PLATFORM_MODULES = {
    *("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "spwd", "syslog", "readline", "curses", "posix"),
    *("msvcrt", "winreg", "winsound", "nt", "_winapi", "_posixsubprocess"),
}
PLATFORM_NAMES = {
    *("os.fork", "os.geteuid", "os.getuid", "os.sysconf", "os.statvfs", "os.pread", "os.pwrite", "os.set_blocking"),
    *("os.mkfifo", "os.killpg", "os.getpgid", "os.setsid", "os.sched_getaffinity", "os.getloadavg", "os.uname"),
    *("signal.SIGHUP", "signal.SIGKILL", "signal.SIGPIPE", "signal.SIGUSR1", "signal.SIGUSR2", "signal.SIGALRM"),
    *("signal.SIGQUIT", "signal.SIGCHLD", "signal.SIGBREAK", "signal.alarm", "signal.pthread_sigmask"),
    *("select.poll", "select.epoll", "select.kqueue", "socket.AF_UNIX", "socket.MSG_DONTWAIT"),
}
# Files that look whether such a name is there, a concern each.
ASKS_THE_SYSTEM = {
    *("storage/system.py", "storage/regular.py", "core/memory.py", "serving/connection.py", "kernels/compiled_file.py")
}
READS_TEXT = (".read_text", ".write_text", ".TextIOWrapper", ".fdopen")
LONGEST_FILE, LONGEST_FUNCTION = 300, 50
# A kernel is one function.
ONE_FUNCTION = {
    f"kernels/{name}_triton.py"
    for name in ("convolution", "decode_attention", "decode_linear", "draw", "selective_scan", "ssd")
}
NAMES = frozenset(tasks.BUILT_IN)
# The files of tasks; what worlds and models say of themselves, which task they are for; and the laws, which make up
# something to read for every kind of model.
FREE = ("tasks", "data/worlds", "models", "laws")
# What asks for a task by its name.
CALLS = ("task_named", "world_of", "shape_of")


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of the package by its place."""
    files = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The rooms of regard that a file imports from, at any depth and also for types alone.

    A name in the list of a registry is no import: what stands there is a name, not what is behind it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports say the whole name"
            modules = [node.module or ""]
            if node.module == "regard":
                modules = [f"regard.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, module.split(".")[1]) for module in modules if module.startswith("regard."))


def rooms() -> set[str]:
    return {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}


def allowed(room: str) -> set[str]:
    """The rooms that one may import from."""
    if room in ALONE:
        return ALONE[room]
    below = set[str]({"laws"} if room in ("bench", "cli", "lectures") else ())
    for line in ORDER:
        if room in line:
            below |= set(line[: line.index(room)])
            return below - NEVER.get(room, set())
        below |= set(line)
    raise AssertionError(f"{room} is a new room: say in ORDER where it stands")


def crossing() -> dict[tuple[str, str], list[str]]:
    """From which room to which something is imported, and where."""
    found: dict[tuple[str, str], list[str]] = {}
    for place, tree in trees().items():
        room, inside, _ = place.partition("/")
        for line, other in imported(tree) if inside else ():
            if other in rooms() and other != room:
                found.setdefault((room, other), []).append(f"{place}, line {line}: {room} imports {other}")
    return found


def test_only_these_files_lie_at_the_root():
    assert {path.name for path in SOURCE.iterdir() if path.is_file()} == ROOT
    assert rooms() == {room for line in ORDER for room in line} | {"laws"}


def test_imports_go_one_way():
    found = [where for (room, other), places in crossing().items() if other not in allowed(room) for where in places]
    assert found == []


def test_no_two_rooms_import_each_other():
    pairs = set(crossing())
    assert {pair for pair in pairs if pair[::-1] in pairs} == set()


def test_a_wrong_direction_is_seen():
    assert [other for _, other in imported(ast.parse("def f():\n    from regard.cli import main"))] == ["cli"]
    assert [other for _, other in imported(ast.parse("from regard import errors, tasks"))] == ["errors", "tasks"]
    assert "run" not in allowed("tasks")
    assert "layers" not in allowed("laws")
    assert "cli" not in allowed("bench")


def test_a_file_is_read_in_one_sitting_and_a_function_fits_on_a_screen():
    long = [place for place in trees() if (SOURCE / place).read_text(encoding="utf-8").count("\n") > LONGEST_FILE]
    for place, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and place not in ONE_FUNCTION:
                lines = (node.end_lineno or 0) - node.lineno + 1
                long += [f"{place}, {node.name}: {lines} lines"] if lines > LONGEST_FUNCTION else []
    assert long == []


def others() -> list[str]:
    """Every file that is to know no task by its name."""
    return [place for place in trees() if not place.startswith(tuple(f"{part}/" for part in FREE))]


def named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a name of a task stands for a task: compared or called with, set as one, or in a list of several."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            asks = any("task" in word or word == "kind" for word in words(node))
            found = strings(node) if asks else []
        elif isinstance(node, ast.Call):
            found = [part for argument in node.args for part in strings(argument)] if called(node) in CALLS else []
            found += [part for one in node.keywords if "task" in (one.arg or "") for part in strings(one.value)]
        elif isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set):
            inside = node.keys if isinstance(node, ast.Dict) else node.elts
            found = [one.value for one in inside if isinstance(one, ast.Constant) and one.value in NAMES]
            found = found if len(set(found)) > 1 else []
        else:
            continue
        yield from ((node.lineno, name) for name in found)


def strings(tree: ast.AST) -> list[str]:
    return [part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and part.value in NAMES]


def words(tree: ast.AST) -> list[str]:
    """The names of variables and attributes."""
    found = [part.id for part in ast.walk(tree) if isinstance(part, ast.Name)]
    return found + [part.attr for part in ast.walk(tree) if isinstance(part, ast.Attribute)]


def called(node: ast.Call) -> str:
    return (words(node.func) or [""])[-1]


def test_no_file_but_its_own_holds_the_name_of_a_task():
    found = [f"{place}, line {line}: {name}" for place in others() for line, name in named(trees()[place])]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        'if task == "labelled": pass',
        'if run.task.name in ("text", "masked"): pass',
        'HEADED = {"labelled": "classifier", "tagged": "tagger"}',
        'world_of(data, "pairs")',
        'plan(task="series")',
    ],
)
def test_a_name_is_found_where_it_stands_for_a_task(code: str):
    assert list(named(ast.parse(code)))


@pytest.mark.parametrize("name", tasks.BUILT_IN)
def test_a_built_in_task_registers_as_one_from_outside_does(name: str):
    module = importlib.import_module(tasks.BUILT_IN[name])
    assert "@register_task" in Path(str(module.__file__)).read_text(encoding="utf-8")
    task = tasks.task_named(name)
    assert (task.name, type(task).__module__) == (name, tasks.BUILT_IN[name])
    assert task.model
    assert task.ladder
    assert task.world


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_built_in_model_registers_as_one_from_outside_does(name: str):
    entry = registry.entry(name)
    assert (entry.name, entry.preset.__module__) == (name, registry.MODELS[name])
    assert entry.task in tasks.names()
    assert "tiny" in entry.sizes


def test_built_in_mixers_are_known_by_their_kind_alone():
    registry.load_kinds()
    kinds = {cls.__module__ for cls in config.KINDS.values() if issubclass(cls, MixerConfig)}
    assert {module for module in kinds if module.startswith("regard.mixers.")} == {
        f"regard.mixers.{name}" for name in registry.MIXERS
    }
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (SOURCE / "mixers").glob("[a-z]*.py")}
    assert {name for name, text in texts.items() if "(MixerConfig, kind=" in text} <= set(registry.MIXERS)


def test_built_in_looks_register_as_those_from_outside_do():
    every, known = explain.looks(), look.registered_looks()
    for name in explain.FILES:
        assert known[f"regard.explain.looks.{name}"], name
    assert {path.stem for path in (SOURCE / "explain" / "looks").glob("[a-z]*.py")} == set(explain.FILES)
    assert len(every) == sum(map(len, known.values()))


@pytest.mark.parametrize("name", studies.BUILT_IN)
def test_a_built_in_study_registers_as_one_from_outside_does(name: str):
    study = type(studies.study(name))
    assert (study.id, study.__module__) == (name, f"regard.studies.claims.{name}")
    assert studies._studies[name] is study


def test_formats_register_as_those_from_outside_do(tmp_path: Path):
    assert readers.reader_of(tmp_path) is None
    for module in readers.MODULES:
        assert "register_reader(" in (SOURCE / f"{module.removeprefix('regard.').replace('.', '/')}.py").read_text()


def loaded(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What a file imports as soon as it is imported itself, also within a condition or a class, for running."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, (node.module or "").split(".")[0]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from loaded(node)


def platform_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names of `os`, `signal` and such that some systems lack, asked for without a look whether they are there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in PLATFORM_NAMES or name.startswith("os.O_"):
                yield node.lineno, name


def without_encoding(tree: ast.AST) -> Iterator[int]:
    """Texts that are read or written in whatever encoding the system has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (
            ast.unparse(node.func) == "open" or ast.unparse(node.func).endswith(READS_TEXT)
        ):
            is_binary = any(isinstance(one, ast.Constant) and "b" in str(one.value) for one in node.args[1:])
            if not is_binary and not any(one.arg in ("encoding", None) for one in node.keywords):
                yield node.lineno


def test_no_module_needs_a_system_to_be_imported():
    found = [
        f"{place}, line {line}: {name}"
        for place, tree in trees().items()
        for line, name in (*loaded(tree), *platform_names(tree))
        if name in PLATFORM_MODULES or ("." in name and place not in ASKS_THE_SYSTEM)
    ]
    assert found == []


def test_every_text_says_its_encoding():
    found = [f"{place}, line {line}" for place, tree in trees().items() for line in without_encoding(tree)]
    assert found == []


@pytest.mark.parametrize(
    "code", ["import fcntl", "try:\n    import resource\nexcept ImportError: pass", "x = os.O_SYNC"]
)
def test_what_only_some_systems_have_is_seen(code: str):
    tree = ast.parse(code)
    assert {name for _, name in loaded(tree)} & PLATFORM_MODULES or list(platform_names(tree))
    assert list(without_encoding(ast.parse("Path('a').read_text() + open('b').read()"))) == [1, 1]
    assert not list(without_encoding(ast.parse("open('a', 'rb')\nPath('a').read_text(encoding='utf-8')")))


def test_entry_points_have_one_door():
    """Whatever kind of part is announced, what imports it is written once."""
    asks = [place for place, tree in trees().items() if "entry_points" in names_used(tree)]
    assert asks == ["core/plugin.py"]


def names_used(tree: ast.AST) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return set(words(tree)) | {alias.name for node in imports for alias in node.names}
