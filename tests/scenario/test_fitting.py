"""What follows from a scenario's text is refused by ``check``, with its place; what needs data or a graph is not."""

from __future__ import annotations

import pytest
from hushnet.simulator.cli import main

BASE = {
    "schema": "1",
    "scenario": "fitting",
    "task": "{kind: linear_classification, agents: 6, dimension: 2, samples: [5, 5], test_samples: 2}",
    "topology": "{kind: complete}",
    "protocols": "{p: {kind: local}}",
    "stop": "{time: 1}",
    "record": "{every: 1.0, metrics: [accuracy]}",
}
HINGE = "{kind: linear_classification, agents: 6, dimension: 2, loss: hinge}"
PRIVATE = "mechanism: laplace, budget: {epsilon: 1.0, delta: 0.0}, updates: 2, clip: 1.0, allocation: late"
FREE = "{kind: linear_classification, agents: 6, dimension: 2, points: gaussian}"
MEANS = "{kind: mean_estimation, agents: 6}"
EVERY = "{every: 1.0}"
ONCE = "mechanism: laplace, budget: {epsilon: 1.0, delta: 0.0}, updates: 1"
START = "start: {kind: private_propagation, epsilon: 0.1}, privacy: {mechanism: laplace, multiplier: 1.0, clip: 1.0}"
COLUMNS = "{kind: gisette_like, rows: 20, dimension: 6, split: {by: columns, parts: [3, 3]}}"

