"""Findings of claims: expressions over the runs of a figure, put before the judge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import isfunction, isroutine, signature
from itertools import pairwise, product
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ..audit.verdicts import ROUNDING
from .expressions import evaluate, filled
from .judge import EXACT, Finding, Number, measured
from .papers import Claim, NumberSpec, Paper
from .reproduction_runs import Runs

COMMON: dict[str, Any] = {
    "mean": lambda values: float(np.mean(values)),
    "least": lambda values: float(np.min(values)),
    "most": lambda values: float(np.max(values)),
    "middle": lambda values: float(np.median(values)),
    "pairwise": lambda values: list(pairwise(values)),
    "point": lambda path, value: {path: value},
    "both": lambda *points: {path: value for point in points for path, value in point.items()},
    "listed": lambda values: ", ".join(value if isinstance(value, str) else f"{value:g}" for value in values),
    "infinity": math.inf,
    "log": math.log,
    "lower": lambda share: math.inf if share == 1 else 0.0,
}
"""Names that every expression may use; beside them, those of the module of a paper's problems."""


def judged(paper: Paper, claim: Claim, runs: Runs | None = None) -> Finding:
    """Return what comes out about a claim.

    Parameters
    ----------
    paper : Paper
    claim : Claim
    runs : Runs, optional
        Of the figure; a printed statement needs none.

    Raises
    ------
    InputError
        If the runs lack something, or the claim is not written as it should be.
    """
    names = {**COMMON, **_public(_problems(paper)), **paper.printed}
    if runs is not None:
        runs = replace(runs, point={}, asked=set())
        names |= {name: partial(each, runs) for name, each in names.items() if "runs" in _parameters(each)}
        names |= _public(runs)
    numbers = tuple(number for spec in claim.numbers for number in _numbers(paper, spec, names, runs))
    if runs is not None:
        runs.point.clear()
    names["found"] = lambda word: [number.name for number in numbers if number.verdict == word]
    names["count"] = lambda word: len(names["found"](word))
    sentences = (
        filled(each if isinstance(each, str) else each.say, names)
        for each in claim.why
        if isinstance(each, str) or evaluate(each.when, names)
    )
    words = paper.readings.get(claim.readings, {})
    return Finding(numbers, claim.kind, filled(claim.how, names), " ".join(sentences), words)


def _problems(paper: Paper) -> ModuleType | None:
    """The module whose numbers and functions claims of a paper may name; those of ``runs`` are given the figure's."""
    name = f"{__package__}.{paper.name}_problems"
    return import_module(name) if find_spec(name) else None


def _public(owner: object) -> dict[str, Any]:
    """Numbers and functions that an object or a module has, by name."""
    named = {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")} if owner else {}
    return {name: each for name, each in named.items() if isinstance(each, int | float) or isroutine(each)}


def _parameters(each: object) -> Iterable[str]:
    return signature(each).parameters if isfunction(each) else ()


def _numbers(paper: Paper, spec: NumberSpec, names: Mapping[str, Any], runs: Runs | None) -> Iterator[Number]:
    """The numbers of one specification, in the order of its loops, of which those over swept fields set the point."""
    grid = runs.collection.grid if runs else ()
    swept = {name: each for name, each in spec.each.items() if isinstance(each, str) and each in grid}
    over = {**spec.each, **{name: f"values({path!r})" for name, path in swept.items()}}
    choices = [evaluate(each, names) if isinstance(each, str) else each for each in over.values()]
    for chosen in product(*choices):
        here, unfair = {**names, **dict(zip(over, chosen, strict=True))}, ""
        if runs:
            runs.point.clear()
            runs.point.update({path: here[name] for name, path in swept.items()})
        for name, text in spec.let.items():
            here[name] = evaluate(text, here)
        if runs:
            runs.asked.clear()
            runs.on_the_way = False
        value = evaluate(spec.value, here)
        if runs:
            unfair = runs.unfair(paper.untunable)
        asked = {"setting": filled(spec.setting, here), "reading": spec.reading, "unfair": unfair}
        yield _number(spec, filled(spec.name, here), value, asked | _margin(spec, here), here)


def _number(spec: NumberSpec, name: str, value: Any, asked: dict[str, Any], names: Mapping[str, Any]) -> Number:
    if spec.claimed is not None:
        claimed = float(evaluate(spec.claimed, names))
        above = value > claimed * (1 + ROUNDING)
        bound = float(evaluate(spec.at_least, names)) if above else 0.0
        return Number(name, float(value), high=claimed, claimed=True, at_least=bound)
    if isinstance(value, pd.Series):
        if spec.random:
            return measured(name, value, **asked)
        if not np.isclose(value, value.iloc[0], rtol=EXACT, atol=0.0, equal_nan=True).all():
            raise InputError(f"{name} differs from run to run, and is said to have nothing random")
        return Number(name, float(value.iloc[0]), **asked)
    if spec.random and "final" in names:
        raise InputError(f"{name} is one value of all runs; give one by run, or say `random: false`")
    return Number(name, float(value), **asked)


def _margin(spec: NumberSpec, names: Mapping[str, Any]) -> dict[str, float]:
    """The ends between which a number is asked to lie."""

    def bound(given: float | str) -> float:
        return float(evaluate(given, names)) if isinstance(given, str) else given

    if spec.near is not None:
        target, margin = map(bound, spec.near)
        return {"low": target - margin, "high": target + margin}
    return {"low": bound(spec.above), "high": bound(spec.below)}
