"""What `hushnet run` prints at its end, and what a run should have kept and did not."""

from __future__ import annotations

import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.invariants import NoInvariant
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.summary import print_summary
from hushnet.simulator.cli import main

from ..results.writing import printed

PNG = "style={formats: [png]}"
WORDS = ["run", "quickstart", "--quiet", "--set", "stop.time=4", "--set", "task.agents=30", "--set", PNG]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What is printed by verbosity and number of seeds."""
    folder = tmp_path_factory.mktemp("brief")

    def printed(capsys, monkeypatch, *words):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "80")
        capsys.readouterr()
        assert main([*WORDS, *words]) == 0
        return capsys.readouterr().out.splitlines()

    return printed


def test_a_summary_fits_a_terminal(said, capsys, monkeypatch):
    lines = [line for line in said(capsys, monkeypatch, "--seeds", "3") if line.strip()]
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("By final accuracy")
    assert any(line.startswith("without learning: ") for line in lines)
    warned = [line for line in lines if line.startswith("warning: private coordinate descent: releases planned")]
    assert len(warned) == 1, "seeds that say the same with other numbers are one warning"
    assert lines[-1].startswith("figures: results/quickstart/figures: accuracy.png")


def test_what_a_summary_leaves_out_is_there_where_it_is_asked_for(said, capsys, monkeypatch):
    brief = "\n".join(said(capsys, monkeypatch, "--seeds", "3"))
    whole = "\n".join(said(capsys, monkeypatch, "--seeds", "3", "--verbose"))
    assert "--verbose" in brief
    for words in ("assumed public", "No epsilon covers", "engine: ", "graph: "):
        assert words not in brief
        assert words in whole.replace("\n", " ")


def test_a_sweep_has_a_column_for_its_ends_and_its_middle(said, capsys, monkeypatch):
    swept = ["--set", "sweep={network.loss: [0.0, 0.1, 0.2, 0.3, 0.4]}", "--set", "figures=[]", "--out", "swept"]
    lines = [line.rstrip() for line in said(capsys, monkeypatch, "--seeds", "2", *swept) if line.strip()]
    assert max(map(len, lines)) <= 80
    head = next(line for line in lines if "accuracy by loss" in line)
    assert head.split()[-3:] == ["0.0", "0.2", "0.4"]
    assert (
        sum(line.startswith(("purely local", "coordinate descent", "private coordinate descent")) for line in lines)
        == 3
    )


class KeepsSomethingBack(CoordinateDescent):
    """Goes on from another model than it has told."""

    decides = True

    def step(self, me):
        super().step(me)
        me.model[0] += 1e-3


class SaysNothing(CoordinateDescent):
    """Declares no invariant."""

    def invariants(self):
        return NoInvariant()


SCENARIO = {
    "schema": 1,
    "scenario": "kept",
    "task": {"kind": "linear_classification", "agents": 5, "dimension": 3},
    "topology": {"kind": "ring"},
    "network": {"latency": 0.5, "loss": 0.2},
    "engine": "event",
    "protocols": {
        "sound": {"kind": "coordinate_descent"},
        "broken": {"kind": "keeps", "label": "keeps something back"},
        "mute": {"kind": "mute", "label": "a plug-in"},
        "alone": {"kind": "local"},
    },
    "stop": {"time": 6.0},
    "record": {"every": 1.0, "metrics": ["accuracy", "traffic"]},
    "seeds": 2,
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    copies = {}
    for name, protocol in (("keeps", KeepsSomethingBack), ("mute", SaysNothing)):
        kind = type("Parameters", (protocol.Parameters,), {"__annotations__": {"kind": str}})
        copies[name] = type(protocol.__name__, (protocol,), {"Parameters": kind})
    run(SCENARIO, protocols=copies, out=folder, contract=False)
    return load_all(folder)


def test_the_manifest_says_what_was_looked_at_and_what_came_of_it(collection):
    by_protocol = {manifest["protocol"]: manifest for manifest in collection.manifests}
    [sound] = by_protocol["sound"]["invariants"]
    assert sound["name"] == "model told"
    assert sound["where"] == "always"
    assert "Bellet et al. 2018" in sound["source"]
    assert (sound["checked"], sound["worst"], sound["broken"], sound["first"]) == (8, 0.0, False, None)
    [broken] = by_protocol["broken"]["invariants"]
    assert broken["broken"]
    assert broken["worst"] > broken["tolerance"] > 0
    assert broken["first"]["time"] == 1.0
    assert len(broken["first"]["agents"]) == 1
    assert by_protocol["alone"]["invariants"] == by_protocol["mute"]["invariants"] == []
    reasons = [by_protocol[key]["no_invariant"] for key in ("sound", "mute", "alone")]
    assert reasons == [None, "", "every agent learns alone, and nothing is exchanged"]


def test_the_summary_warns_of_what_is_broken_and_remarks_on_what_was_not_declared(collection):
    text = " ".join(printed(print_summary, collection, width=200).split())
    assert "keeps something back: the invariant 'model told' is broken in 2 of 2 runs, first at time 1 (agent " in text
    assert "a plug-in declares no invariant" in text
    assert text.count("invariant") == 2
