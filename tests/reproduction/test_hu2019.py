"""Hu et al. 2019: printed statements with counterexamples, and both algorithms after as many epochs of each."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hushnet.simulator.experiment import run
from hushnet.simulator.reproduction.hu2019_problems import RHO, RIDGE, SLOPE, jacobi, largest_change, told_apart
from hushnet.simulator.reproduction.reproduction_runs import Runs


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_printed_noise_hides_no_message_from_who_asks_for_its_range(scale):
    assert told_apart(scale) == math.inf


def test_the_counterexample_to_theorem_1_meets_its_assumption_and_has_a_mode_that_grows():
    """x is the same for all parties, S = M x: S' = (M (rho - L) z - rho (M - 1) S) / (lambda + rho), z' by (7)."""
    assert RIDGE + RHO > 2
    assert RHO * RHO > 2 * SLOPE**2
    assert RHO > SLOPE
    for parties, grows in ((2, False), (3, True)):
        of_scores = np.array([-RHO * (parties - 1), parties * (RHO - SLOPE)]) / (RIDGE + RHO)
        of_z = (RHO * of_scores + np.array([0.0, SLOPE])) / (SLOPE + RHO)
        radius = np.abs(np.linalg.eigvals([of_scores, of_z])).max()
        assert (radius > 1) == grows
        residuals = jacobi(parties)[0]
        assert (residuals[-1] > residuals[0]) == grows
        if grows:
            assert residuals[-1] / residuals[-2] == pytest.approx(radius, rel=1e-6)


def test_lemma_1_is_exceeded_by_more_the_more_columns_there_are():
    changes = [largest_change(width) for width in (20, 40)]
    assert changes[0] == pytest.approx(changes[1], rel=0.01)
    assert min(changes) > 0.6


def small(**more):
    return {
        "schema": 1,
        "scenario": "epochs",
        "task": {
            "kind": "gisette_like",
            "rows": 90,
            "dimension": 12,
            "test_rows": 30,
            "split": {"by": "columns", "parts": [8, 4]},
        },
        "topology": {"kind": "star"},
        "clock": {"kind": "periodic", "period": 0.5},
        "protocols": {
            "admm": {"kind": "feature_sharing", "label": "admm"},
            "sgd": {"kind": "feature_sgd", "batch": 20, "label": "sgd"},
        },
        "stop": {"time": 1000.0, "epochs": 6.0},
        "record": {"every": 1.0, "metrics": ["objective", "test_loss", "updates"], "objective_of": "admm"},
        "seeds": 1,
        **more,
    }


def test_both_algorithms_stop_after_as_many_epochs_and_are_compared_there(tmp_path):
    runs = Runs(run(small(), out=tmp_path))
    epochs = {m["protocol"]: m["epoch"] for m in runs.manifests("admm") + runs.manifests("sgd")}
    assert epochs == {"admm": 2.0, "sgd": 2 * 90 / 20}
    for key, updates in (("admm", 12), ("sgd", 54)):
        assert float(runs.final(key, "updates").iloc[0]) == updates
    assert runs.end(["admm", "sgd"], "test_loss", "epochs") == pytest.approx(6.0)
    for key in ("admm", "sgd"):
        assert runs.at(6.0, key, "test_loss", "epochs").tolist() == runs.final(key, "test_loss").tolist()


@pytest.mark.slow
def test_on_a9a_gradients_end_where_admm_ends_after_as_many_epochs(tmp_path):
    """Test log losses after 100 epochs of each: .3241 both, to 5e-4."""
    folder = os.environ.get("HUSHNET_DATA")
    if not folder or not (Path(folder) / "a9a").is_dir():
        pytest.skip("HUSHNET_DATA names no folder that holds a9a")
    data = small(
        task={"kind": "a9a", "split": {"by": "columns", "parts": [66, 57]}},
        stop={"time": 4000.0, "epochs": 100.0},
        record={"every": 10.0, "metrics": ["objective", "test_loss", "updates"], "objective_of": "admm"},
    )
    data["protocols"]["sgd"] |= {"batch": 1000, "step_size": 1.0}
    runs = Runs(run(data, out=tmp_path))
    admm, sgd = (runs.at(100.0, key, "test_loss", "epochs") for key in ("admm", "sgd"))
    assert admm.iloc[0] == pytest.approx(0.3241, abs=5e-4)
    assert sgd.iloc[0] == pytest.approx(0.3241, abs=5e-4)
