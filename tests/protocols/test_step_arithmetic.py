"""Arithmetic of whole numbers and indices that numba does not check: compiled steps come to what Python comes to."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

from .test_word_arguments import PLACE, of_text, outcome

COMPILED, PYTHON = "batched (compiled step)", f"batched (Python step, because {PLACE}, "


@pytest.mark.parametrize(
    ("value", "engine"),
    [
        ("(rows + 1) ** -1 + (1 + me.updates) ** -2", COMPILED),
        ("(rows + 7) // (rows + 2) + (rows + 7) % (rows + 2) - (-rows - 1) // 2 + (-rows - 1) % 3", COMPILED),
        ("2.5 // 1.5 + 2.5 % (rows + 1.0) + 2.0 ** rows + rows ** 0.5 + 0.5 ** (me.updates + 1)", COMPILED),
        ("np.sum(np.arange(p) ** 2 % np.arange(1, p + 1) + np.arange(p) // 2 + np.ones(p) ** -1)", COMPILED),
        ("rows ** 3 + 3 ** 2", COMPILED),
        ("(rows + 1) ** me.tick", PYTHON),
        ("pow(rows + 1, -1)", PYTHON),
        ("pow(2.0, rows) + pow(rows, 0.5)", COMPILED),
        ("2 ** 70 % 7", PYTHON),
        ("me.model.flat[0]", PYTHON),
    ],
)
def test_both_forms_come_to_the_same(value, engine, tmp_path):
    kind = of_text([f"me.found = {value}"], tmp_path)
    (_, python), (also, batched) = outcome(kind, EventEngine()), outcome(kind, BatchedEngine())
    assert python is not None
    assert batched is not None
    assert also.startswith(engine)
    np.testing.assert_allclose(batched["found"].values, python["found"].values, rtol=1e-12)


@pytest.mark.parametrize(
    "value",
    [
        "1 // (rows - rows)",
        "me.tick % (rows - rows)",
        "(rows - rows) ** -1",
        "me.model.flat[p]",
        "me.features[rows, 0]",
        "me.heard[me.degree, 0]",
        "me.model[np.array([0, p])].sum()",
        "me.model[np.array([True] * (p + 1))].sum()",
        "np.dot(me.features, np.ones(p + 1)).sum()",
    ],
)
def test_both_forms_fail_alike(value, tmp_path):
    kind = of_text([f"me.found = {value}"], tmp_path)
    (said, python), (also, batched) = outcome(kind, EventEngine()), outcome(kind, BatchedEngine())
    assert python is None
    assert batched is None
    assert said == also
    assert f"{PLACE}, `me.found = {value}`" in said
