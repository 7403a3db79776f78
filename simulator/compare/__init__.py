"""Protocols compared run by run, from the files of one results folder or of several.

::

    comparison.py  pairs of runs with the same seed, and what they say: the entry
    measures.py    what runs are compared by, one number per run
    statistics.py  intervals, tests, Holm's correction and break-even points
    luck.py        whether the two of a pair met the same luck, task and code
    folders.py     several results folders side by side
    tables.py      a comparison on the screen, as CSV and as LaTeX
"""

from .comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
