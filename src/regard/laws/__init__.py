"""The laws: what every mixer and model must keep, as a library, a test suite and `regard check`."""

from regard.laws.check import check, check_all, check_mixer, check_model
from regard.laws.result import LawResult

__all__ = ["LawResult", "check", "check_all", "check_mixer", "check_model"]
