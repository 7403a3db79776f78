"""Tuning: equal trials, seeds and validation rows apart, at one epsilon, what is recorded of it, and mistakes in it."""

import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import Divergence, InputError
from hushnet.agents.tables import Table
from hushnet.agents.tasks.linear_classification import LinearClassification
from hushnet.agents.tasks.splits import validation_part
from hushnet.protocols.privacy.budget import Total
from hushnet.simulator.analysis.results import Collection, load_all
from hushnet.simulator.experiment import Experiment, execute, perform, run
from hushnet.simulator.experiment.trial_scores import Trial, exploded_runs, without_exploded
from hushnet.simulator.experiment.tuning import choose, in_short, sentences, trial_experiment
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.points import FIRST_SEED, trial_seeds
from hushnet.simulator.storage.files import json_text
from hypothesis import given, settings
from hypothesis import strategies as st

TUNE = {"over": {"cd.mu": [0.01, 0.1, 1.0], "mp.alpha": [0.5, 0.9, 0.99]}, "seeds": 2}


def written(**fields):
    return {
        "schema": 1,
        "scenario": "tiny",
        "target": {"metric": "accuracy", "level": 0.7},
        "task": {"kind": "linear_classification", "agents": 6, "dimension": 3, "samples": [5, 20]},
        "topology": {"kind": "ring"},
        "protocols": {
            "local": {"kind": "local"},
            "cd": {"kind": "coordinate_descent"},
            "mp": {"kind": "model_propagation"},
        },
        "stop": {"time": 3},
        "seeds": 2,
        "tune": TUNE,
        **fields,
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A tuned and finished experiment: its collection and its folder."""
    folder = tmp_path_factory.mktemp("results") / "tiny"
    return run(written(sweep={"network.loss": [0.0, 0.2]}), out=folder), folder


def task_of(counts, seed=0):
    rng, owners = np.random.default_rng(seed), np.repeat(np.arange(len(counts)), counts)
    whole = LinearClassification(kind="linear_classification", agents=len(counts), dimension=2).build(
        rng=rng, data_dir=None
    )
    rows = np.arange(len(owners), dtype=float)[:, None] * np.ones(2)
    return replace(whole, train=Table.from_owners(rows, np.ones(len(owners)), owners, len(counts)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any), st.floats(0.05, 0.95), st.integers(0, 99))
def test_every_training_row_is_either_held_out_or_kept_and_no_agent_loses_its_last(counts, share, seed):
    task = task_of(counts)
    part = validation_part(task, share, rng=np.random.default_rng(seed))
    for agent, count in enumerate(counts):
        kept, held, all_ = (t.shard(agent).stored[:, 0].tolist() for t in (part.train, part.test, task.train))
        assert sorted([*kept, *held]) == all_
        assert len(kept) >= min(count, 1)
        assert len(held) == min(round(share * count), max(count - 1, 0))


@pytest.mark.parametrize(
    ("task", "topology", "protocol"),
    [
        ({"kind": "mean_estimation", "agents": 8}, {"kind": "complete"}, {"kind": "model_propagation"}),
        (
            {"kind": "synthetic_ratings", "users": 8, "items": 12, "ratings": [4, 10], "features": 3},
            {"kind": "complete"},
            {"kind": "coordinate_descent", "radius": 1.0},
        ),
        (
            {"kind": "gisette_like", "rows": 40, "dimension": 6, "split": {"by": "columns", "parts": [3, 3]}},
            {"kind": "star"},
            {"kind": "feature_sharing"},
        ),
    ],
    ids=["means", "ratings", "columns"],
)
def test_held_out_rows_can_be_measured_on_every_sort_of_task(task, topology, protocol, tmp_path):
    data = written(
        task=task, topology=topology, protocols={"a": protocol}, tune=None, target=None, validation=0.3, seeds=1
    )
    experiment = Experiment(load(data), tmp_path)
    (only,) = experiment.runs()
    held_out = experiment.data(only)[0]
    result = execute(experiment, only)
    assert set(result.trace["metric"]) == {held_out.metric}
    assert np.isfinite(result.trace["value"]).all()
    assert result.manifest["task"]["notes"]["validation"] == 0.3


def test_trials_on_a_data_set_from_a_file_keep_its_reported_split(tmp_path):
    rows = "\n".join(f"{agent},{agent + row},{row % 2}" for agent in range(4) for row in range(6))
    (tmp_path / "rows.csv").write_text(f"who,x,y\n{rows}\n", encoding="utf-8")
    task = {"kind": "csv", "path": "rows.csv", "label": "y", "agent": "who"}
    data = written(task=task, seeds=[3, 4], tune={**TUNE, "seeds": 3})
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps(data), encoding="utf-8")
    experiment = Experiment(load(path), tmp_path / "results")
    assert [pair.data for pair in trial_seeds(experiment.loaded.scenario)] == [3, 4, 3]
    reported = {run.data_seed: experiment.data(run)[0] for run in experiment.runs()}
    trials = trial_experiment(experiment)
    for run_ in list(trials.runs())[::2]:
        task, whole = trials.data(run_)[0], reported[run_.data_seed]
        assert len(task.train.labels) + len(task.test.labels) == len(whole.train.labels)
        labelled = np.concatenate([task.train.features, task.test.features])
        assert sorted(labelled.tolist()) == sorted(whole.train.features.tolist())


def test_every_tuned_protocol_gets_the_same_trials_and_nothing_else_is_tried(done):
    tried = pd.read_parquet(done[1] / "tuning.parquet")
    assert tried.groupby("protocol").size().to_dict() == {"cd": 6, "mp": 6}
    assert set(tried["seed"]) == {str(FIRST_SEED), str(FIRST_SEED + 1)}
    assert np.isfinite(tried["score"]).all()


def test_the_best_mean_is_chosen_and_reported_with(done):
    collection, folder = done
    tried = pd.read_parquet(folder / "tuning.parquet")
    means = tried.groupby(["protocol", "values"], sort=False)["score"].mean()
    account = {chosen["protocol"]: chosen for chosen in collection.index["tuning"]["chosen"]}
    for protocol, field in (("cd", "mu"), ("mp", "alpha")):
        best = json.loads(means[protocol].idxmax())
        assert account[protocol]["values"] == best
        marked = tried[tried["chosen"] & (tried["protocol"] == protocol)]
        assert [json.loads(values) for values in marked["values"].unique()] == [best]
        manifests = [m for m in collection.manifests if m["protocol"] == protocol]
        assert {m["scenario"]["protocols"][protocol][field] for m in manifests} == {best[field]}
        assert account[protocol]["score"] == pytest.approx(means[protocol].max())
    assert {m["seed"] for m in collection.manifests} == {0, 1}
    assert collection.grid == ["network.loss"]
    assert collection.index["target"] == {"metric": "accuracy", "level": 0.7}


def test_tuning_at_each_point_may_choose_differently_and_says_where(tmp_path):
    data = written(sweep={"task.dimension": [2, 6]}, tune={**TUNE, "at": "every point"})
    collection = run(data, out=tmp_path)
    chosen = collection.index["tuning"]["chosen"]
    assert [(c["protocol"], c["grid"]) for c in chosen] == [
        (key, {"task.dimension": dimension}) for dimension in (2, 6) for key in ("cd", "mp")
    ]
    for entry in chosen:
        (field, value), key = *entry["values"].items(), entry["protocol"]
        manifests = [m for m in collection.manifests if m["protocol"] == key and m["grid"] == entry["grid"]]
        assert {m["scenario"]["protocols"][key][field] for m in manifests} == {value}


def with_scores(monkeypatch, tmp_path, scores, fields=None, **tune):
    """What is chosen where scores, by protocol and trial, are these, whatever the trials have come to."""
    experiment = Experiment(load(written(tune={**TUNE, **tune}, **(fields or {}))), tmp_path)
    perform(trial_experiment(experiment))
    there = load_all(tmp_path / "tuning")
    pairs = zip(there.runs, there.manifests, strict=True)
    value = {run_id: scores[m["protocol"]][m["grid"]["trial"]] for run_id, m in pairs if m["protocol"] in scores}
    frame = pd.DataFrame({"run": list(value), "value": list(value.values())})
    monkeypatch.setattr("hushnet.simulator.experiment.tuning.final_values", lambda *_: frame)
    return choose(experiment, lambda trials: []).tuning


def test_a_best_value_at_an_end_and_broken_trials_are_warned_of(monkeypatch, tmp_path):
    account = with_scores(monkeypatch, tmp_path, {"cd": [0.7, 0.9, 0.8], "mp": [0.7, np.nan, 0.8]})
    assert [c["values"] for c in account["chosen"]] == [{"mu": 0.1}, {"alpha": 0.99}]
    assert account["warnings"] == [
        "mp.alpha = 0.99 is the largest value that was tried; the best one may lie beyond",
        "1 of 3 trials of mp did not reach their end and were left out",
    ]
    lines = list(sentences(account))
    assert ("tuned cd: mu = 0.1 (validation accuracy 0.9, best of 3 trials on 2 seeds)", False) in lines
    assert any("no test row" in line for line, _ in lines)


@pytest.mark.parametrize(
    ("at", "chosen", "said"),
    [
        ("first", [0.1], "tuned by validation accuracy at network.loss = 0.0, and used at every point: cd.mu 0.1 of "),
        ("every point", [0.1, 1.0], "tuned by validation accuracy at every point: cd.mu 0.1 or 1.0 of 0.01, 0.1, 1.0"),
        ("worst", [0.01], "tuned by validation accuracy for the worst of all points, and used at all of them: "),
    ],
)
def test_a_summary_says_where_it_was_tuned_and_over_what(monkeypatch, tmp_path, at, chosen, said):
    scores = {0.0: [0.6, 0.9, 0.5], 0.2: [0.7, 0.4, 0.8]}  # worst are 0.6, 0.4 and 0.5
    loaded = chosen_over(scores, at, monkeypatch, tmp_path)
    assert [entry["values"]["mu"] for entry in loaded.tuning["chosen"]] == chosen
    assert [point.scenario.protocols["cd"].mu for point in loaded.points] == (chosen * 2)[:2]
    assert in_short(loaded.tuning).startswith(said)


def chosen_over(scores, at, monkeypatch, tmp_path):
    """What is chosen where scores, by the points of a sweep and trial, are these, whatever the trials have come to."""
    experiment = Experiment(
        load(
            written(tune={"over": {"cd.mu": [0.01, 0.1, 1.0]}, "seeds": 1, "at": at}, sweep={"network.loss": [*scores]})
        ),
        tmp_path,
    )
    trials = trial_experiment(experiment)
    assert trials is not None
    perform(trials)
    there = load_all(tmp_path / "tuning")
    value = [scores[m["grid"]["network.loss"]][m["grid"]["trial"]] for m in there.manifests]
    frame = pd.DataFrame({"run": there.runs, "value": value})
    monkeypatch.setattr("hushnet.simulator.experiment.tuning.final_values", lambda *_: frame)
    return choose(experiment, lambda _: [])


def test_a_curve_that_exploded_does_not_win_by_its_end():
    made = pd.DataFrame(
        [
            (f"{trial}", "objective", "gap", value)
            for trial, curve in enumerate([[0.1, 1.1, 1.2], [1.0, 11.0, 0.1], [1.0, 9.9, 0.5]])
            for value in curve
        ],
        columns=["run", "metric", "statistic", "value"],
    )
    manifests = [
        {"protocol": "cd", "seed": 7, "grid": {"trial": trial}, "task": {"metric": "accuracy"}} for trial in range(3)
    ]
    there = Collection(made, made, manifests, ["0", "1", "2"])
    exploded = exploded_runs(there, "objective", "gap")
    assert {json.loads(where)["trial"] for _, _, where in exploded} == {1}
    tried = [Trial("cd", 0, k, {}, {7: score}, json_text({"trial": k})) for k, score in enumerate([0.8, 0.1, 0.5])]
    kept, said = without_exploded(tried, exploded)
    assert [np.isfinite(trial.score) for trial in kept] == [True, False, True]
    assert said[0].startswith("1 of 3 trials of cd were more than 10 times worse on the way than at both ends")
    wild = {("cd", 7, trial.where) for trial in tried}
    assert without_exploded(tried, wild)[0] == tried, "where all did, the best of them is taken"


def test_a_trial_that_a_reported_run_would_break_off_is_not_chosen(tmp_path):
    """Signs of models that grow without end are as good as those of others: accuracy alone says nothing of it."""
    made = written(
        task={"kind": "linear_classification", "agents": 6, "dimension": 3, "samples": [5, 20], "loss": "squared"},
        protocols={"sgd": {"kind": "decentralised_sgd"}},
        tune={"over": {"sgd.step_size": [30.0, 0.05, 40.0]}, "seeds": 3},
        stop={"time": 20},
    )
    collection = run(made, out=tmp_path)
    assert "2 of 3 trials of sgd did not reach their end and were left out" in collection.index["tuning"]["warnings"]
    assert {m["status"] for m in collection.manifests} == {"complete"}


def test_trials_that_exploded_have_reached_their_end(monkeypatch, tmp_path):
    monkeypatch.setattr("hushnet.simulator.experiment.tuning.exploded_runs", _exploded_in_the_first_trial)
    account = with_scores(monkeypatch, tmp_path, {"cd": [0.9, 0.8, 0.7], "mp": [0.7, 0.9, 0.8]})
    assert account["chosen"][0]["values"] == {"mu": 0.1}
    said = [warning for warning in account["warnings"] if "trials of cd" in warning]
    assert said == ["1 of 3 trials of cd were more than 10 times worse on the way than at both ends, and do not count"]


def _exploded_in_the_first_trial(there, *_):
    return {("cd", m["seed"], json_text(m["grid"])) for m in there.manifests if m["grid"] == {"trial": 0}}


@pytest.mark.parametrize(
    ("scores", "level"),
    [
        ({0.0: [0.5, 0.5, 0.9], 0.2: [0.6, 0.4, 0.2]}, []),
        ({0.0: [0.5, 0.6, 0.9], 0.2: [0.6, 0.5, 0.2]}, ["2 of 3 trials of cd did equally well"]),
    ],
    ids=["at one point alone", "at the worst points"],
)
def test_trials_are_level_by_what_decides(scores, level, monkeypatch, tmp_path):
    account = chosen_over(scores, "worst", monkeypatch, tmp_path).tuning
    assert account["chosen"][0]["values"]["mu"] == 0.01
    assert [w.split(", and")[0] for w in account["warnings"] if "equally" in w] == level


def test_tuning_on_test_rows_is_warned_of(monkeypatch, tmp_path):
    scores, fields = {"cd": [0.7, 0.9, 0.8], "mp": [0.7, 0.9, 0.8]}, {"record": {"every": 1.0}}
    account = with_scores(monkeypatch, tmp_path, scores, fields, metric="accuracy", seeds=1)
    assert "tuned by accuracy, which looks at test rows" in account["warnings"][0]


def test_tuned_fields_are_listed_beside_a_private_protocols_epsilon(tmp_path):
    privacy = {"mechanism": "gaussian", "target": {"verified": 1.0, "delta": 1e-3}, "updates": 3, "clip": 1.0}
    protocols = {"cd": {"kind": "coordinate_descent", "radius": 1.0, "privacy": privacy}, "child": {"like": "cd"}}
    collection = run(written(protocols=protocols, tune={"over": {"cd.mu": [0.1, 0.2]}, "seeds": 1}), out=tmp_path)
    for manifest in collection.manifests:
        assert "tuned mu (chosen by looking at data)" in manifest["privacy"]["assumed_public"]
        assert manifest["privacy"]["verified"] <= 1.0
    assert len({m["scenario"]["protocols"][m["protocol"]]["mu"] for m in collection.manifests}) == 1


def test_an_objective_that_the_tuned_field_changes_cannot_decide(tmp_path):
    tune = {"over": {"cd.mu": [0.1, 0.2], "mp.alpha": [0.5, 0.6]}, "metric": "objective"}
    experiment = Experiment(load(written(tune=tune)), tmp_path / "tiny")
    with pytest.raises(InputError, match=r"cd are measured by other objectives .*mu 0\.1.*mu 0\.2.*objective_of"):
        choose(experiment, lambda trials: pytest.fail("trials were run"))
    record = {"every": 1.0, "metrics": ["objective", "accuracy"], "objective_of": "cd"}
    with pytest.raises(InputError, match="measured by other objectives"):
        choose(Experiment(load(written(tune=tune, record=record)), tmp_path / "own"), lambda trials: [])


def test_a_trial_may_be_judged_by_all_its_records_and_not_by_its_end(tmp_path):
    names = {}
    for over in (False, True):
        tune = {"over": {"cd.mu": [0.01, 1.0]}, "metric": "accuracy", "seeds": 1, "over_the_run": over}
        loaded = load(written(tune=tune, record={"every": 1.0, "metrics": ["accuracy"]}))
        chosen = choose(Experiment(loaded, tmp_path / str(over)), perform)
        trials = load_all(tmp_path / str(over) / "tuning").trace.query("protocol == 'cd' and statistic == 'mean'")
        by_run = trials.groupby("run")["value"]
        scores = by_run.mean() if over else by_run.last()
        assert chosen.tuning["chosen"][0]["score"] == pytest.approx(scores.max())
        names[over] = chosen.tuning["decided_by"]
    assert names == {False: "accuracy mean", True: "accuracy mean over the run"}


def test_a_protocol_of_which_no_trial_ends_cannot_be_tuned(monkeypatch, tmp_path):
    with pytest.raises(Divergence, match="none of the 3 trials of mp reached its end"):
        with_scores(monkeypatch, tmp_path, {"cd": [1, 1, 1], "mp": [np.nan] * 3}, seeds=1)


OVER = {
    "dvp.noise.updates": [2, 5],
    "dvp.penalty": [0.5, 1.0],
    "pp.noise.updates": [5, 10],
    "pp.penalty_growth": [1.01, 1.05],
}
CLAIMED, VERIFIED = {"claimed": 5.0}, {"verified": 3.0, "delta": 1e-5}


def perturbed(budget, over=OVER, **noise):
    """Dual variable perturbation and penalty perturbation on five agents."""
    protocol = {"kind": "perturbed_admm", "loss_weight": 5.0, "noise": {"alpha": 3.0, "updates": 10, **noise}}
    return {
        "schema": 1,
        "scenario": "tiny",
        "task": {
            "kind": "linear_classification",
            "agents": 5,
            "dimension": 3,
            "samples": [20, 20],
            "points": "ball",
        },
        "topology": {"kind": "ring"},
        "clock": {"kind": "periodic"},
        "protocols": {"dvp": protocol, "pp": copy.deepcopy(protocol) | {"penalty_growth": 1.05}},
        "stop": {"time": 10},
        "record": {"every": 1.0, "metrics": ["training_loss", "epsilon"]},
        "seeds": 2,
        "tune": {"over": over, "budget": budget, "metric": "training_loss", "seeds": 1},
    }


@pytest.mark.parametrize(
    ("budget", "which"), [(CLAIMED, "claimed"), (VERIFIED, "verified")], ids=["claimed", "verified"]
)
def test_dual_and_penalty_perturbation_are_tuned_at_an_equal_epsilon(budget, which, tmp_path):
    collection = run(perturbed(budget), out=tmp_path)
    tuning = collection.index["tuning"]
    assert tuning["trials"] == 4
    assert tuning["seeds"] == [FIRST_SEED]
    assert tuning["budget"] == Total(**budget).words
    assert any(f"tuned dvp at a {which} epsilon of" in line for line, _ in sentences(tuning))
    for manifest in collection.manifests:
        assert manifest["privacy"][which] == pytest.approx(budget[which], rel=2e-3)
        assert manifest["privacy"][which] <= budget[which] * (1 + 1e-12)
        noise = manifest["scenario"]["protocols"][manifest["protocol"]]["noise"]
        assert noise["alpha"] is None
    by_protocol = {chosen["protocol"]: chosen["values"] for chosen in tuning["chosen"]}
    assert {key: set(values) for key, values in by_protocol.items()} == {
        "dvp": {"noise.updates", "penalty"},
        "pp": {"noise.updates", "penalty_growth"},
    }


def test_gradient_noise_follows_from_a_claimed_or_a_verified_total():
    privacy = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 4, "clip": 1.0}
    data = perturbed({"claimed": 2.0, "delta": 1e-3}, over={"cd.privacy.updates": [2, 4]})
    data["protocols"] = {"cd": {"kind": "coordinate_descent", "radius": 1.0, "privacy": privacy}}
    for trial, updates in zip(load(data).trials, (2, 4), strict=True):
        found = trial.scenario.protocols["cd"].privacy
        assert (found.budget.epsilon, found.budget.delta, found.multiplier, found.updates) == (2.0, 1e-3, None, updates)
    data["tune"]["budget"] = VERIFIED
    found = load(data).trials[0].scenario.protocols["cd"].privacy
    assert (found.target.verified, found.target.delta, found.budget, found.multiplier) == (3.0, 1e-5, None, None)


def test_a_claim_below_what_the_determinants_cost_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot be reached by any noise: theorem 4\.1 claims .* take fewer updates"):
        run(perturbed({"claimed": 0.05}), out=tmp_path)
