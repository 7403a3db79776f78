"""What a run should have kept and did not: in the manifest, below the table, and on the report page."""

from __future__ import annotations

import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.invariants import NoInvariant
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.summary import print_summary
from rich.console import Console


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
    run(SCENARIO, protocols=copies, out=folder)
    return load_all(folder)


def printed(collection):
    console = Console(width=200)
    with console.capture() as capture:
        print_summary(collection, console)
    return " ".join(capture.get().split())


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
    text = printed(collection)
    assert "keeps something back: the invariant 'model told' is broken in 2 of 2 runs, first at time 1 (agent " in text
    assert "a plug-in declares no invariant" in text
    assert text.count("invariant") == 2
