"""More room in tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def extended(array: NDArray[Any], more: int) -> NDArray[Any]:
    """An array with room for so many more entries."""
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])