UNFIT = [
    ({"topology": "{kind: knn, k: 6}"}, "topology.k = 6: must be below the number of agents, 6"),
    ({"topology": "{kind: torus, rows: 4}"}, "topology.rows = 4: 4 does not divide"),
    ({"topology": "{kind: watts_strogatz, neighbours: 6}"}, "topology.neighbours = 6: must be below"),
    ({"topology": "{kind: barabasi_albert, links: 6}"}, "topology.links = 6: must be below"),
    ({"topology": "{kind: random_regular, degree: 7}"}, "topology.degree = 7"),
    ({"topology": "{kind: random_regular, degree: 1}"}, "makes pairs"),
    ({"task": "{kind: epsilon_like}", "topology": "{kind: knn}"}, "topology: needs profiles of the agents"),
    ({"clock": "{kind: poisson, rate: [1.0, 2.0]}"}, "clock.rate: has 2 values; one for each of the 6 agents"),
    ({"clock": "{kind: periodic, period: [1.0, 2.0]}"}, "clock.period: has 2 values"),
    ({"clock": "{kind: recorded, order: [0, 6]}"}, "clock.order: 6 is not the id of an agent"),
    (
        {"record": "{every: 1.0, metrics: [rmse]}"},
        "record.metrics[0] = 'rmse': the task 'linear_classification' is judged",
    ),
    ({"record": "{every: 1.0, messages: {agents: [0, 9]}}"}, "record.messages.agents[1] = 9: there is no agent 9"),
    ({"task": "{kind: adult}", "record": "{every: 1.0, metrics: [test_loss]}"}, "has no test rows"),
    (
        {"task": HINGE, "protocols": "{p: {kind: consensus_admm}}"},
        "task.loss = 'hinge': the local problems are solved by",
    ),
    ({"task": HINGE, "protocols": "{p: {kind: edge_consensus_admm}}"}, "task.loss = 'hinge'"),
    ({"task": HINGE, "protocols": "{p: {kind: coordinate_descent}}"}, "task.loss = 'hinge': coordinate descent needs"),
    ({"task": HINGE, "protocols": "{p: {kind: collaborative_admm, local_steps: 2}}"}, "protocols.p.local_steps = 2"),
    ({"protocols": "{p: {kind: consensus_admm, penalty: [0.5]}}"}, "protocols.p.penalty"),
    ({"protocols": "{p: {kind: coordinate_descent, confidence: [0.5]}}"}, "protocols.p.confidence"),
    ({"protocols": "{p: {kind: feature_sharing}}"}, "protocols.p.kind = 'feature_sharing': learns from features"),
    ({"task": COLUMNS.replace("[3, 3]", "[3, 4]")}, "task.split.parts = [3, 4]: sums to 7; there are 6 columns"),
    (
        {"task": "{kind: gisette_like, rows: 9, split: {by: rows, agents: 10}}"},
        "task.split.agents = 10: must be at most the number",
    ),
    ({"task": "{kind: a9a, split: {by: columns, parts: [100, 24]}}"}, "sums to 124; there are 123 columns"),
    ({"task": COLUMNS, "protocols": "{p: {kind: feature_sgd}}"}, "use topology: {kind: star}"),
    ({"task": COLUMNS, "protocols": "{p: {kind: solitary}}"}, "protocols.p.kind = 'solitary': learns from agents' own"),
    ({"protocols": "{p: {kind: solitary, steps: 1000000}}"}, "protocols.p.steps = 1000000: must be at most 100000"),
    (
        {
            "protocols": f"{{p: {{kind: coordinate_descent, privacy: {{{PRIVATE}, oracle_schedule: true}}}}}}",
            "availability": "{kind: on_off, online: 0.5, mean_down: 1.0}",
        },
        "protocols.p.privacy.oracle_schedule = true",
    ),
    (
        {
            "protocols": "{p: {kind: coordinate_descent, start: {kind: private_propagation, epsilon: 2.0}, "
            "privacy: {mechanism: laplace, budget: {epsilon: 1.0, delta: 0.0}, updates: 2, clip: 1.0}}}"
        },
        "protocols.p.start.epsilon = 2.0: the start alone spends (2, 0)",
    ),
    ({"protocols": "{p: {kind: local_dp}}", "task": MEANS, "record": EVERY}, "local_dp needs a regularised loss"),
    (
        {"protocols": f"{{p: {{kind: local_dp, privacy: {{{ONCE}, clip: 1.0}}}}}}".replace("updates: 1", "updates: 2")},
        "protocols.p.privacy.updates = 2: must be 1",
    ),
    (
        {"protocols": f"{{p: {{kind: local_dp, privacy: {{{ONCE}, sensitivity: claimed, lipschitz: 2.0}}}}}}"},
        "protocols.p.privacy.lipschitz = 2.0: bounds an example's gradient",
    ),
    (
        {"protocols": f"{{p: {{kind: local_dp, privacy: {{{ONCE}, sensitivity: claimed}}}}}}", "task": FREE},
        "protocols.p.privacy.sensitivity = 'claimed': claimed needs a bound on the rows",
    ),
    (
        {
            "protocols": f"{{p: {{kind: local_dp, privacy: {{{ONCE}, sensitivity: claimed}}}}}}",
            "task": "{kind: adult}",
            "record": EVERY,
        },
        "in l1; use sensitivity: clip",
    ),
    (
        {
            "protocols": f"{{p: {{kind: model_propagation, privacy: {{{ONCE}, clip: 1.0}}}}}}".replace(
                "updates: 1", "updates: 3"
            )
        },
        "protocols.p.privacy.updates = 3: must be 1: a local model is released once",
    ),
    (
        {
            "protocols": f"{{p: {{kind: model_propagation, privacy: {{{ONCE}, clip: 1.0}}}}}}",
            "task": MEANS,
            "record": EVERY,
        },
        "protocols.p.privacy: noise on a local model needs a regularised loss",
    ),
    (
        {
            "protocols": f"{{p: {{kind: model_propagation, privacy: {{{ONCE}, clip: 1.0}}}}}}",
            "task": "{kind: linear_classification, agents: 6, dimension: 2, loss: squared}",
        },
        "protocols.p.privacy.sensitivity: clip needs a loss with bounded slope",
    ),
    ({"protocols": "{p: {kind: model_propagation, confidence: [1.0]}}"}, "protocols.p.confidence: has 1 values"),
    (
        {"protocols": f"{{p: {{kind: coordinate_descent, {START}}}}}", "task": FREE},
        "the task 'linear_classification' has none; set radius",
    ),
    (
        {"protocols": f"{{p: {{kind: coordinate_descent, smoothness: data, {START}}}}}", "task": FREE},
        "protocols.p.start.lipschitz: a private warm start needs a bound on the rows",
    ),
    (
        {"protocols": "{p: {kind: coordinate_descent, smoothness: public}}", "task": FREE},
        "protocols.p.smoothness = 'public': smoothness: public needs a bound on the rows",
    ),
    (
        {
            "protocols": "{p: {kind: dual_averaging, privacy: {mechanism: gaussian, multiplier: 1.0, "
            "sensitivity: data_check, radius: 1.0}}}",
            "task": MEANS,
            "record": EVERY,
        },
        "protocols.p.privacy.sensitivity = 'data_check': data_check needs a loss with bounded slope",
    ),
    (
        {
            "protocols": "{p: {kind: perturbed_admm, noise: {target: {verified: 1.0, delta: 0.001}, updates: 2}}}",
            "task": FREE,
        },
        "protocols.p.noise.target: needs rows of a bounded norm",
    ),
    ({"protocols": "{p: {kind: perturbed_admm, penalty: 0.1, noise: {alpha: 1.0}}}"}, "below its dual_step 0.5"),
    *(
        (
            {"protocols": f"{{p: {{kind: {kind}}}}}", "task": HINGE.replace("hinge", "hinge, regularisation: 0.0")},
            "task.regularisation = 0.0: the loss 'hinge' without regularisation has no unique minimiser",
        )
        for kind in ("local", "model_propagation", "collaborative_admm")
    ),
    (
        {"record": EVERY, "figures": "[{y: rmse}]"},
        "figures[0].y = 'rmse': metric is not recorded; admissible: objective, accuracy",
    ),
    ({"figures": "[{y: [{}]}]"}, "figures[0].y = [{}]: must be text"),
    (
        {"record": EVERY, "target": "{metric: mse, level: 1.0}"},
        "target.metric = 'mse': metric is not recorded",
    ),
    (
        {"record": EVERY, "task": MEANS, "figures": "[{y: mse, x: time}, {y: accuracy}]"},
        "figures[1].y = 'accuracy': metric is not recorded; admissible: objective, mse",
    ),
    (
        {"record": EVERY, "figures": "[{y: objective}]", "validation": "0.2"},
        "figures[0].y = 'objective': metric is not recorded; admissible: accuracy",
    ),
    (
        {"record": EVERY, "figures": "[{kind: portrait, y: rmse}]"},
        "figures[0].y = 'rmse': metric is not recorded",
    ),
    ({"figures": "[{y: accuracy, name: " + "a" * 300 + "}]"}, "digits and . _ -, 100 at most"),
    ({"sweep": "{topology.kind: [ring], topology.reach: [1]}", "topology": "{kind: knn, k: 9}"}, "topology.k"),
    (
        {"sweep": "{task.agents: [6, 5]}", "topology": "{kind: torus, rows: 3}"},
        "3 does not divide the number of agents, 5",
    ),
]


