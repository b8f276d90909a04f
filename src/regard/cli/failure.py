"""What a failure looks like in a terminal: one line on stderr and a stable exit code.

What is not a failure a person can act on is a bug of ours: the line names its type and asks for `--debug`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from regard.errors import RegardError, ResourceError, Stopped, UsageError, is_out_of_memory
from regard.storage.system import flags
from regard.terminal.table import visible

INTERRUPTED = 130
LONGEST = 1000  # characters of a message
OUT_OF_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO}
VALUE = re.compile(r"Invalid value for '(.*?)'(?: / '.*?')*: (.*)", re.S)
EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.S)
EXPECTED = {
    "valid integer": "a whole number",
    "valid number": "a number",
    "valid float": "a number",
    "greater than or equal to": "{} or more",
    "less than or equal to": "{} or less",
}
TOO_MANY = {errno.EMFILE, errno.ENFILE}


def report(error: BaseException, *, debug: bool) -> int:
    """Print what happened and return the exit code. Ctrl-C has a line, too; other signals have nothing to say."""
    if isinstance(error, BrokenPipeError):
        silence()
        return 0
    if isinstance(error, KeyboardInterrupt):
        if _is_told_by_another():
            return INTERRUPTED
        with contextlib.suppress(OSError):
            print(f"regard: stopped{visible(str(error)) and f'; {visible(str(error))}'}", file=sys.stderr)
        return INTERRUPTED
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    if isinstance(error, OSError) and not can_be_written(sys.stdout):
        silence()
    if debug:
        print(visible("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    known = as_known(error)
    if known is None:
        message = f"unexpected {type(error).__name__}: {error}"
        code, advice = 1, "" if debug else " (a bug of regard; run again with --debug to see where)"
    else:
        message, code, advice = str(known), known.exit_code, ""
    message = visible(" ".join(message.split()))
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]}...{message[-LONGEST // 2 :]}"
    what = "regard" if isinstance(known, Stopped) else "regard: error"
    with contextlib.suppress(OSError):  # stderr may be as full as stdout
        print(f"{what}: {message}{advice}", file=sys.stderr)
    return code


def _is_told_by_another() -> bool:
    """Whether this is one of the processes of a training that have not met yet, of which the first tells."""
    if "WORLD_SIZE" not in os.environ or os.environ.get("LOCAL_RANK", "0") == "0":
        return False
    distributed: Any = sys.modules.get("torch.distributed")
    return distributed is None or not distributed.is_initialized()


@contextlib.contextmanager
def telling(left: Callable[[], str]) -> Iterator[None]:
    """A context in which Ctrl-C says what it leaves behind, where whoever was at work does not say it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or left()) from None


def as_known(error: BaseException) -> RegardError | None:
    """The failure a person can act on behind `error`, or None for a bug of ours."""
    if isinstance(error, RegardError):
        return error
    describe = getattr(error, "format_message", None)
    if describe is not None:  # typer's own usage errors; it vendors click in some versions, so no class is named here
        context = getattr(error, "ctx", None)
        path = getattr(context, "command_path", "regard")
        return UsageError(f"{_in_our_words(describe().rstrip('.'))} (see {path} --help)")
    if is_out_of_memory(error):
        return ResourceError("out of memory; give it less data or shorter texts, or choose a smaller model (--size)")
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return ResourceError("the system starts no more threads; end other programs or raise the limit (ulimit -u)")
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        if error.errno in OUT_OF_SPACE | {errno.EIO} and not where:
            # Whatever else is written says where: what is left is what was printed.
            return ResourceError(f"standard output cannot be written: {(error.strerror or 'refused').lower()}")
        if error.errno == errno.EBADF:
            return ResourceError(f"{where}a stream that is closed, or open for the other direction; redirect it")
        if error.errno in OUT_OF_SPACE:
            return ResourceError(f"{where}no room left on the disk; free some or choose another --out")
        if error.errno in TOO_MANY:
            return ResourceError(f"{where}too many open files; end other programs or raise the limit (ulimit -n)")
        if error.errno in REFUSED:
            return ResourceError(f"{where}{(error.strerror or 'refused').lower()}; choose another path or its rights")
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR):
            return UsageError(f"{where}{(error.strerror or 'bad path').lower()}")
    return None


def _in_our_words(told: str) -> str:
    """What typer says of a value, in this version or another, as the other options say it.

    >>> _in_our_words("Invalid value for '--port': 'abc' is not a valid integer")
    '--port: expected a whole number'
    >>> _in_our_words("Invalid value for '--n': Input should be greater than or equal to 1")
    '--n: expected 1 or more'
    """
    extra = EXTRA.match(told)
    if extra is not None and os.path.exists(extra[1].split()[0]):  # a shell has made several files of a pattern
        return f"one argument too many, {extra[1].split()[0]}: name a folder, or put a pattern in quotes ('*.txt')"
    match = VALUE.match(told)
    expected = next((words for says, words in EXPECTED.items() if match and says in match[2]), None)
    if match is None or expected is None:
        return told
    limit = re.search(r"-?[0-9.]+$", match[2])
    return f"{match[1]}: expected {expected.format(limit[0] if limit else '')}"


def can_be_written(stream: TextIO) -> bool:
    """Whether what was printed so far goes where it should."""
    try:
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


def silence() -> None:
    """Point a closed or full stdout to nowhere, so that the interpreter's last flush says nothing."""
    os.dup2(os.open(os.devnull, flags("WRONLY")), sys.__stdout__.fileno() if sys.__stdout__ else 1)
