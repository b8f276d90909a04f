"""Failures as scikit-learn expects them: a ValueError, with regard's own message and exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from regard.errors import DataError, Stopped, UsageError


class BadData(DataError, ValueError):
    """Data that cannot be learnt from or answered."""


class BadSetting(UsageError, ValueError):
    """A parameter of an estimator that means nothing."""


@contextmanager
def refused() -> Iterator[None]:
    """What regard refuses within the context is a ValueError as well.

    A search goes on after every Exception; somebody who pressed Ctrl-C wants it to end.
    """
    try:
        yield
    except UsageError as error:
        raise BadSetting(str(error)) from None
    except DataError as error:
        raise BadData(str(error)) from None
    except Stopped:
        raise KeyboardInterrupt from None
