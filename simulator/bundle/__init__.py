"""``hushnet bundle``: what a reviewer needs to run an experiment again and to check its numbers, in one file.

Beside it ``hushnet export``, which writes the runs for experiment trackers.
"""

from .archive import check_bundle, write_bundle

__all__ = ["check_bundle", "write_bundle"]
