"""Findings of claims: expressions over the runs of a figure, in Jinja's language, put before the judge."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import isroutine
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

from ...agents.errors import InputError
from ...protocols.privacy.composition import gaussian_mu
from ..audit.verdicts import ROUNDING
from ..observers import printed_bounds
from .judge import EXACT, Finding, Number, measured
from .papers import Claim, NumberSpec, Paper
from .reproduction_runs import Runs

COMMON: dict[str, Any] = {
    "mean": np.mean,
    "middle": np.median,
    "pairwise": lambda values: list(pairwise(values)),
    "point": lambda path, value: {path: value},
    "listed": lambda values: ", ".join(value if isinstance(value, str) else f"{value:g}" for value in values),
    "infinity": math.inf,
    "log": math.log,
    "gaussian_mu": gaussian_mu,
    **{name: getattr(printed_bounds, name) for name in printed_bounds.__all__},
}
"""Names that every expression may use; beside them, those of the module of a paper's problems."""

_LANGUAGE = SandboxedEnvironment(undefined=StrictUndefined)


@cache
def _compiled(text: str) -> Callable[..., Any]:
    return _LANGUAGE.compile_expression(text.strip(), undefined_to_none=False)


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression of Jinja's language, in its sandbox.

    It has numbers, text in quotes, lists, arithmetic, comparisons, names, items by ``[]`` and calls of named functions.
    Raises `InputError` if it is no such expression, or a name has no meaning.

    >>> evaluate("2 * scale['low'] + 1", {"scale": {"low": 3}})
    7
    """
    try:
        value = _compiled(text)(**names)
        if isinstance(value, StrictUndefined):
            str(value)  # which says what it lacks
    except (TemplateSyntaxError, UndefinedError) as error:
        raise InputError(f"{text!r}: {error.message}; known are {', '.join(sorted(names))}") from error
    return value


def filled(text: str, names: Mapping[str, Any]) -> str:
    """Return text with every ``{expression:format}`` replaced by its value; a format as Python's, by default ``g``.

    >>> filled("{2 * x:.1f} of {who}", {"x": 1.0, "who": "all"})
    '2.0 of all'
    """
    parts = []
    for literal, field, spec, _ in string.Formatter().parse(text):
        parts.append(literal)
        if field is not None:
            value = evaluate(field, names)
            parts.append(value if isinstance(value, str) else format(value, spec or "g"))
    return "".join(parts)


def judged(paper: Paper, claim: Claim, runs: Runs | None = None) -> Finding:
    """Return what comes out about a claim by the figure's runs; a printed statement needs none.

    Raises `InputError` if the runs lack something, or the claim is not written as it should be.
    """
    problems = f"{__package__}.{paper.name}_problems"
    names = {**COMMON, **_public(import_module(problems) if find_spec(problems) else None), **paper.printed}
    if runs is not None:
        runs = replace(runs, point={}, asked=set())
        names |= _public(runs) | {"runs": runs}
    numbers = tuple(number for spec in claim.numbers for number in _numbers(paper, spec, names, runs))
    if runs is not None:
        runs.point = {}
    names["found"] = lambda word: [number.name for number in numbers if number.verdict == word]
    names["count"] = lambda word: len(names["found"](word))
    sentences = (
        filled(each if isinstance(each, str) else each.say, names)
        for each in claim.why
        if isinstance(each, str) or evaluate(each.when, names)
    )
    words = paper.readings.get(claim.readings, {})
    return Finding(numbers, claim.kind, filled(claim.how, names), " ".join(sentences), words)


def _public(owner: object) -> dict[str, Any]:
    """Numbers and functions that an object or a module has, by name."""
    named = {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")} if owner else {}
    return {name: each for name, each in named.items() if isinstance(each, int | float) or isroutine(each)}


def _numbers(paper: Paper, spec: NumberSpec, names: Mapping[str, Any], runs: Runs | None) -> Iterator[Number]:
    """The numbers of one specification, in the order of its loops, of which those over swept fields set the point."""
    grid = runs.collection.grid if runs else ()
    swept = {name: each for name, each in spec.each.items() if isinstance(each, str) and each in grid}
    over = {**spec.each, **{name: f"values({path!r})" for name, path in swept.items()}}
    choices = [evaluate(each, names) if isinstance(each, str) else each for each in over.values()]
    for chosen in product(*choices):
        here = {**names, **dict(zip(over, chosen, strict=True))}
        if runs:
            runs.point = {path: here[name] for name, path in swept.items()}
        for name, text in spec.let.items():
            here[name] = evaluate(text, here)
        if runs:
            runs.asked, runs.on_the_way = set(), False
        value = evaluate(spec.value, here)
        unfair = runs.unfair(paper.untunable) if runs else ""
        asked = {"setting": filled(spec.setting, here), "reading": spec.reading, "unfair": unfair}
        ends = (float(evaluate(end, here)) if isinstance(end, str) else end for end in (spec.above, spec.below))
        yield _number(spec, filled(spec.name, here), value, asked | dict(zip(("low", "high"), ends, strict=True)), here)


def _number(spec: NumberSpec, name: str, value: Any, asked: dict[str, Any], names: Mapping[str, Any]) -> Number:
    if spec.claimed is not None:
        claimed = float(evaluate(spec.claimed, names))
        if isinstance(value, pd.Series):
            return measured(name, value, high=claimed, claimed=True)
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
