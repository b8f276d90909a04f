"""What a failure looks like in a terminal: one line on stderr and a stable exit code.

What is not a failure a person can act on is a bug of ours: the line names its type and asks for `--debug`.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback

from regard.errors import RegardError, ResourceError, Stopped, UsageError
from regard.table import visible

INTERRUPTED = 130
LONGEST = 1000  # characters of a message
OUT_OF_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}


def report(error: BaseException, *, debug: bool) -> int:
    """Print what happened and return the exit code."""
    if isinstance(error, BrokenPipeError):
        silence()
        return 0
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
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
    print(f"{what}: {message}{advice}", file=sys.stderr)
    return code


def as_known(error: BaseException) -> RegardError | None:
    """The failure a person can act on behind `error`, or None for a bug of ours."""
    if isinstance(error, RegardError):
        return error
    describe = getattr(error, "format_message", None)
    if describe is not None:  # typer's own usage errors; it vendors click in some versions, so no class is named here
        context = getattr(error, "ctx", None)
        path = getattr(context, "command_path", "regard")
        return UsageError(f"{describe().rstrip('.')} (see {path} --help)")
    if _memory(error):
        return ResourceError(
            "out of memory; lower train.batch_size, train.length or the model's size (--size tiny, --set model.KEY=...)"
        )
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        if error.errno in OUT_OF_SPACE:
            return ResourceError(f"{where}no room left on the disk; free some or choose another --out")
        if error.errno in REFUSED:
            return ResourceError(f"{where}{(error.strerror or 'refused').lower()}; choose another path or its rights")
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR):
            return UsageError(f"{where}{(error.strerror or 'bad path').lower()}")
    return None


def silence() -> None:
    """Point a closed stdout to nowhere, so that the interpreter's last flush says nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


def _memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("can't allocate memory" in text or "out of memory" in text)
