"""`hushnet audit`: every private protocol that ships, liars, and what is written and said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import AuditFailure, InputError
from hushnet.protocols import catalog
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.protocols.noise import GradientNoise
from hushnet.simulator.audit.audit import Options, audit
from hushnet.simulator.audit.audit_command import audit_scenario
from hushnet.simulator.audit.verdicts import verdict
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.language.loading import load

SCENARIOS = ("audit-rows", "audit-columns")

CUBE = {
    "schema": 1,
    "scenario": "cube",
    "task": {"kind": "linear_classification", "agents": 3, "dimension": 20, "samples": [10, 10], "points": "cube"},
    "topology": {"kind": "ring"},
    "protocols": {
        "printed": {
            "kind": "coordinate_descent",
            "smoothness": "data",
            "privacy": {
                "mechanism": "laplace",
                "budget": {"epsilon": 0.5, "delta": 0.01, "by": "advanced_composition"},
                "updates": 3,
                "sensitivity": "claimed",
            },
        }
    },
    "stop": {"updates": 3},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
    "seeds": 1,
}


def experiment_of(source, out, **given):
    return Experiment(load(source, **given), out)


def test_every_private_protocol_that_ships_is_in_an_audited_scenario():
    audited = {p.kind for name in SCENARIOS for p in load(name).scenario.protocols.values()}
    private = {
        kind for kind in catalog.names() if {"privacy", "noise"} & set(catalog.resolve(kind).Parameters.model_fields)
    }
    assert private <= audited


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_noise_and_replays_of_every_private_protocol_that_ships_are_clean(scenario, tmp_path):
    """Everything is seeded; on other seeds a false alarm has a probability of 1e-4."""
    outcomes = audit(experiment_of(scenario, tmp_path), Options(("A", "B"), pairs=1, level=1e-4))
    assert [outcome.failures for outcome in outcomes] == [[] for _ in outcomes]
    for outcome in outcomes:
        assert outcome.replays
        if outcome.verified < np.inf:
            assert outcome.checks
            assert max(one.ratio for one in outcome.replays) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_attacks_on_every_private_protocol_that_ships_stay_below_what_is_verified(scenario, tmp_path):
    """2 x 1,000 runs each, seeded; on other seeds a false alarm has a probability of 1 %."""
    options = Options(trials=1000, jobs=2)
    outcomes = audit(experiment_of(scenario, tmp_path), options)
    assert [outcome.failures for outcome in outcomes] == [[] for _ in outcomes]
    for outcome in outcomes:
        if outcome.verified == np.inf:
            assert outcome.word == "refuted"
            continue
        assert outcome.audited <= outcome.verified
        assert [len(game.on_data) for game in outcome.games if game.kind == "runs"] == [1000]
        if outcome.key in ("cd-gaussian", "local-dp", "averaging"):  # Gaussian, unsampled, at full sensitivity
            (runs,) = (game for game in outcome.games if game.kind == "runs")
            assert runs.at_least(0.01) >= 0.75 * outcome.verified


def test_the_mechanism_alone_is_bounded_within_a_tenth(tmp_path):
    """Verified 1, 2 x 100,000 draws, seeded; over seeds the bound is .945 +- .02 of the truth."""
    overrides = (
        "protocols={one: {kind: local_dp, privacy: {mechanism: gaussian, target: {verified: 1.0, delta: 0.00001}, "
        "updates: 1, sensitivity: clip, clip: 1.0}}}",
    )
    (outcome,) = audit(experiment_of("audit-rows", tmp_path, overrides=overrides), Options(("C",), pairs=2, trials=0))
    assert len(outcome.games[0].on_data) == 100_000
    assert 0.9 <= outcome.audited / outcome.verified <= 1.0
    assert outcome.word == "proved"


def test_a_claim_is_refuted_by_an_attack(tmp_path):
    """Theorem 1 of Bellet et al. on the cube, with the paper's L0 = 1: the sensitivity is p = 20 times as large."""
    (outcome,) = audit(experiment_of(CUBE, tmp_path), Options(("C",), pairs=2, trials=0))
    assert outcome.claimed == pytest.approx(0.5)
    assert outcome.claimed < outcome.audited < outcome.verified
    assert (outcome.word, outcome.failures) == ("refuted", [])


def test_a_claim_is_refuted_by_a_counterexample(tmp_path):
    outcomes = audit(experiment_of("audit-columns", tmp_path), Options(("B",), pairs=1))
    printed = next(outcome for outcome in outcomes if outcome.key == "printed")
    assert (printed.audited, printed.word) == (np.inf, "refuted")
    assert "lie in the range of the party's columns" in printed.counterexample


class Understates(CoordinateDescent):
    """Noise for a sensitivity that is five times too small."""

    def prepare(self):
        super().prepare()
        sensitivities = self.noise.sensitivities
        self.noise.sensitivities = lambda count: tuple(number / 5 for number in sensitivities(count))


def lying(protocol, out):
    fields = load("audit-rows").scenario.protocols["cd-gaussian"].model_dump(exclude_unset=True) | {"kind": "liar"}
    protocols = {"protocols": {"liar": fields}}
    data = {**CUBE, **protocols, "task": {**CUBE["task"], "points": "ball", "dimension": 3}}
    return experiment_of(data, out, extra={"liar": protocol})


@pytest.mark.parametrize("tier", ["B", "C"])
def test_an_understated_sensitivity_fails_by_replay_and_by_attack(tier, tmp_path):
    (outcome,) = audit(lying(Understates, tmp_path), Options((tier,), pairs=2, trials=0))
    assert outcome.failures
    assert all(failure.startswith(f"tier {tier}") for failure in outcome.failures)


