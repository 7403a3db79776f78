"""Learning tasks, one file and one registration each: a class of parameters that builds a `Task`.

A new task is a file here whose class derives from `TaskKind` (``task_registry.py``), and its import below.
"""

from __future__ import annotations

from .task_registry import TASKS, TaskKind, TaskParameters

# isort: off
from .linear_classification import LinearClassification
from .mean_estimation import MeanEstimation
from .movielens import MovieLens
from .synthetic_ratings import SyntheticRatings
from .adult import Adult
from .libsvm_sets import A9a, Epsilon, Gisette
from .stand_ins import EpsilonLike, GisetteLike
from .csv_table import CsvTable
from .digits import Digits
from .images import Femnist, Mnist
# isort: on

__all__ = [
    "TASKS",
    "A9a",
    "Adult",
    "CsvTable",
    "Digits",
    "Epsilon",
    "EpsilonLike",
    "Femnist",
    "Gisette",
    "GisetteLike",
    "LinearClassification",
    "MeanEstimation",
    "Mnist",
    "MovieLens",
    "SyntheticRatings",
    "TaskKind",
    "TaskParameters",
]
