"""Learning tasks, one file and one registration each: a class of parameters that builds a `Task`.

A new task is a file here whose class derives from `TaskKind` (``task_registry.py``), and its import below.
"""

from __future__ import annotations

from .task_registry import TASKS, TaskKind, TaskParameters

# isort: off
from . import linear_classification, mean_estimation, movielens, synthetic_ratings, adult, libsvm_sets  # noqa: F401
from . import stand_ins, csv_table, digits, images  # noqa: F401
# isort: on

__all__ = ["TASKS", "TaskKind", "TaskParameters"]
