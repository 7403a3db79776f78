"""A gap is measured from a minimum that bounds what it says it bounds, and a start without an end is no start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hushnet.agents.errors import Divergence, Inconsistency
from hushnet.agents.losses import LOSSES
from hushnet.agents.objectives import minima
from hushnet.agents.objectives.consensus_objective import ConsensusObjective
from hushnet.agents.objectives.objectives import LocalOnly, Objective
from hushnet.protocols.algorithms.baselines import Local, LocalParameters
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm, ConsensusAdmmParameters
from hushnet.protocols.base import Layout, Protocol
from hushnet.simulator.contract.bench import small_setting, small_task
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive


@dataclass(frozen=True)
class Mistaken(Objective):
    """An objective whose minimiser is wrong by so much."""

    right: Objective
    error: float

    @property
    def minimum_over(self):
        return self.right.minimum_over

    @property
    def fingerprint(self):
        return f"{self.right.fingerprint} {self.error}"

    def value(self, models):
        return self.right.value(models)

    def value_and_gradient(self, models):
        return self.right.value_and_gradient(models)

    def minimise(self):
        models, minimum = self.right.minimise()
        return models, minimum + self.error


@pytest.fixture(autouse=True)
def as_shipped(monkeypatch):
    """The mistaken objective is looked at as a shipped one is, whose minimum is checked by the gap alone."""
    monkeypatch.setattr(minima, "check_objective", lambda *_: None)


def run(protocol, parameters, objective=None, *, time=30.0, setting=None):
    """The gaps of a run."""
    recorder = Recorder(["objective"], objective=objective)
    drive(World(setting or small_setting(time=time, empty=False), protocol, parameters, every=1.0, recorder=recorder))
    return recorder.trace().query("statistic == 'gap'")["value"].to_numpy()


@pytest.mark.parametrize("error", [0.0, 0.05])
def test_a_gap_below_zero_is_an_error_where_the_minimum_bounds_all_models(error):
    objective, parameters = Mistaken(LocalOnly(small_task(empty=False)), error), LocalParameters(kind="local")
    if error:
        with pytest.raises(Inconsistency, match="below its minimum"):
            run(Local, parameters, objective)
    else:
        gaps = run(Local, parameters, objective)
        assert -1e-9 < gaps[-1] < 1e-6


@pytest.mark.parametrize("error", [0.0, 0.05])
def test_models_that_differ_may_lie_below_a_minimum_over_agreeing_ones_and_their_mean_may_not(error):
    parameters = ConsensusAdmmParameters(kind="consensus_admm", loss_weight=20.0)
    right = ConsensusObjective(small_task(empty=False), 20.0, parameters.rho)
    if error:
        with pytest.raises(Inconsistency, match="below its minimum"):
            run(ConsensusAdmm, parameters, Mistaken(right, error), time=400.0)
    else:
        gaps = run(ConsensusAdmm, parameters, Mistaken(right, error), time=400.0)
        assert gaps.min() < -1e-3, "the models never differed, so this shows nothing"
        assert abs(gaps[-1]) < 1e-6


class Far(Protocol):
    """Starts where a squared loss is beyond every number, and stays there."""

    def layout(self):
        return Layout(agent={"model": self.problem.task.dimension})

    def start(self, me):
        me.model = 1e200

    def objective(self):
        return LocalOnly(self.problem.task)


def test_a_start_with_an_infinite_objective_is_a_divergence():
    setting = small_setting(time=3.0, empty=False)
    setting = replace(setting, task=replace(setting.task, loss=LOSSES["squared"], metric="rmse"))
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(Divergence, match=r"the objective is inf at the start"),
    ):
        run(Far, Far.Parameters(kind="far"), setting=setting)
