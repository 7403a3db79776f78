"""The curves of a page are those of the figures."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.figures import plots
from hushnet.simulator.report.recording import RunRecord

from .made import LABELS, make_experiment, make_run

PAIRS = [("accuracy", "mean"), ("objective", "gap"), ("traffic", "lost")]


def runs_of(collection, protocol):
    return [rank for rank, manifest in enumerate(collection.manifests) if manifest["protocol"] == protocol]


@pytest.mark.parametrize("axis", ["time", "activations", "vectors", "bytes"])
def test_a_curve_is_that_of_the_figure(tmp_path, axis):
    runs = [make_run(p, seed, status="diverged" if seed == 2 else "complete") for seed in range(4) for p in LABELS]
    for run in runs:
        if run.manifest["status"] == "diverged":
            run.trace = run.trace[run.trace["time"] <= 6]
    collection = load_all(make_experiment(tmp_path, runs, time_unit="30 s"))
    recording = RunRecord(collection, PAIRS)
    for metric, (name, statistic) in enumerate(PAIRS):
        points = plots(collection, {"y": name, "statistic": statistic, "x": axis})[0].points
        for protocol in LABELS:
            drawn = points[points["protocol"] == protocol]
            curves = recording.curves(runs_of(collection, protocol), axis, 1000)
            np.testing.assert_array_equal(curves.x, drawn["x"])
            np.testing.assert_allclose(curves.mean[:, metric], drawn["mean"], rtol=1e-14)
            np.testing.assert_array_equal(curves.n[:, metric], drawn["n"])


def test_a_thinned_curve_has_its_ends_and_points_of_the_whole(tmp_path):
    collection = load_all(make_experiment(tmp_path))
    recording = RunRecord(collection, PAIRS)
    whole, thin = (recording.curves(runs_of(collection, "cd"), "vectors", places) for places in (1000, 5))
    assert len(thin.x) == 5
    assert (thin.x[0], thin.x[-1]) == (whole.x[0], whole.x[-1])
    kept = np.searchsorted(whole.x, thin.x)
    np.testing.assert_array_equal(thin.mean, whole.mean[kept])


def test_epsilon_is_an_axis_and_an_infinite_one_has_no_curve(tmp_path):
    runs = [make_run("cd-private"), make_run("cd")]
    collection = load_all(make_experiment(tmp_path, runs))
    recording = RunRecord(collection, [*PAIRS, ("epsilon_verified", "worst")])
    private = recording.curves(runs_of(collection, "cd-private"), "epsilon", 100)
    np.testing.assert_allclose(private.x, 3.72 * np.arange(11))
    np.testing.assert_array_equal(private.mean[:, 3], private.x)
    assert len(recording.curves(runs_of(collection, "cd"), "epsilon", 100).x) == 0
