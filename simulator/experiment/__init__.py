"""Experiments: every protocol for every grid point and seed, on common random numbers, saved run by run.

The entry is perform.py: runs are planned (plan.py), checked (preflight.py), and made by workers (workers.py), one after
the other (run_once.py) or side by side (stacks.py).
"""

from .execute import FAILURES, execute
from .options import RunOptions
from .perform import perform, run
from .plan import Experiment, Run
from .run_once import RunOutcome
from .worker_pool import InProcess, start_workers
from .workers import Jobs, Workers

__all__ = [
    "FAILURES",
    "Experiment",
    "InProcess",
    "Jobs",
    "Run",
    "RunOptions",
    "RunOutcome",
    "Workers",
    "execute",
    "perform",
    "run",
    "start_workers",
]
