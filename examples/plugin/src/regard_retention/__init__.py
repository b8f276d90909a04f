"""Retention for regard: a mixer, a language model and a grader of it, a task of ordinal labels, a look and a study.

Nothing is imported here, so that each part is when it is first asked for: by the entry points of the package where it
is installed, else by `--import regard_retention.retnet` and so on.
"""
