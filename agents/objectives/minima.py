"""Exact minima of objectives, computed once and kept: in memory, and in files between processes."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

from ..errors import HushnetError
from ..input_files import read_bytes
from ..scratch import scratch, write_new
from .objectives import Models, Objective

_MINIMA: dict[str, tuple[Models, float]] = {}
_MINIMA_KEPT = 64


def cached_minimum(objective: Objective, cache_dir: Path | None) -> tuple[Models, float]:
    """`objective.minimise()`, computed once per fingerprint.

    Parameters
    ----------
    cache_dir : Path or None
        Where to keep minima between processes, one ``.npz`` each; a file that is damaged, does not belong to the
        objective or is no minimum of it (`Objective.is_minimum`) is computed anew. Whoever names the folder lets its
        name change with the code and the libraries that compute them. None keeps them in memory only.

    Returns
    -------
    models : (n, p) float64, read-only
    value : float
    """
    key = objective.fingerprint
    if key in _MINIMA:
        return _MINIMA[key]
    file = None if cache_dir is None else cache_dir / f"minimum-{key}.npz"
    found = None if file is None else _load_minimum(file, objective)
    models, value = found if found is not None else objective.minimise()
    if file is not None and found is None:
        with contextlib.suppress(OSError):  # a full disk is reported where it costs results
            _save_minimum(file, models, value)
    models.setflags(write=False)
    while len(_MINIMA) >= _MINIMA_KEPT:
        _MINIMA.pop(next(iter(_MINIMA)))
    _MINIMA[key] = (models, value)
    return models, value


def _load_minimum(file: Path, objective: Objective) -> tuple[Models, float] | None:
    try:
        with np.load(io.BytesIO(read_bytes(file, links=False)), allow_pickle=False) as stored:
            models, value = stored["models"], float(stored["value"])
        with np.errstate(over="ignore", invalid="ignore"):
            consistent = abs(objective.value(models) - value) <= 1e-9 * max(1.0, abs(value))
            consistent = consistent and objective.is_minimum(models)
    except (HushnetError, EOFError, KeyError, ValueError, TypeError, IndexError, zipfile.BadZipFile, zlib.error):
        return None
    return (models, value) if consistent else None


def _save_minimum(file: Path, models: Models, value: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = scratch(file)
    try:
        content = io.BytesIO()
        np.savez(content, models=models, value=np.float64(value))
        write_new(content.getvalue(), fresh)
        os.replace(fresh, file)
    finally:
        fresh.unlink(missing_ok=True)
