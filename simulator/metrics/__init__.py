"""Metrics: what is recorded of a run, one registration each; language, recorder, tables and figures ask the registry.

A metric of your own is a file here that ends in ``register(Metric(...))``, and its import below.
"""

from __future__ import annotations

from .metric import METRICS, Metric, Reading, Rows, metric_of, more_is_better, range_of, recordable, register
from .own_metrics import own_metric

# isort: off
from . import objective
from . import criterion_metrics as criteria
from . import losses
from . import epsilon
from . import network_metrics as network
from . import distance
# isort: on

__all__ = [
    "METRICS",
    "Metric",
    "Reading",
    "Rows",
    "criteria",
    "distance",
    "epsilon",
    "losses",
    "metric_of",
    "more_is_better",
    "network",
    "objective",
    "own_metric",
    "range_of",
    "recordable",
    "register",
]
