"""Running studies: seeds one after the other, a result file and a figure for each, a verdict at the end.

OUT/mask.json     claim, source, rule, the numbers of each seed, verdict, cost, versions
OUT/mask.svg      its figure
OUT/seeds/        what the seeds have found so far, so that a study that was cut off goes on where it was
"""

from __future__ import annotations

import importlib
import json
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError, UsageError, nearest
from regard.studies.study import SEEDS, Found, Lab, ScaleName, Study
from regard.training import disk

# Name to file and class. The one line of a study.
STUDIES = {
    "mask": ("regard.studies.mask", "Mask"),
    "quadratic": ("regard.studies.quadratic", "Quadratic"),
    "parallel": ("regard.studies.parallel", "Parallel"),
    "order": ("regard.studies.order", "Order"),
    "length": ("regard.studies.length", "Length"),
    "depth": ("regard.studies.depth", "Depth"),
    "query": ("regard.studies.query", "Query"),
    "meaning": ("regard.studies.meaning", "Meaning"),
    "p12": ("regard.studies.p12", "StateSpaceDuality"),
    "p11": ("regard.studies.p11", "Selection"),
    "p10": ("regard.studies.p10", "LongRange"),
    "p9": ("regard.studies.p9", "Backpack"),
    "p7": ("regard.studies.p7", "InContext"),
    "p8": ("regard.studies.p8", "Bertology"),
    "mad": ("regard.studies.mad", "Mad"),
