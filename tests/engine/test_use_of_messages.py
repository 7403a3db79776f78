"""What is read or reacted to is not overtaken, what a start sends arrives, and idle wake-ups are no updates."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.availability import Always, Trace, Window
from hushnet.protocols.base import Layout, MessageKind, Traits
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.setting import Stop

from .driving import drive, prepared
from .helpers import Collect, Echo, Stamp, StampParameters, run, world_of

REORDERED = {"latency": {"kind": "exponential", "mean": 3.0}}
AGENTS = 6


class Reading(Stamp):
    """A token that a start sends, passed on by the step after its arrival; the model counts visits."""

    traits = Traits(inbox="every")

    def layout(self):
        return Layout(agent={"model": 1}, messages={"token": MessageKind(1), "model": MessageKind(1)})

    def start(self, me):
        if me.agent == 0:
            me.send("token", [0.0], me.public("a token"), to=int(me.neighbours[0]))

    def pass_on(self, me, number):
        me.model = me.model + 1.0
        me.send("token", [number + 1.0], me.public("a token"), to=int(me.stream("walk").choice(me.neighbours)))

    def step(self, me):
        for token in me.messages:
            self.pass_on(me, token.vector[0])


class Reacting(Reading):
    """The same, passed on at its arrival."""

    traits = Traits(trigger="message")

    def step(self, me):
        return

    def react(self, me, message):
        self.pass_on(me, message.vector[0])


WALKS = pytest.mark.parametrize("walk", [Reading, Reacting])


def visits(world):
    return world.state.agent["model"].values.astype(int)


@pytest.mark.parametrize(("protocol", "has_overtaken"), [(Stamp, True), (Collect, False), (Echo, False)])
def test_only_what_nobody_used_is_overtaken(protocol, has_overtaken):
    world, log = run(protocol, stop=Stop(time=20.0), **REORDERED)
    late = sum(not newest for *_, up, newest in log.of("arrived") if up)
    assert world.traffic.overtaken == late
    assert (late > 0) == has_overtaken


def test_a_silent_agent_reacts_to_nothing_and_what_comes_late_is_overtaken():
    class Quiet(Echo):
        def step(self, me):
            super().step(me)
            if me.agent == 0 and me.updates == 3:
                me.fall_silent()

    _, log = run(Quiet, stop=Stop(time=30.0), **REORDERED)
    whose = [key[1] for _, _, key, _, up, newest in log.of("arrived") if up and not newest]
    assert set(whose) == {0}


@WALKS
def test_a_token_that_starts_in_start_walks(walk):
    world, log = run(walk, latency=0.5, stop=Stop(time=30.0))
    sent = log.of("sent")
    assert len(sent) > 10
    assert visits(world).sum() == len(sent)
    assert (visits(world) > 0).sum() > 2


def test_a_reaction_to_a_start_comes_at_time_0_after_its_record():
    _, log = run(Reacting, latency=0.5, stop=Stop(time=1.0), every=1.0)
    first = log.of("sent")[0]
    assert (first[1], first[2][0]) == (0.0, 1)


def test_a_token_waits_for_who_is_down_at_the_start(tmp_path):
    rows = [f"{agent},{4.0 if agent == 1 else 0.0},100" for agent in range(AGENTS)]
    (tmp_path / "up.csv").write_text("\n".join(["agent,up_from,up_to", *rows]) + "\n")
    absent = Trace(kind="trace", path="up.csv")
    for walk in (Reading, Reacting):
        _, log = run(walk, latency=0.5, availability=absent, base=tmp_path, stop=Stop(time=20.0))
        first = log.of("sent")[0]
        assert first[2][0] == 1
        assert first[1] == 4.0 or (walk is Reading and first[1] > 4.0)


@WALKS
def test_nothing_starts_where_starts_are_not_known(walk):
    world, log = run(walk, start="zero", stop=Stop(time=20.0))
    assert log.of("sent") == []
    assert visits(world).sum() == 0


@WALKS
def test_a_token_waits_for_who_joins(walk):
    late = Always(kind="always", joins=Window(share=1.0, between=[3.0, 6.0]))
    world, log = run(walk, latency=0.5, availability=late, stop=Stop(time=20.0))
    first = log.of("sent")[0]
    assert first[2][0] == 1
    assert first[1] >= 3.0
    assert visits(world).sum() > 3


def test_idle_wake_ups_are_activations_and_no_updates():
    world, log = run(Reading, latency=0.5, stop=Stop(time=60.0))
    assert np.array_equal(world.updates, visits(world))
    assert world.activations == len(log.wakes())
    assert world.activations > 2 * world.updates.sum()
    assert [agent.updates for agent in world.agents] == world.updates.tolist()


def test_a_run_that_waits_for_updates_waits_for_the_token():
    world, _ = run(Reading, latency=0.1, stop=Stop(updates=2), task=small_task(AGENTS, empty=False))
    assert world.updates.min() == 2
    assert world.ended == "every agent has made its updates"


def test_activations_end_a_run_whose_token_is_gone():
    world, _ = run(Reading, loss=1 - 1e-9, stop=Stop(activations=40))
    assert world.activations == 40
    assert world.updates.sum() == 1


def test_a_wake_up_that_only_sends_or_only_changes_a_block_is_an_update():
    class Sends(Stamp):
        def step(self, me):
            me.send("model", me.model, me.public("a stamp"))

    class Learns(Stamp):
        def step(self, me):
            me.model[0] += 1.0

    for kind in (Sends, Learns):
        world, log = run(kind, stop=Stop(time=5.0))
        assert world.updates.sum() == len(log.wakes()) > 0


# What a message counts as.


class Sparse(Stamp):
    """Messages of 8 bits that count as a tenth of a vector."""

    decides = False

    def layout(self):
        return Layout(agent={"model": 2}, messages={"model": MessageKind(2, vectors=0.1, bits=8)})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    def step(self, me):
        me.message = me.model


class SparsePairs(Sparse):
    """Requests that count as a tenth of a vector, replies as two."""

    traits = Traits(exchange="pairwise")

    def layout(self):
        kinds = {"request": MessageKind(2, vectors=0.1), "reply": MessageKind(2, vectors=2)}
        return Layout(agent={"model": 2}, messages=kinds)

    def start(self, me):
        return

    def request(self, me, partner):
        me.message = me.model

    def respond(self, me, partner, heard):
        me.message = me.model

    def complete(self, me, partner, heard):
        return


@pytest.mark.parametrize("engine", [EventEngine(), BatchedEngine()])
@pytest.mark.parametrize(("kind", "schedule"), [(Sparse, "async"), (Sparse, "rounds"), (SparsePairs, None)])
def test_a_message_counts_as_the_share_of_a_vector_that_its_protocol_says(kind, schedule, engine):
    world = world_of(kind, StampParameters(schedule=schedule), stop=Stop(time=20.0))
    drive(prepared(world, engine))
    assert world.engine.startswith("batched" if isinstance(engine, BatchedEngine) else "event")
    links = world.traffic.links
    if kind is Sparse:
        assert world.traffic.vectors == pytest.approx(0.1 * links.sent, rel=1e-12)
        assert world.traffic.start_vectors == pytest.approx(0.1 * len(world.setting.graph.heads))
        assert world.traffic.bytes.sent == links.sent
    else:
        assert world.traffic.vectors == pytest.approx(links.sent / 2 * 2.1, rel=1e-12)


@pytest.mark.parametrize("engine", [EventEngine(), BatchedEngine()])
@pytest.mark.parametrize("schedule", ["async", "rounds"])
def test_a_run_ends_after_so_many_vectors_also_in_shares(schedule, engine):
    world = world_of(Sparse, StampParameters(schedule=schedule), stop=Stop(vectors=5))
    drive(prepared(world, engine))
    assert world.ended == "the vectors were sent"
    assert 5.0 <= world.traffic.vectors < 5.0 + 0.1 * AGENTS


@pytest.mark.parametrize("vectors", [-1, float("nan"), float("inf"), "one", None, 2e6])
def test_a_message_that_counts_as_no_number_of_vectors_is_refused(vectors):
    with pytest.raises(ValueError, match=r"MessageKind: vectors = .* must be a number from 0 to 1,000,000"):
        MessageKind(2, vectors=vectors)
