"""What an author gave and hushnet cannot take as it is, is refused or said, and never taken for something else."""

import networkx as nx
import numpy as np
import pytest
from hushnet.agents.blocks import Block
from hushnet.agents.errors import InputError
from hushnet.agents.losses import LOSSES
from hushnet.agents.tasks.outline import Outline
from hushnet.protocols.base import Layout, MessageKind
from hushnet.simulator.api import run
from hushnet.simulator.language.schema import scenario_schema
from hushnet.simulator.network.graphs import Topology


def scenario(**more):
    return {
        "schema": 1,
        "scenario": "s",
        "task": {"kind": "csv", "path": "rows.csv", "label": "y", "agent": "owner", "loss": "squared"},
        "topology": {"kind": "complete"},
        "engine": "event",
        "protocols": {"cd": {"kind": "coordinate_descent"}},
        "record": {"every": 1.0, "metrics": ["objective"]},
        "stop": {"time": 1.0},
        **more,
    }


def written(tmp_path, monkeypatch, lines):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("\n".join(["owner,x,y", *lines]) + "\n")
    return tmp_path / "out"


@pytest.mark.parametrize("size", ["1e155", "1e200", "1e300"])
def test_features_whose_squares_overflow_are_refused_and_show_no_gap_of_0(size, tmp_path, monkeypatch):
    out = written(tmp_path, monkeypatch, [f"{k % 2},{size},{k}" for k in range(8)])
    with pytest.raises(InputError, match=r"size 1e\+\d+, so that sums of squares overflow.*scale the rows"):
        run(scenario(), out=out)


def test_ids_that_are_one_number_are_one_agent(tmp_path, monkeypatch):
    out = written(tmp_path, monkeypatch, [f"{name},{k},{k}" for k, name in enumerate(["7", "7.0", "8.00", "8", "9"])])
    agents = run(scenario(), out=out).agents
    assert agents["agent"].tolist() == ["7", "8", "9"]


def test_names_that_are_no_numbers_stay_as_they_are(tmp_path, monkeypatch):
    out = written(tmp_path, monkeypatch, [f"{name},{k},{k}" for k, name in enumerate(["7", "7.0", "x", "7", "x"])])
    assert run(scenario(), out=out).agents["agent"].tolist() == ["7", "7.0", "x"]


class OneWay(Topology):
    """A graph of a custom kind."""

    kind: str = "one_way"

    def expected_edges(self, extent, files):
        return 2.0

    def edges(self, task, *, rng, base):
        return nx.DiGraph([(0, 1), (1, 2)])


def test_directed_edges_are_refused():
    task = type("Three", (), {"agents": 3, "ids": [0, 1, 2]})()
    with pytest.raises(InputError, match=r"makes directed edges.*to_undirected"):
        OneWay().build(task, rng=np.random.default_rng(0))


def test_an_edge_that_is_listed_both_ways_is_refused_with_the_reason(tmp_path, monkeypatch):
    out = written(tmp_path, monkeypatch, [f"{k % 2},{k},{k}" for k in range(8)])
    (tmp_path / "edges.csv").write_text("source,target,weight\n0,1,1\n1,0,2\n")
    with pytest.raises(InputError, match=r"edges\.csv:3: the edge 1 - 0 is listed twice; edges have no direction"):
        run(scenario(topology={"kind": "edge_list", "path": "edges.csv"}), out=out)


@pytest.mark.parametrize("width", [2.5, -1, [1, 2.5], "3", True])
def test_a_width_that_is_no_whole_number_is_refused(width):
    with pytest.raises(ValueError, match="a width must be an integer from 0"):
        Block(2, width)
    with pytest.raises(ValueError, match="a width must be an integer from 0"):
        Layout(agent={"model": 2}, messages={"model": MessageKind(width)})


def test_an_unknown_loss_is_named_with_the_known_ones():
    with pytest.raises(InputError, match=r"^unknown loss 'logistc'; did you mean 'logistic'\? admissible: logistic, "):
        Outline("own", "logistc").loss  # noqa: B018
    assert "logistc" not in LOSSES
    assert LOSSES.get("logistc") is None


def test_the_schema_promises_what_engines_keep():
    said = scenario_schema()["properties"]["engine"]["description"]
    assert "the events are the same" in said
    assert "up to rounding" in said
