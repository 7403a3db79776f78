"""Numbers that a correct build of Vanhaesebrouck, Bellet and Tommasi 2017 reaches: zero latency, no loss, all online.

Established by independent implementations; tolerances are those of a mean over the stated instances.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.objectives.objectives import local_models
from hushnet.agents.objectives.propagation_objective import Propagation
from hushnet.agents.tasks.mean_estimation import MeanEstimation
from hushnet.simulator.analysis.targets import reached
from hushnet.simulator.experiment import run
from scipy.spatial.distance import cdist

pytestmark = pytest.mark.slow

STEPS = "{steps: 10, step_size: 1.0}"


def finals(collection, protocol, metric):
    """Mean over seeds of a protocol's last mean over agents."""
    rows = collection.trace.query("protocol == @protocol and metric == @metric and statistic == 'mean'")
    return rows.groupby("seed")["value"].last().mean()


@pytest.mark.parametrize("spread", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_two_moons_errors_and_wins(spread):
    """Figure 2 left and middle: error .008 +- .002 with c_i = m_i / 100 at every spread; .84 +- .05 wins over C = I/2.

    200 instances of seeds 0 to 199, in closed form; a tie counts one half.
    """
    errors, wins = [], []
    for seed in range(200):
        task = MeanEstimation(kind="mean_estimation", spread=spread).build(
            rng=np.random.default_rng(seed), data_dir=None
        )
        graph = Graph.from_matrix(np.exp(-cdist(task.profiles, task.profiles, "sqeuclidean") / (2 * 0.1**2)))
        solitary, truth, both = local_models(task), task.test.labels[:, None], []
        for confidence in (task.train.counts / 100, np.full(300, 0.5)):
            models, _ = Propagation(graph, solitary, (0.01 / 0.99) * confidence).minimise()
            both.append(float(np.mean((models - truth) ** 2)))
        errors.append(both[0])
        wins.append(0.5 if abs(both[0] - both[1]) < 1e-12 else float(both[0] < both[1]))
    assert np.mean(errors) == pytest.approx(0.008, abs=0.002)
    if spread == 0:
        assert np.mean(wins) == 0.5
    if spread == 1:
        assert np.mean(wins) == pytest.approx(0.84, abs=0.05)


def test_the_scenario_of_figure_1_has_the_errors_of_the_closed_form(tmp_path):
    """At spread 1, 10 instances: .008 +- .002 with confidence, and more without."""
    collection = run("vanhaesebrouck2017-fig1", overrides=("figures=[]",), out=tmp_path, seeds=10)
    assert finals(collection, "with", "mse") == pytest.approx(0.008, abs=0.002)
    assert finals(collection, "without", "mse") > 1.5 * finals(collection, "with", "mse")


@pytest.mark.parametrize(
    ("dimension", "propagation", "learning"), [(2, 0.5, 0.5), (20, 0.8, 0.9), (50, 0.8, 0.9), (100, 0.85, 0.95)]
)
def test_collaboration_beats_solitary_models_and_those_a_common_one_at_every_dimension(
    tmp_path, dimension, propagation, learning
):
    """Figure 3 left, 10 instances, alpha tuned as in the paper; at p = 50 the four accuracies, each +- .02.

    Collaborative learning in synchronous rounds, which are at the optimum's accuracy after 40. Means are in order, and
    so are at least nine of ten instances, which of two equal methods happens with a probability of .011.
    """
    protocols = (
        "protocols={solitary: {kind: solitary}, consensus: {kind: consensus}, "
        f"mp: {{kind: model_propagation, alpha: {propagation}, solitary: {STEPS}, closed_form: true}}, "
        f"cl: {{kind: collaborative_admm, alpha: {learning}, rho: 1.0, solitary: {STEPS}, schedule: rounds}}}}"
    )
    record = "record={activations: 2000, metrics: [accuracy]}"
    overrides = (protocols, "sweep={}", f"task.dimension={dimension}", "stop={updates: 40}", record, "figures=[]")
    collection = run("vanhaesebrouck2017-fig3-left", overrides=overrides, out=tmp_path, seeds=10)
    rows = collection.trace.query("metric == 'accuracy' and statistic == 'mean'")
    ends = rows.groupby(["protocol", "seed"])["value"].last().unstack("protocol")
    for better, worse in pairwise(("cl", "mp", "solitary", "consensus")):
        assert ends[better].mean() > ends[worse].mean()
        assert (ends[better] > ends[worse]).sum() >= 9
    starts = rows.query("protocol == 'cl' and time == 0").set_index("seed")["value"]
    assert list(starts) == list(ends["solitary"])
    if dimension == 50:
        printed = {"solitary": 0.608, "consensus": 0.511, "mp": 0.814, "cl": 0.859}
        assert ends.mean().to_dict() == pytest.approx(printed, abs=0.02)


def test_gossip_needs_about_as_many_communications_as_rounds(tmp_path):
    """Figure 2 right: the ratio of the errors at 897,000 communications is 1.06 +- .15.

    The measure is the paper's, "average L2 error of the models": of every agent's model the l2 distance to its true
    mean, which in one dimension is the absolute value, averaged over agents. The ratio depends on the instance, with a
    deviation of .11, so it is averaged over ten, of the seeds 0 to 9; the mean's standard error is .035, and 1.02
    would be outside of the tolerance with a probability below .001.
    """
    overrides = ("record={every: 2000.0, metrics: [mse]}", "seeds={data: 10, run: 1}", "figures=[]")
    collection = run("vanhaesebrouck2017-fig2-right", overrides=overrides, out=tmp_path)
    distances = collection.agents.assign(distance=np.sqrt(collection.agents["mse"]))
    errors = distances.groupby(["protocol", "seed"])["distance"].mean()
    ratios = errors["gossip"] / errors["synchronous"]
    assert len(ratios) == 10
    assert ratios.mean() == pytest.approx(1.06, abs=0.15)
    totals = [manifest["totals"]["vectors"] for manifest in collection.manifests]
    assert totals == [pytest.approx(897_000, abs=300)] * 20


def test_communications_to_90_percent_of_the_best_accuracy_are_linear_in_the_number_of_agents(tmp_path):
    """Figure 5: R^2 > .98 for 100 to 1000 agents with 10 nearest neighbours, two instances; both methods."""
    collection = run("vanhaesebrouck2017-fig5", overrides=("figures=[]",), out=tmp_path, seeds=2)
    found = reached(collection, None, "messages").groupby(["protocol", "task.agents"])["value"].mean()
    for method in ("mp", "cl"):
        needed = found[method]
        assert list(needed.index) == [100, 250, 500, 1000]
        correlation = np.corrcoef(needed.index, needed)[0, 1]
        assert correlation > 0
        assert correlation**2 > 0.98
