"""Every number of a scenario has bounds: what `check` calls valid neither overflows nor fills the memory."""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le, Lt
from hushnet.protocols import catalog
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.language.scenario import Scenario
from pydantic import BaseModel
from pydantic.fields import FieldInfo

FREE = {("TargetParameters", "level"), ("Figure", "at"), ("Together", "labels"), ("Figure", "seed")}
"""Numbers that nothing is computed from: they are compared, or printed."""


def numbers(annotation: Any, metadata: tuple[Any, ...], seen: set[type]):
    """Every number within a type: its own type and the bounds that stand around it."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        parts = [part for item in more for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
        yield from numbers(inner, (*metadata, *parts), seen)
    elif get_origin(annotation) in (Union, types.UnionType, list, tuple, dict):
        inside = metadata if get_origin(annotation) in (Union, types.UnionType) else ()
        for part in get_args(annotation):
            yield from numbers(part, inside, seen)
    elif annotation in (int, float):
        yield metadata
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
        yield from unbounded(annotation, seen)


def unbounded(model: type[BaseModel], seen: set[type]):
    seen.add(model)
    for name, info in model.model_fields.items():
        for found in numbers(info.annotation, tuple(info.metadata), seen):
            if isinstance(found, tuple) and found and isinstance(found[0], str):
                yield found
            elif (model.__name__, name) not in FREE:
                low = any(isinstance(part, Ge | Gt) for part in found)
                high = any(isinstance(part, Le | Lt) for part in found)
                if not (low and high):
                    yield (model.__name__, name)


def test_every_number_of_a_scenario_is_bounded_on_both_sides():
    seen: set[type] = set()
    found = list(unbounded(Scenario, seen))
    for name in catalog.names():
        found += unbounded(catalog.resolve(name).Parameters, seen)
    assert not found


BASE = {
    "schema": "1",
    "scenario": "bounds",
    "task": "{kind: linear_classification, agents: 4, dimension: 2, samples: [5, 5], test_samples: 2}",
    "topology": "{kind: complete}",
    "protocols": "{local: {kind: local}}",
    "stop": "{time: 1}",
    "record": "{every: 1.0, metrics: [accuracy]}",
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "{kind: linear_classification, agents: 1000000000000, dimension: 2}"),
        ("task", "{kind: linear_classification, agents: 4, dimension: 1000000000000000}"),
        ("task", "{kind: linear_classification, agents: 4, dimension: 2, samples: [5, 10000000000000000]}"),
        ("task", "{kind: mean_estimation, samples: 100000000000000000}"),
        ("task", "{kind: mean_estimation, variance: 1e300}"),
        ("topology", "{kind: ring, reach: 100000000000000000}"),
        ("clock", "{kind: poisson, rate: 1e-300}"),
        ("clock", "{kind: poisson, rate: {kind: lognormal, sigma: 1e200}}"),
        ("clock", "{kind: periodic, period: 1e300}"),
        ("network", "{latency: 1e300}"),
        ("network", "{latency: 1e-300}"),
        ("network", "{latency: {kind: lognormal, mean: 1, sigma: 1e200}}"),
        ("network", "{latency: {kind: gamma, mean: 1, shape: 1e-300}}"),
        ("network", "{bandwidth: 1e-300}"),
        ("network", "{header_bytes: 10000000000000000000}"),
        ("availability", "{kind: on_off, online: 0.5, mean_down: 1e300}"),
        ("availability", "{kind: on_off, online: 0.5, mean_down: 1, distribution: lognormal, sigma: 1e200}"),
        ("availability", "{kind: always, joins: {share: 1, between: [0, 1e300]}}"),
        ("stop", "{time: 1e300}"),
        ("protocols", "{p: {kind: perturbed_admm, noise: {alpha: 1e300}}}"),
        ("sweep", "{network.loss: {log: [1.0e-300, 0.5, 3]}}"),
        ("sweep", "{network.latency: {from: 0, to: 1e308, step: 1e99}}"),
    ],
)
def test_a_number_that_no_run_could_use_is_one_sentence_with_its_place(tmp_path, capsys, field, value):
    text = "".join(f"{key}: {entry}\n" for key, entry in {**BASE, field: value}.items())
    (tmp_path / "s.yaml").write_text(text)
    assert main(["check", str(tmp_path / "s.yaml")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "s.yaml:" in said
    assert "must be" in said


def test_every_shipped_scenario_is_within_the_bounds():
    for name in shipped():
        load(name)
