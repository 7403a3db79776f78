"""What the pages of protocols say that they reveal is what was seen of them in a run."""

from __future__ import annotations

import re

import pytest
from hushnet.protocols import catalog
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.simulator.contract.bench import small_setting
from hushnet.simulator.docs import protocols, releases


class Chatty(Protocol):
    """Declares two kinds of messages, and says the second only: its data, to one neighbour, as if they were public."""

    decides = True

    def layout(self):
        return Layout(agent={"model": 3}, messages={"model": MessageKind(3), "gossip": MessageKind(2)})

    def start(self, me):
        me.send("gossip", [0.0, 0.0], me.public("nothing is known yet"))

    def step(self, me):
        told = me.data.features.sum(axis=0)[:2] if len(me.data) else [0.0, 0.0]
        release = me.plain("sums of the rows") if len(me.data) else me.public("there are no rows")
        me.send("gossip", told, release, to=int(me.neighbours[0]))


def test_a_protocol_is_described_by_what_it_sends_and_not_by_what_it_declares():
    seen = releases.observed_in(small_setting(), Chatty, ProtocolParameters(kind="chatty"))
    found = {(row.moment, row.kind, row.numbers, row.to, row.released) for row in seen.rows}
    assert found == {
        ("at the start", "gossip", "2", "all neighbours", "public, costs nothing: nothing is known yet"),
        ("in a step", "gossip", "2", "one neighbour", "public, costs nothing: there are no rows"),
        ("in a step", "gossip", "2", "one neighbour", "data without noise: sums of the rows; epsilon is infinite"),
    }
    assert seen.charged[0] == 0 < seen.charged[-1]


@pytest.mark.parametrize("name", catalog.names())
def test_a_page_has_every_kind_of_message_that_its_protocol_was_seen_to_send(name):
    page = protocols.page(name, catalog.resolve(name), {})
    revealed = re.search(r"## What it reveals\n(.*?)\n## ", page, re.DOTALL)[1]
    seen = releases.observed(*protocols.example(name))
    for row in seen.rows:
        assert f"| {row.moment} | " in revealed
        assert row.released.split(":")[0].split(",")[0] in revealed
    if not seen.rows:
        assert "nothing left an agent" in revealed
    assert seen == releases.observed(*protocols.example(name)), "differs from run to run"