@pytest.mark.parametrize(("fields", "says"), UNFIT, ids=range(len(UNFIT)))
def test_what_follows_from_the_text_is_refused_by_check(tmp_path, capsys, fields, says):
    (tmp_path / "s.yaml").write_text("".join(f"{key}: {entry}\n" for key, entry in {**BASE, **fields}.items()))
    assert main(["check", str(tmp_path / "s.yaml")]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


FIT = [
    {"task": "{kind: csv, path: x.csv, label: y, agent: who}", "clock": "{kind: poisson, rate: [1.0, 2.0]}"},
    {"task": COLUMNS, "topology": "{kind: star}", "protocols": "{p: {kind: feature_sharing}}"},
    {"task": COLUMNS, "topology": "{kind: edge_list, path: x.csv}", "protocols": "{p: {kind: feature_sharing}}"},
    {"topology": "{kind: erdos_renyi, probability: 0.001}"},
    {"topology": "{kind: random_regular, degree: 1, allow_disconnected: true}"},
]


@pytest.mark.parametrize("fields", FIT, ids=range(len(FIT)))
def test_what_data_and_graph_decide_is_not_refused_by_check(tmp_path, capsys, fields):
    (tmp_path / "s.yaml").write_text("".join(f"{key}: {entry}\n" for key, entry in {**BASE, **fields}.items()))
    assert main(["check", str(tmp_path / "s.yaml")]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    "task",
    [
        "{kind: linear_classification, agents: 10000000, dimension: 10000000}",
        "{kind: mean_estimation, agents: 10000000, samples: 10000000}",
        "{kind: synthetic_ratings, users: 10000000, items: 10000000}",
        "{kind: epsilon_like, agents: 10000000, samples: 10000000}",
        "{kind: gisette_like, rows: 10000000, dimension: 10000000}",
    ],
)
def test_what_no_machine_holds_is_refused_by_check(tmp_path, capsys, task):
    (tmp_path / "s.yaml").write_text(
        "".join(f"{key}: {entry}\n" for key, entry in {**BASE, "task": task, "record": EVERY}.items())
    )
    assert main(["check", str(tmp_path / "s.yaml")]) == 5
    assert "GiB of memory, and this machine has" in capsys.readouterr().err
