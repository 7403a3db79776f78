"""Numbers that a correct build of gossip ADMM reaches on personalised linear classification.

Figure 1 of Bellet et al. 2018: zero latency, no loss, everybody online. Tolerances are those of means over the stated
numbers of runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.experiment import run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figure_1(tmp_path_factory):
    """Means over five instances, by protocol and activations: accuracy, gap of the objective, vectors."""
    collection = run(
        "bellet2018-fig1",
        overrides=("record.activations=500", "figures=[]"),
        out=tmp_path_factory.mktemp("fig1"),
    )
    rows = collection.trace.query("protocol in ['cd', 'admm'] and activations % 500 == 0")
    rows = rows.query(
        "(metric == 'accuracy' and statistic == 'mean') or (metric == 'objective' and statistic == 'gap')"
    )
    means = rows.groupby(["protocol", "activations", "metric"])["value"].mean().unstack("metric")
    means["vectors"] = rows.groupby(["protocol", "activations"])["vectors"].mean()
    return collection, means


def test_gossip_admm_reaches_its_accuracy_in_10_000_activations_and_80_000_vectors(figure_1):
    collection, means = figure_1
    assert means.loc[("admm", 10_000), "accuracy"] == pytest.approx(0.892, abs=0.012)
    totals = [m["totals"] for m in collection.manifests if m["protocol"] == "admm"]
    assert [t["vectors"] for t in totals] == [80_000] * 5


def test_coordinate_descent_beats_gossip_admm_per_activation_and_per_vector(figure_1):
    _, means = figure_1
    cd, admm = means.loc["cd"], means.loc["admm"]
    assert (cd["objective"][1:] < admm["objective"][1:]).all()
    # Vectors of either are proportional to its activations, so straight lines between records are exact enough.
    for metric in ("objective", "accuracy"):
        vectors = np.linspace(16_000, 80_000, 9)
        ours = np.interp(vectors, cd["vectors"], cd[metric])
        theirs = np.interp(vectors, admm["vectors"], admm[metric])
        if metric == "objective":
            assert (ours < theirs).all()
        else:
            # Both end at the optimum's accuracy; CD is there after 31,200 vectors, ADMM is not.
            assert (ours[:3] > theirs[:3] + 0.01).all()
