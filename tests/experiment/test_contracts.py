"""`run` replays users' own protocols once, and says beside every epsilon what that came to."""

from __future__ import annotations

import math
import pickle

import pytest
from hushnet.agents.errors import RunFailure
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.simulator import run
from hushnet.simulator.analysis.claimed_privacy import claim_of
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.summary import print_summary
from hushnet.simulator.contract import verdict as verdicts
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment.contract_replays import prove
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.worker_pool import InProcess
from hushnet.simulator.language.loading import load
from rich.console import Console

LAPLACE = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 4, "clip": 1.0}


class Liar(Protocol):
    """Says its model in public from its second step on."""

    decides = True

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("the start is 0"))

    def step(self, me):
        me.send("model", me.model, me.public("it was public before"))
        me.model = me.data.features.mean(axis=0)


class Honest(CoordinateDescent):
    """Adds noise to every gradient, as its parent does."""


class Stumbles(Protocol):
    """Asks for a neighbour that nobody has, in everybody's first step."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("the start is 0"))

    @staticmethod
    def step(me):
        me.model = me.heard[me.degree]
        me.message = me.model


def scenario(kind="mine", **fields):
    return {
        "schema": 1,
        "scenario": "own",
        "task": {"kind": "linear_classification", "agents": 8, "dimension": 3, "samples": [4, 8]},
        "topology": {"kind": "ring"},
        "protocols": {"mine": {"kind": kind, **fields}},
        "stop": {"time": 6},
        "record": {"every": 3, "metrics": ["accuracy", "epsilon"]},
        "seeds": 1,
    }


PRIVATE = {"mu": 0.5, "privacy": LAPLACE}


def ran(tmp_path, protocol, fields, **how):
    return run(scenario(**fields), protocols={"mine": protocol}, out=tmp_path / "results", **how)


def verified(result):
    trace = result.trace
    return trace[(trace["metric"] == "epsilon_verified") & (trace["statistic"] == "worst")]["value"].max()


def test_a_liar_has_no_verified_epsilon_and_the_sentence_says_why(tmp_path, capsys):
    result = ran(tmp_path, Liar, {})
    [manifest] = result.manifests
    assert math.isinf(verified(result))
    assert manifest["contract"]["status"] == "failed"
    assert "as public (it was public before), but it depends on the agent's data" in manifest["contract"]["text"]
    assert any("no epsilon is verified, because" in warning for warning in manifest["warnings"])
    print_summary(result.collection, Console(width=400))
    assert f"mine: privacy contract {manifest['contract']['text']}" in capsys.readouterr().out


def test_what_was_replayed_stands_beside_the_epsilon_of_an_honest_plugin(tmp_path, capsys):
    result = ran(tmp_path, Honest, PRIVATE)
    [manifest] = result.manifests
    text = manifest["contract"]["text"]
    assert text.startswith(
        "passed: 4 small worlds, own world, 32 steps, data of 8 agents changed at once and in 5 groups"
    )
    assert any("own world: 7 runs, 32 steps each" in part for part in manifest["privacy"]["looked_at"])
    assert manifest["privacy"]["not_looked_at"] == []
    assert manifest["privacy"]["contract"] == text
    assert manifest["privacy"]["verified"] < 1.1
    print_summary(result.collection, Console(width=400))
    assert f"contract {text}" in capsys.readouterr().out


def test_an_unchecked_plugin_has_no_verified_epsilon_until_it_is_checked_once(tmp_path, monkeypatch):
    checked, judged = [], verdicts.judged

    def noted(*given):
        checked.append(checked[0] if checked else judged(*given))
        return checked[0]

    monkeypatch.setattr("hushnet.simulator.experiment.contract_replays.judged", noted)
    unchecked = ran(tmp_path, Honest, PRIVATE, contract=False)
    assert math.isinf(verified(unchecked))
    assert "not checked: it was not asked for" in unchecked.manifests[0]["contract"]["text"]
    assert "was not checked" in claim_of(unchecked.manifests).details
    assert verified(ran(tmp_path, Honest, PRIVATE)) < 1.1
    assert verified(ran(tmp_path, Honest, PRIVATE, contract=False)) < 1.1
    ran(tmp_path, Honest, PRIVATE)
    assert len(checked) == 1
    ran(tmp_path, Honest, {**PRIVATE, "mu": 0.7})
    assert len(checked) == 2


def test_a_verdict_that_was_kept_is_not_taken_for_another_protocol_or_a_damaged_file(tmp_path):
    ran(tmp_path, Honest, PRIVATE)
    [file] = (tmp_path / "results" / ".cache").glob("contract-*.json")
    kept = file.read_text()
    for wrong in ('{"status": "passed"}', kept.replace('"of": "', '"of": "0')):
        file.write_text(wrong)
        assert ran(tmp_path, Honest, PRIVATE).manifests[0]["contract"]["status"] == "passed"
        assert file.read_text() == kept


def test_a_protocol_that_finishes_no_step_has_passed_nothing(tmp_path):
    with pytest.raises(RunFailure, match="out of bounds"):
        ran(tmp_path, Stumbles, {})
    [manifest] = load_all(tmp_path / "results").manifests
    assert manifest["contract"]["status"] == "unchecked"
    assert "nobody finishes a step: StepFailure: agent" in manifest["contract"]["text"]


@pytest.mark.parametrize("protocol", [Liar, Honest])
def test_workers_are_told_the_verdict(tmp_path, protocol):
    fields = PRIVATE if protocol is Honest else {}
    experiment = Experiment(load(scenario(**fields), extra={"mine": protocol}), tmp_path / "results")
    runs = list(experiment.runs())
    before = experiment.run_id(runs[0])
    prove(experiment, plan(experiment, runs), InProcess())
    told = pickle.loads(pickle.dumps(experiment.elsewhere().verdicts))
    assert told == experiment.verdicts
    assert (experiment.run_id(runs[0]) == before) == (protocol is Honest)


class Breaks(Honest):
    """Fails where agents are few."""

    def start(self, me):
        if self.problem.task.agents < 8:
            raise RuntimeError("too few of us")
        super().start(me)


def test_what_fails_in_a_small_world_for_other_reasons_is_a_warning(tmp_path):
    [manifest] = ran(tmp_path, Breaks, PRIVATE).manifests
    assert manifest["contract"]["text"].startswith("passed: own world, 32 steps")
    assert any("too few of us" in warning for warning in manifest["warnings"])
