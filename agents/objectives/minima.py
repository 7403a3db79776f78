"""Exact minima of objectives, computed once and kept: in memory, and in files between processes."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..authors import is_authors_class, place_of
from ..errors import HushnetError, InputError
from ..input_files import read_bytes
from ..scratch import scratch, write_new
from .objectives import Models, Objective

_MINIMA: dict[str, tuple[Models, float]] = {}
_MINIMA_KEPT = 64


def cached_minimum(objective: Objective, cache_dir: Path | None) -> tuple[Models, float]:
    """`objective.minimise()`, computed once per fingerprint: (n, p) read-only models, and the value.

    Minima are kept between processes in a folder, one ``.npz`` each; a file that is damaged, does not belong to the
    objective or is no minimum of it (`Objective.is_minimum`) is computed anew. Whoever names the folder lets its name
    change with the code and the libraries that compute them; without one they are in memory only. Raises `InputError`
    if the objective is of an author's own class and fails `check_objective`.
    """
    key = objective.fingerprint
    if key in _MINIMA:
        return _MINIMA[key]
    file = None if cache_dir is None else cache_dir / f"minimum-{key}.npz"
    found = None if file is None else _load_minimum(file, objective)
    models, value = found if found is not None else objective.minimise()
    if is_authors_class(type(objective)):
        check_objective(objective, models, value)
    if file is not None and found is None:
        with contextlib.suppress(OSError):  # a full disk is reported where it costs results
            _save_minimum(file, models, value)
    models.setflags(write=False)
    while len(_MINIMA) >= _MINIMA_KEPT:
        _MINIMA.pop(next(iter(_MINIMA)))
    _MINIMA[key] = (models, value)
    return models, value


def check_objective(objective: Objective, models: Models, value: float) -> None:
    """Refuse a convex objective whose value, gradient and minimum do not belong together.

    Its minimum is compared with the value at its (n, p) minimiser and along the gradient there, the gradient with the
    difference of two values: slopes at both ends of a step enclose its difference quotient where a function is convex.
    Raises `InputError` with the line of the method that does not fit.
    """
    rng, scale = np.random.default_rng(0), 1.0 + float(np.abs(models).max(initial=0.0))
    at = models + scale * rng.normal(size=models.shape)
    for direction in (rng.normal(size=models.shape), objective.gradient(at)):
        step = 1e-3 * scale * direction / (1e-300 + np.linalg.norm(direction))
        (before, low), (after, high) = map(objective.value_and_gradient, (at - step, at + step))
        slopes, slack = [2 * float(np.vdot(one, step)) for one in (low, high)], 1e-9 * (1.0 + abs(after))
        if abs((alone := objective.value(at + step)) - after) > slack:
            _refuse(objective.value_and_gradient, f"gives the value {after:.6g} where value() is {alone:.6g}")
        if not slopes[0] - slack <= after - before <= slopes[1] + slack:
            _refuse(
                objective.value_and_gradient,
                f"a step along which the value changes by {after - before:.6g} has gradients that say {slopes[0]:.6g} "
                f"to {slopes[1]:.6g}; the gradient must be that of value(), which must be convex",
            )
    if abs((there := objective.value(models)) - value) > 1e-9 * (1.0 + abs(value)):
        _refuse(objective.minimise, f"the minimum is said to be {value:.6g}; value() at the minimiser is {there:.6g}")
    if not objective.is_minimum(models):
        _refuse(objective.minimise, f"models near the minimiser have a value below {value:.6g}")


def _refuse(method: Callable[..., Any], sentence: str) -> NoReturn:
    raise InputError(f"{place_of(method)}: {sentence}")


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
