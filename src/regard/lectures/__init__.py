"""Lectures that run: notebooks with a question, an experiment, pictures, exercises and a verdict.

    regard lecture
    regard lecture counting

What a notebook needs of this room: `answer` tells whether an exercise is right, `passes` examines a mixer, and
`new_folder` is a place for a run that is gone afterwards.
"""

from regard.lectures.exercise import answer, passes
from regard.lectures.folder import new_folder

__all__ = ["answer", "new_folder", "passes"]