class MeanClipped(GradientNoise):
    """Noise for rows that are clipped, where their mean is clipped instead."""

    clip = None

    @property
    def clip_mean(self):
        return self.privacy.norm, self.privacy.clip


class ClipsTheMean(DecentralisedSGD):
    """Clips the mean of rows in place of the rows, and charges as if it were these."""

    def prepare(self):
        super().prepare()
        self.step_noise.__class__ = MeanClipped


def of_nets(out, model, protocol=DecentralisedSGD, **fields):
    """A private protocol on gradients whose agents learn a net."""
    audited = load("audit-rows").scenario
    own = audited.protocols["dsgd"].model_dump(exclude_unset=True) | {"kind": "own", **fields}
    task = {"kind": "linear_classification", "agents": 4, "dimension": 3, "samples": [4, 4], "model": model}
    data = {**CUBE, "task": task, "protocols": {"own": own}, "stop": {"updates": 5}}
    return experiment_of(data, out, extra={"own": protocol})


NETS = [{"kind": "softmax"}, {"kind": "perceptron", "hidden": [3]}]


@pytest.mark.slow
@pytest.mark.parametrize("model", NETS, ids=lambda model: model["kind"])
def test_noise_on_clipped_rows_of_a_net_withstands_noise_tests_replays_and_attacks(model, tmp_path):
    """Seeded; on other seeds a false alarm has a probability of 1 %."""
    (outcome,) = audit(of_nets(tmp_path, model), Options(("A", "B", "C"), pairs=2, trials=100))
    assert outcome.failures == []
    assert max(one.ratio for one in outcome.replays) > 0.5
    assert 0.25 * outcome.verified < outcome.audited <= outcome.verified


@pytest.mark.parametrize("model", NETS, ids=lambda model: model["kind"])
@pytest.mark.parametrize("tier", ["B", pytest.param("C", marks=pytest.mark.slow)])
def test_clipping_of_the_mean_in_place_of_the_rows_of_a_net_fails_by_replay_and_by_attack(tier, model, tmp_path):
    (outcome,) = audit(of_nets(tmp_path, model, ClipsTheMean), Options((tier,), pairs=2, trials=100))
    assert outcome.failures
    assert all(failure.startswith(f"tier {tier}") for failure in outcome.failures)


def test_noise_that_agents_share_fails(tmp_path):
    class Shared(CoordinateDescent):
        decides = True

        def step(self, me):
            usual, me.source_.make_stream = me.source_.make_stream, lambda purpose, agent, tick: usual(purpose, 0, tick)
            super().step(me)
            me.source_.make_stream = usual

    (outcome,) = audit(lying(Shared, tmp_path), Options(("A",)))
    assert any("repeated numbers" in failure or "stream" in failure for failure in outcome.failures), outcome.failures


def test_failures_end_the_command_with_code_3_and_everything_is_written_before(tmp_path):
    with pytest.raises(AuditFailure, match="more than the sensitivity") as failure:
        audit_scenario(lying(Understates, tmp_path), Options(("B",), pairs=1), quiet=True)
    assert failure.value.exit_code == 3
    assert pd.read_parquet(tmp_path / "audit" / "protocols.parquet")["failures"].str.len().gt(0).all()


def test_tables_figure_and_words_are_written(tmp_path, capsys):
    arguments = ["audit", "audit-rows", "--pairs", "1", "--trials", "5", "--out", str(tmp_path), "--quiet"]
    only = (
        "protocols={cd: {kind: coordinate_descent, label: '=1+cmd', mu: 0.04, privacy: {mechanism: laplace, "
        "updates: 2, clip: 0.2, target: {verified: 1.0, delta: 0.001}}}}"
    )
    assert main([*arguments, "--set", only]) == 0
    folder = tmp_path / "audit"
    row = pd.read_parquet(folder / "protocols.parquet").iloc[0]
    assert (row["verdict"], row["failures"]) == ("proved", "")
    assert 0 <= row["audited"] <= row["verified"] <= row["claimed"] * (1 + 1e-6)
    assert len(pd.read_parquet(folder / "ratios.parquet")) == 10
    assert set(pd.read_parquet(folder / "profile.parquet")["curve"]) >= {"claimed", "verified"}
    assert {path.name for path in folder.iterdir()} >= {"profile.png", "profile.pdf", "profile.csv", "audit.json"}
    assert set(pd.read_csv(folder / "profile.csv")["label"]) == {"'=1+cmd"}, "a spreadsheet computes it"
    said = capsys.readouterr().out
    assert "proved" in said
    assert "tier B: 1 pairs" in said
    assert "run as the scenario runs it, event, because every step is watched" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tier", "A,D"], "must be some of A, B, C"),
        (["--pairs", "0"], "must be at least 1"),
        (["--trials", "1"], "must be 0, or at least 2"),
        (["--level", "1.5"], "must lie between 0 and 1"),
        (["--jobs", "none"], "must be a number from 1, or auto"),
        (["--set", "protocols={alone: {kind: local}}"], "no epsilon to audit"),
    ],
)
def test_what_cannot_be_audited_is_said_in_one_sentence(arguments, words, capsys, tmp_path):
    assert main(["audit", "audit-rows", *arguments, "--out", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_only_a_lower_bound_refutes():
    assert verdict(1.0, 0.5) == "proved"
    assert verdict(1.0, 50.0) == "not proved"
    assert verdict(1.0, 50.0, lower=1.1) == "refuted"
    assert verdict(np.inf, np.inf) == "no claim"
    with pytest.raises(InputError, match="--pairs"):
        Options(pairs=0)
