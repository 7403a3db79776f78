"""Experiments: every protocol for every grid point and seed, on common random numbers, saved run by run.

::

    options.py     what may be asked for beside the scenario, once for shell and Python
    planned_run.py one run that is asked for: its place, its seeds, its words
    plan.py        which runs there are, and how the world of one is made
    sources.py     what an experiment was made from, kept beside its results
    preflight.py   what only data, graph and files can refuse, before the first run
    contract_replays.py the privacy contract of users' own protocols, replayed before the runs at some points of a sweep
    execute.py     one run, from its world to its result
    run_warnings.py what a run should tell its author, though nothing forbids it
    run_once.py    one run and the store: skip it, keep its result, or keep why it failed
    workers.py     what whoever executes runs can do
    worker_pool.py who that is: this process, ...
    processes.py   ... others on this machine
    cluster.py     ... or those of a dask cluster (imported only where one is asked for)
    dispatch.py    runs for those, and what becomes of them
    remote.py      what one of those does
    perform.py     all of it together: the entry
    tuning.py      parameters chosen on validation data, before the runs that are reported
    time_left.py   how much longer it takes, and notebook.py, which shows that in a notebook
    estimate.py    what an experiment will take: counts and memory (`limits`)
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
