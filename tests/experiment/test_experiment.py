"""A scenario from file to results: determinism, pairing, resuming, divergence, privacy statements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import Divergence
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.compare import compare
from hushnet.simulator.experiment import Experiment, perform, run
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.yaml_source import read_text

SCENARIO = """\
schema: 1
scenario: tiny
task: {kind: linear_classification, agents: 8, dimension: 4, samples: [5, 20], test_samples: 10}
topology: {kind: ring, reach: 2}
network: {latency: {kind: exponential, mean: 0.5}, loss: 0.1}
availability: {kind: on_off, online: 0.8, mean_down: 1}
protocols:
  local: {kind: local}
  cd: {kind: coordinate_descent, mu: 0.1}
  private:
    like: cd
    privacy: {mechanism: laplace, budget: {epsilon: 1.0, delta: 0.001}, updates: 4, sensitivity: clip, clip: 1.0}
stop: {time: 8}
record: {every: 2.0, metrics: [objective, accuracy, epsilon, traffic], objective_of: cd}
seeds: 2
figures: [{y: accuracy, x: time}]
style: {formats: [png]}
"""


@pytest.fixture
def scenario(tmp_path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return path


def tables(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}


def test_running_again_skips_what_is_complete(scenario, tmp_path):
    experiment = Experiment(load(scenario), tmp_path / "out")
    there: list[bool] = []
    perform(experiment, on_run=lambda _, outcome: there.append(outcome.there))
    perform(experiment, on_run=lambda _, outcome: there.append(outcome.there))
    assert there == [False] * 6 + [True] * 6
    perform(
        Experiment(load(scenario, overrides=["protocols.cd.mu=0.2"]), tmp_path / "out"),
        on_run=lambda _, outcome: there.append(outcome.there),
    )
    assert there[12:] == [False] * 6, "everyone is measured by the objective of cd, which has changed"


@pytest.mark.parametrize("kind", ["local", "solitary", "consensus"])
def test_a_baseline_without_messages_does_not_feel_the_network_and_is_run_once_in_a_sweep_of_it(kind, tmp_path):
    protocols = {"base": {"kind": kind}, "cd": {"kind": "coordinate_descent"}}
    plain = {**read_text(SCENARIO, "s").data, "protocols": protocols}
    bad = {**plain, "network": {"latency": {"kind": "exponential", "mean": 3.0}, "loss": 0.6}}
    swept = {**plain, "sweep": {"network.loss": [0.0, 0.1, 0.5]}}

    def made(name, scenario):
        found = run({**scenario, "record": {"every": 2.0, "metrics": ["accuracy", "traffic"]}}, out=tmp_path / name)
        first = {each.partition("#")[0]: m["protocol"] for each, m in zip(found.runs, found.manifests, strict=True)}
        return first, [tables(tmp_path / name / each) for each, protocol in first.items() if protocol == "base"]

    (_, one), (_, two), (runs, three) = made("one", plain), made("two", bad), made("swept", swept)
    assert one == two == three
    assert len(one[0]) == 3
    assert sorted(runs.values()) == ["base"] * 2 + ["cd"] * 6
    assert not any("did not share" in said for said in compare(load_all(tmp_path / "swept")).warnings)


def test_the_manifest_states_claimed_and_verified_epsilon_and_what_is_assumed(scenario, tmp_path):
    collection = run(scenario, out=tmp_path / "out", overrides=("protocols.private.smoothness=data",))
    manifests = {m["protocol"]: m for m in collection.manifests}
    privacy = manifests["private"]["privacy"]
    assert privacy["claimed"] == pytest.approx(1.0)
    assert 0 < privacy["verified"] < 1
    assert privacy["delta"] == 0.001
    assert not privacy["flagged"]
    assert any("step sizes" in item for item in privacy["assumed_public"])
    assert manifests["cd"]["privacy"] is None
    assert manifests["private"]["totals"]["vectors"] > 0
    assert manifests["private"]["topology"]["components"] == 1


def test_a_claim_below_what_is_verified_is_flagged_and_a_large_delta_is_warned_about(scenario, tmp_path, capsys):
    fields = ("sensitivity=claimed", "clip=null", "budget.delta=0.1")
    assignments = [word for field in fields for word in ("--set", f"protocols.private.privacy.{field}")]
    assert main(["run", str(scenario), *assignments, "--out", str(tmp_path / "out"), "--quiet"]) == 0
    printed = capsys.readouterr().out
    manifest = next(m for m in load_all(tmp_path / "out").manifests if m["protocol"] == "private")
    assert manifest["privacy"]["flagged"]
    assert manifest["privacy"]["verified"] > manifest["privacy"]["claimed"]
    assert "⚠" in printed
    assert "delta 0.1 is not below 1/m" in " ".join(printed.split())


def test_a_users_own_metric_is_a_function(scenario, tmp_path):
    collection = run(
        scenario,
        out=tmp_path / "out",
        seeds=1,
        metrics={"spread": lambda s: {"max": float(np.ptp(s.models)), "mean": float(np.abs(s.models).mean())}},
    )
    spread = collection.trace.query("metric == 'spread'")
    assert set(spread["statistic"]) == {"max", "mean"}
    (scenario.parent / "mine.py").write_text("def norm(snapshot):\n    return float((snapshot.models ** 2).sum())\n")
    collection = run(
        scenario,
        out=tmp_path / "file",
        seeds=1,
        overrides=("record.metrics=['./mine.py:norm']", "figures=[]"),
        trust_code=True,
    )
    assert set(collection.trace["metric"]) == {"./mine.py:norm"}


class TroubleParameters(ProtocolParameters):
    growth: float = 0.0
    at: int = 3


class Trouble(Protocol):
    """Follows the data until it plants something that is not finite, or grows without bound."""

    decides = True

    Parameters = TroubleParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.model = 1.0

    def step(self, me):
        if self.parameters.growth:
            me.model *= self.parameters.growth
        elif me.updates == self.parameters.at and me.agent == 5:
            me.model[2] = np.nan
        me.send("model", me.model, me.plain())


TROUBLE = (
    "protocols.trouble={kind: trouble}",
    "record.every=0.5",
    "record.metrics=[accuracy, objective]",
    "record.objective_of=cd",
)


def test_a_planted_nan_ends_its_run_with_a_sentence_and_keeps_what_was_recorded(scenario, tmp_path):
    given = {"protocols": {"trouble": Trouble}, "overrides": TROUBLE, "seeds": 1, "contract": False}
    with pytest.raises(Divergence, match=r"^tiny: protocol trouble, seed 0: agent 5 at time [\d.]+: model became not"):
        run(scenario, out=tmp_path / "out", **given)
    collection = load_all(tmp_path / "out")
    manifests = {m["protocol"]: m for m in collection.manifests}
    assert manifests["trouble"]["status"] == "diverged"
    assert "agent 5" in manifests["trouble"]["error"]
    kept = collection.trace.query("protocol == 'trouble'")
    assert 0 < kept["time"].max() < 8
    assert kept["value"].notna().all()
    assert manifests["cd"]["status"] == "complete"


def trouble_file(scenario: Path) -> str:
    source = Path(__file__).read_text()
    body = source[source.index("class TroubleParameters") : source.index("TROUBLE = (")]
    (scenario.parent / "trouble.py").write_text(
        "import numpy as np\nfrom hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters\n\n\n"
        + body
    )
    return "protocols.trouble={kind: './trouble.py:Trouble'}"


def test_where_everything_diverged_the_shell_says_why_with_exit_code_4(scenario, tmp_path, capsys):
    trouble = trouble_file(scenario)
    text = scenario.read_text()
    begin, end = text.index("protocols:"), text.index("stop:")
    text = text[:begin] + "protocols:\n  trouble: {kind: './trouble.py:Trouble'}\n" + text[end:]
    text = text.replace("x: time}", "x: network.loss}") + "sweep: {network.loss: [0.0, 0.1]}\n"
    scenario.write_text(text)
    options = ["--set", trouble, "--set", "record.objective_of=null", "--set", "record.metrics=[accuracy]"]
    arguments = ["run", str(scenario), *options, "--out", str(tmp_path / "out"), "--quiet", "--seeds", "1"]
    assert main([*arguments, "--trust-code"]) == 4
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err + captured.out
    assert "agent 5 at time" in captured.err
    assert "figure" not in captured.err
    assert "warning: figures:" in captured.out


@pytest.mark.parametrize("metric", ["accuracy", "test_loss"])
def test_what_needs_test_rows_is_refused_before_the_first_run_where_there_are_none(scenario, tmp_path, capsys, metric):
    rows = ["x,outcome", *(f"{i / 10},{i % 2}" for i in range(40))]
    (scenario.parent / "table.csv").write_text("\n".join(rows) + "\n")
    task = "task={kind: csv, path: table.csv, label: outcome, split: {kind: even, agents: 5}, test_share: 0}"
    measured = f"record.metrics=[objective, {metric}]"
    options = ["--set", task, "--set", measured, "--set", "figures=[]", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(["run", str(scenario), *options]) == 2
    captured = capsys.readouterr()
    assert captured.err == (
        f"--set {measured}: record.metrics[1] = '{metric}': cannot be measured: the task 'csv' has no test rows; "
        "hold some out, or record other metrics\n"
    )
    assert not list(tmp_path.glob("out/*/trace.parquet"))


def test_a_graph_made_from_private_profiles_is_assumed_public_and_another_is_not(scenario, tmp_path):
    strict = ("protocols.private.privacy.strict=true", f"protocols.private.confidence={[1.0] * 8}")
    ring = run(scenario, out=tmp_path / "ring", seeds=1, overrides=strict)
    knn = run(scenario, out=tmp_path / "knn", seeds=1, overrides=(*strict, "topology={kind: knn, k: 4}"))
    stated = [next(m["privacy"] for m in c.manifests if m["protocol"] == "private") for c in (ring, knn)]
    assert stated[0]["assumed_public"] == []
    assert stated[0]["verified"] <= 1.0
    assert stated[1]["assumed_public"] == ["graph and weights (similarity of the agents' target models)"]
    assert stated[1]["verified"] == float("inf")
    assert stated[1]["flagged"]
