"""A pytest plugin that plants the mistake which an environment variable names, for a whole session."""

from __future__ import annotations

import os

from . import LIST
from .guards import VARIABLE
from .seams import Plant

LIST[os.environ[VARIABLE]].plant(Plant())
