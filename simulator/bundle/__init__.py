"""``hushnet bundle``: what a reviewer needs to run an experiment again and to check its numbers, in one file.

Beside it ``hushnet export``, which writes the runs for experiment trackers.

::

    archive.py  what a bundle holds, how it is packed, and how it is checked
    claims.py   the numbers that results bear out, and whether other results do
    lock.py     the installed versions of what hushnet needs
    wheel.py    hushnet itself, as it runs here
    experiment_trackers.py   runs for MLflow, and for Weights & Biases
"""

from .archive import check_bundle, write_bundle

__all__ = ["check_bundle", "write_bundle"]
