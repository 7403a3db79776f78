"""The event by which a run met its target, found between two records, against runs that record every activation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.targets import reached
from hushnet.simulator.api import run
from hushnet.simulator.experiment import hits, run_once

AXES = ("time", "activations", "messages", "vectors", "bytes", "updates", "vectors_with_start")
COMMON = """
schema: 1
scenario: hits
task: {kind: linear_classification, agents: 12, dimension: 4, samples: [4, 12]}
topology: {kind: random_regular, degree: 4}
clock: {kind: poisson}
network: {latency: {kind: exponential, mean: 0.5}, loss: 0.1}
seeds: 2
"""
PRIVATE = "{mechanism: laplace, budget: {epsilon: 200.0, delta: 0.001}, updates: 10, sensitivity: clip, clip: 1.0}"
PROTOCOLS = {
    "broadcasts": f"""
protocols:
  a: {{kind: coordinate_descent, mu: 0.5}}
  b: {{kind: coordinate_descent, mu: 0.5, privacy: {PRIVATE}}}
stop: {{time: 12}}
""",
    "exchanges": """
protocols:
  a: {kind: collaborative_admm, objective: bellet, mu: 0.5, start: zero, rho: 0.3}
  b: {kind: collaborative_admm, objective: bellet, mu: 0.5, start: zero}
stop: {time: 12}
""",
    "rounds": """
protocols:
  a: {kind: coordinate_descent, mu: 0.5, schedule: {kind: rounds, patience: 2.0}}
  b: {kind: collaborative_admm, objective: bellet, mu: 0.5, start: zero, schedule: rounds}
stop: {time: 30}
""",
}
SHARE = "target: {metric: objective, share: 0.8}\n"


@pytest.fixture
def results(tmp_path):
    """Runs a scenario that records so often."""

    def make(text, record, **options):
        folder = tmp_path / f"results{len(list(tmp_path.iterdir()))}"
        file = tmp_path / f"{folder.name}.yaml"
        file.write_text(f"{text}record: {{{record}, objective_of: a}}\n", encoding="utf-8")
        run(file, out=folder, **options)
        return load_all(folder)

    return make


def places(collection, axis, target=None):
    return reached(collection, target, axis)[["value", "after"]].to_numpy()


def check_against_every_activation(results, text, record, axes=AXES, **options):
    coarse, fine = results(text + SHARE, record, **options), results(text + SHARE, "activations: 1", **options)
    for axis in axes:
        found, wanted = places(coarse, axis), places(fine, axis)
        np.testing.assert_array_equal(found, wanted, err_msg=axis)
    assert np.isfinite(places(fine, "time")).any()
    later = replace(coarse, index={**coarse.index, "hits": None})
    assert (places(later, "time")[:, 0] >= found_times(coarse)).all()
    assert (places(later, "time")[:, 0] > found_times(coarse)).any(), "records were fine enough: tests nothing"


def found_times(collection):
    return places(collection, "time")[:, 0]


@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("engine", ["batched", "event"])
def test_a_run_meets_its_target_by_the_event_that_a_record_of_every_activation_shows(results, kind, engine):
    check_against_every_activation(results, COMMON + PROTOCOLS[kind] + f"engine: {engine}\n", "every: 5.0")


@pytest.mark.parametrize("engine", ["batched", "event"])
def test_long_stretches_are_narrowed_down_before_every_activation_is_looked_at(results, monkeypatch, engine):
    """The distance to a target falls here all the way, so that the first of few looks is after the very event."""
    monkeypatch.setattr(hits, "MOST_LOOKS", 8)
    monkeypatch.setattr(hits, "LOOKS", 3)
    looked, first_hit = [], run_once.first_hit
    monkeypatch.setattr(run_once, "first_hit", lambda *given: looked.append(given[2]) or first_hit(*given))
    plain = PROTOCOLS["broadcasts"].split("  b:")[0] + "stop: {time: 12}\n"
    check_against_every_activation(
        results, COMMON + plain + f"engine: {engine}\n", "every: 5.0", axes=("time", "vectors")
    )
    assert {window.stride for window in looked} > {1}
    assert all(window.until - window.after <= 8 for window in looked if window.stride == 1)


def test_a_share_of_what_another_protocol_ends_with_is_met_by_an_event_as_well(results):
    text = COMMON + PROTOCOLS["broadcasts"].replace("stop:", "  best: {kind: consensus}\nstop:")
    target = "target: {metric: accuracy, share: 0.95, of: {a: best, b: a}}\n"
    coarse, fine = results(text + target, "every: 4.0"), results(text + target, "activations: 1")
    assert coarse.index["hits"]["runs"]
    np.testing.assert_array_equal(places(coarse, "time"), places(fine, "time"))


def test_a_level_of_a_metric_of_ones_own_is_met_by_an_event(results, tmp_path):
    (tmp_path / "mine.py").write_text("def size(snapshot):\n    return float(abs(snapshot.models).sum())\n")
    text = COMMON + PROTOCOLS["broadcasts"] + "target: {metric: ./mine.py:size, level: 6.0}\n"
    metrics = "metrics: [objective, updates, ./mine.py:size]"
    coarse = results(text, f"every: 4.0, {metrics}", trust_code=True)
    fine = results(text, f"activations: 1, {metrics}", trust_code=True)
    assert coarse.index["hits"]["runs"]
    for axis in ("time", "updates"):
        np.testing.assert_array_equal(places(coarse, axis), places(fine, axis))


def test_two_processes_find_what_one_finds_and_a_finished_experiment_looks_no_more(results, monkeypatch):
    text = COMMON + PROTOCOLS["broadcasts"] + SHARE
    one, two = results(text, "every: 5.0"), results(text, "every: 5.0", jobs=2)
    assert one.index["hits"] == two.index["hits"]
    assert one.index["hits"]["runs"]
    file, before = one.root / "index.json", (one.root / "index.json").read_bytes()

    def refuse(*_):
        raise AssertionError("made again")

    monkeypatch.setattr(run_once, "first_hit", refuse)
    run(one.root.parent / f"{one.root.name}.yaml", out=one.root)
    assert file.read_bytes() == before


def test_a_run_at_several_grid_points_is_looked_at_at_each(results):
    sweep = "sweep: {protocols.b.mu: [0.5, 0.1]}\n"
    coarse, fine = (
        results(COMMON + PROTOCOLS["broadcasts"] + SHARE + sweep, record) for record in ("every: 5.0", "activations: 1")
    )
    assert any("#2" in run for run in coarse.index["hits"]["runs"])
    np.testing.assert_array_equal(places(coarse, "vectors"), places(fine, "vectors"))


def test_without_a_target_of_its_own_an_experiment_is_not_looked_at(results):
    assert results(COMMON + PROTOCOLS["broadcasts"], "every: 5.0").index["hits"] is None


def test_rows_that_are_none_are_refused_in_a_sentence(results):
    collection = results(COMMON + PROTOCOLS["broadcasts"] + SHARE, "every: 5.0")
    file = collection.root / "index.json"
    file.write_text(file.read_text().replace('"gap"', "3"), encoding="utf-8")
    with pytest.raises(InputError, match=r"hits.runs.*must have time, activations.*run the scenario again"):
        load_all(collection.root)
