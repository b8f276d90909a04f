"""Retention for regard: a mixer, a language model and a grader of it, a task of ordinal labels, a look and a study.

Importing the package registers them all, as `--import regard_retention` does; where it is installed, its entry points
import each part when it is first asked for.
"""

from regard_retention import decay, grader, half_life, ordinal, retention, retnet

__all__ = ["decay", "grader", "half_life", "ordinal", "retention", "retnet"]
