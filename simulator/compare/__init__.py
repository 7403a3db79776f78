"""Protocols compared run by run, from the files of one results folder or of several.

::

    comparison.py  pairs of runs with the same seed, and what they say: the entry
    measures.py    what runs are compared by, one number per run
    winners.py     who is ahead of everybody at each point, all pairs of a point corrected together
    statistics.py  intervals, tests, Holm's correction and break-even points
    common_random_numbers.py  whether the two of a pair had the same draws, task and code
    folders.py     several results folders side by side
    tables.py      a comparison on the screen, as CSV and as LaTeX
"""

from .comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
