"""A world in which nothing happens, or nothing any more, is said to be one."""

import json

import pytest
from hushnet.protocols.base import Layout, MessageKind, Protocol, Traits
from hushnet.simulator.api import run
from hushnet.simulator.cli import main


class Token(Protocol):
    """A message that whoever gets it passes on; the start sends it."""

    decides = True

    traits = Traits(trigger="message", inbox="latest", exchange="broadcast")

    def layout(self):
        return Layout(agent={"model": 2}, messages={"token": MessageKind(2, mirrors="model")})

    def start(self, me):
        me.send("token", me.model, me.plain())

    def react(self, me, message):
        me.model[:] += 1.0
        me.send("token", me.model, me.plain())


def scenario(**more):
    return {
        "schema": 1,
        "scenario": "silent",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [4, 6]},
        "topology": {"kind": "ring"},
        "engine": "event",
        "protocols": {"cd": {"kind": "coordinate_descent"}},
        "record": {"every": 1.0, "metrics": ["accuracy"]},
        "stop": {"time": 20.0},
        **more,
    }


def said(tmp_path, **more):
    return " ".join(run(scenario(**more), out=tmp_path / "out").manifests[0]["warnings"])


def test_delays_beyond_the_run_are_said(tmp_path):
    found = said(tmp_path, network={"latency": 50.0})
    assert "messages has arrived until time 20 (0 lost, 0 dropped, " in found
    assert "still on their way at the end)" in found


def test_a_trace_that_ends_long_before_the_run_is_said(tmp_path):
    trace = tmp_path / "up.csv"
    trace.write_text("agent,up_from,up_to\n" + "".join(f"{agent},0,4\n" for agent in range(4)))
    found = said(tmp_path, availability={"kind": "trace", "path": str(trace)})
    assert "no agent has made a step after time " in found
    assert "no message has arrived after time " in found


def test_nobody_ever_awake_is_said(tmp_path, capsys):
    trace = tmp_path / "up.csv"
    trace.write_text("agent,up_from,up_to\n" + "".join(f"{agent},30,40\n" for agent in range(4)))
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(scenario(availability={"kind": "trace", "path": str(trace)})))
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert "warning: cd: no agent has made a step until time 20: nobody woke, or nobody was up" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(("starts", "walks"), [("known", True), ("zero", False)])
def test_a_token_that_the_start_sends_walks_where_starts_are_known(starts, walks, tmp_path):
    network = {"start": starts, "latency": 0.5}
    tokens = scenario(protocols={"token": {"kind": "token"}}, network=network, stop={"time": 3.0})
    result = run(tokens, protocols={"token": Token}, out=tmp_path / "out", contract=False)
    assert (result.manifests[0]["totals"]["messages"] > 0) == walks


@pytest.mark.parametrize("more", [{}, {"protocols": {"local": {"kind": "local"}}}, {"network": {"latency": 1.0}}])
def test_a_usual_world_is_not_called_silent(more, tmp_path):
    found = said(tmp_path, **more)
    assert "until time" not in found
    assert "after time" not in found


def test_a_folder_that_does_not_exist_is_not_one_without_runs(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for command in ("plot", "compare", "report", "replay"):
        assert main([command, str(tmp_path / "nowhere")]) == 2
        assert "nowhere: does not exist; give a folder" in capsys.readouterr().err
        assert main([command, str(tmp_path / "empty")]) == 2
        assert "holds no" in capsys.readouterr().err
