"""Pairwise exchange on a bad network: both ends agree, nothing is applied twice, and the mean is kept."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hushnet.agents.availability import Trace
from hushnet.agents.errors import InputError, StepFailure
from hushnet.agents.graph import Graph
from hushnet.protocols.base import Layout, MessageKind, Traits
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.randomness import Draws, Purpose
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.tables import sessions as columns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .driving import drive, sessions_of
from .exchange import Forgetful, Gossip, Scripted, called, exchange_world, run_exchange, told
from .helpers import Stamp, random_graph, world_of
from .test_world_properties import clocks, scenarios

GOLDEN = Path(__file__).parents[1] / "golden" / "linear_12_agents.npz"
SLOWLY = {"kind": "constant", "value": 3.0}
SCHEDULES = st.builds(
    lambda resend_after, timeout: {"kind": "exchange", "resend_after": resend_after, "timeout": timeout},
    st.sampled_from([None, 0.1, 0.5, 1.0, 2.0, 7.0]),
    st.sampled_from([None, 0.5, 4.0]),
)


class Hasty(Scripted, Forgetful):
    """Calls the neighbour of rank 0, and gives up."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


def up(folder, **until):
    """Agents that are down for good from some time on; with a list, up in these intervals only."""
    lines = ["agent,up_from,up_to"]
    for agent, times in until.items():
        for start, end in times if isinstance(times, list) else [(0, times)]:
            lines.append(f"{agent[1:]},{start},{end}")
    path = folder / f"{abs(hash(tuple(lines)))}.csv"
    path.write_text("\n".join(lines) + "\n")
    return {"availability": Trace(kind="trace", path=path.name, others="up"), "base": folder}


@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_two_ends_agree_whenever_their_edge_is_quiet_and_no_update_is_applied_twice(data, folder):
    """The log checks quiet edges, the mean and conservation after every SimPy event."""
    world, log = run_exchange(schedule=data.draw(SCHEDULES), **data.draw(scenarios(folder)))
    calls = world.protocol.calls
    for agent in range(world.setting.graph.agents):
        for neighbour in world.setting.graph.neighbours(agent).tolist():
            offers = calls.count(("request", agent, neighbour))
            accepts = calls.count(("respond", neighbour, agent))
            finishes = calls.count(("complete", agent, neighbour))
            halves = [s for s in sessions_of(world).values() if (s.caller, s.callee) == (agent, neighbour)]
            assert finishes <= accepts <= offers
            assert accepts - finishes == sum(session.accepted for session in halves)
    assert world.activations == world.protocol.count("complete") == sum(agent.updates for agent in world.agents)
    became = world.counted
    assert became["sessions_opened"] == world.protocol.count("request")
    assert became["sessions_finished"] == world.protocol.count("complete")
    assert became["sessions_open"] == len(sessions_of(world))
    closed = sum(became[f"sessions_{name}"] for name in ("finished", "void", "refused", "given_up"))
    assert became["sessions_opened"] == closed + became["sessions_open"]
    assert len(log.of("woke")) == world.protocol.count("request")


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_sessions_without_edge_variables_run_everywhere_and_finish_at_most_once(data, folder):
    world, log = run_exchange(Forgetful, schedule=data.draw(SCHEDULES), **data.draw(scenarios(folder)))
    assert world.protocol.count("complete") <= world.protocol.count("respond") <= world.protocol.count("request")
    requests = [event[3:6] for event in log.of("sent", "request")]
    assert len(set(requests)) == len(requests), "who gives up does not repeat"


def test_half_of_the_messages_lost_and_long_delays_exercise_quiet_and_busy_edges():
    """Seed 1; the checks of the log would be empty if the network were never quiet."""
    loss = {"kind": "bernoulli", "probability": 0.5}
    world, log = run_exchange(
        loss=loss, latency={"kind": "exponential", "mean": 1.0}, schedule={"kind": "exchange", "resend_after": 1.0}
    )
    assert log.halves > 100
    assert log.quiet_instants > 5
    assert world.protocol.count("complete") > 5
    assert len(log.of("sent", "request")) > world.protocol.count("request")
    assert len(log.of("sent", "reply")) > world.protocol.count("respond")


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_without_delay_and_loss_sessions_are_the_sequential_loop_bit_for_bit(data):
    agents = data.draw(st.integers(1, 6))
    seed = data.draw(st.integers(0, 2**32))
    graph = random_graph(agents, data.draw(st.floats(0.2, 1)), np.random.default_rng(seed))
    world, log = run_exchange(agents=agents, graph=graph, clock=data.draw(clocks(agents)), seed=seed)
    clock, draws = world.clock, Draws(seed)
    wakes = []
    for agent in range(agents):
        now, tick = 0.0, 0
        while (now := clock.next_time(agent, tick, now)) <= 12.0:
            wakes.append((now, agent, tick))
            tick += 1
    models = np.array([(i, (1 + i) ** 2) for i in range(agents)], dtype=float)
    steps = []
    for now, agent, tick in sorted(wakes):
        if len(graph.neighbours(agent)):
            rank = int(draws.uniform(Purpose.PARTNER, agent, 0, tick) * len(graph.neighbours(agent)))
            other = graph.neighbours(agent)[rank]
            got = (models[agent] - models[other]) / 2
            models[other] += got
            models[agent] -= got
            steps.append((now, agent))
    assert models.tobytes() == world.state.agent["model"].rows.tobytes()
    assert [event[1:] for event in log.of("woke")] == steps
    assert world.activations == len(steps)
    assert world.traffic.vectors == (1 + 3) * len(steps)
    assert world.traffic.messages == 2 * len(steps)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_when_requests_cross_the_session_of_the_lower_agent_wins(order):
    latency = {"kind": "constant", "value": 0.5}
    world, log = run_exchange(agents=2, clock=called(*order, spacing=0.25), latency=latency)
    assert world.protocol.count("request") == 2
    assert world.protocol.calls[-2:] == [("respond", 1, 0), ("complete", 0, 1)]
    assert world.protocol.count("respond") == world.activations == 1
    assert world.quiet_edges.all()
    assert [event[1] for event in log.of("arrived", "reply")] == [0.25 * (1 + order.index(0)) + 1.0]


def test_a_loser_may_call_again_once_the_winners_session_is_closed():
    """Agent 1 calls at 4 and is ignored at 10; agent 0 calls at 8 and finishes at 20; agent 1 calls again at 20."""
    world, log = run_exchange(
        agents=2,
        clock=called(1, 0, 1, 1, 1, spacing=4.0),
        latency={"kind": "constant", "value": 6.0},
        schedule={"kind": "exchange", "resend_after": 100.0},
        stop=Stop(),
    )
    assert [event[1:] for event in log.of("woke")] == [(4.0, 1), (8.0, 0), (20.0, 1)]
    assert [call for call in world.protocol.calls if call[0] == "complete"] == [("complete", 0, 1), ("complete", 1, 0)]


def test_a_repeat_is_answered_from_the_stored_reply_and_charged_once():
    """Requests go at 1, 2, ..., 6; those of 1, 2 and 3 arrive before the reply of 4 does, at 7."""
    world, log = exchange_world(
        Scripted,
        agents=2,
        clock=called(0),
        latency=SLOWLY,
        schedule={"kind": "exchange", "resend_after": 1.0},
        stop=Stop(),
    )
    charged = []
    commit = world.ledger.commit
    world.ledger.commit = lambda release, vector: (charged.append(release), commit(release, vector))
    drive(world)
    assert [event[1] for event in log.of("sent", "request")] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert [event[1] for event in log.of("sent", "reply")] == [4.0, 5.0, 6.0]
    assert {event[5] for event in log.of("sent")} == {0}, "replies and repeats belong to the tick that opened"
    assert world.protocol.calls == [("request", 0, 1), ("respond", 1, 0), ("complete", 0, 1)]
    assert len({id(release) for release in charged}) == 2
    assert world.traffic.vectors == 6 * 1 + 3 * 3
    assert world.ended == "every agent has finished"


def test_repeats_have_their_own_luck():
    world, log = run_exchange(
        Scripted,
        agents=2,
        clock=called(0),
        loss={"kind": "bernoulli", "probability": 0.9},
        schedule={"kind": "exchange", "resend_after": 1.0},
        stop=Stop(time=2000.0),
    )
    assert world.protocol.calls == [("request", 0, 1), ("respond", 1, 0), ("complete", 0, 1)]
    assert world.quiet_edges.all()
    assert len(log.of("sent", "request")) > 2


@pytest.mark.parametrize(("timeout", "callee_changed"), [(5.0, True), (2.0, False)])
def test_a_session_that_timed_out_changes_nothing_at_the_caller(timeout, callee_changed):
    """The request arrives after 3 and the reply after 6: a callee does not accept what was given up before."""
    world, log = run_exchange(
        Hasty, agents=2, clock=called(0), latency=SLOWLY, schedule={"kind": "exchange", "timeout": timeout}
    )
    models = world.state.agent["model"].rows
    assert models[0].tolist() == [0.0, 1.0]
    assert (models[1].tolist() != [1.0, 4.0]) is callee_changed
    assert world.protocol.count("complete") == world.activations == 0
    assert len(log.of("sent", "request")) == 1
    assert world.quiet_edges.all()


def test_a_protocol_says_by_its_traits_whether_its_callers_give_up():
    class Tolerant(Gossip):
        traits = Traits(exchange="pairwise", unanswered="give_up")

    class Stubborn(Forgetful):
        traits = Traits(exchange="pairwise", unanswered="repeat")

    repeats = [
        bool(exchange_world(p)[0].sessions.rules[columns.REPEATS]) for p in (Gossip, Forgetful, Tolerant, Stubborn)
    ]
    assert repeats == [True, False, False, True]


def patience(protocol, **fields):
    """How long callers wait."""
    return exchange_world(protocol, **fields)[0].sessions.times[columns.PATIENCE]


def test_callers_wait_for_a_mean_round_trip_and_one_time_unit_by_default():
    network = {"latency": SLOWLY, "bandwidth": 8.0, "header_bytes": 8}
    assert patience(Gossip, **network) == 1 + 2 * (3 + (2 * 8 + 8) / 8)
    assert patience(Forgetful, **network) == 5 * 13
    assert (
        exchange_world(Gossip, schedule={"kind": "exchange", "resend_after": 2.5})[0].sessions.times[columns.PATIENCE]
        == 2.5
    )


def test_a_tick_whose_edge_is_busy_does_nothing():
    """Agent 0's session lasts from 1 to 7; agent 1 knows of it from 4 on."""
    world, log = run_exchange(
        agents=2,
        clock=called(0, 0, 0, 0, 1, 1, 0),
        latency=SLOWLY,
        schedule={"kind": "exchange", "resend_after": 100.0},
        stop=Stop(),
    )
    assert [event[1:] for event in log.of("woke")] == [(1.0, 0), (7.0, 0)]
    assert world.activations == 2


def test_partners_are_the_same_whatever_the_latency():
    def partners(latency):
        calls = run_exchange(latency={"kind": "constant", "value": latency}, stop=Stop(time=30.0))[0].protocol.calls
        return {call[1:3]: call[3] for call in calls if call[0] == "partner"}

    at_once, late = partners(0.0), partners(2.0)
    common = at_once.keys() & late.keys()
    assert len(common) > 50
    assert all(at_once[key] == late[key] for key in common)


def test_an_absent_partner_is_asked_again_once_it_is_back(folder):
    availability = up(folder, _1=[(5.5, 100)])
    schedule = {"kind": "exchange", "resend_after": 2.0}
    world, log = run_exchange(Scripted, agents=2, clock=called(0), schedule=schedule, **availability)
    assert [event[1] for event in log.of("sent", "request")] == [1.0, 3.0, 5.0, 7.0]
    assert world.activations == 1
    assert world.traffic.links.dropped == 3


def test_an_absent_caller_does_not_repeat(folder):
    world, log = run_exchange(
        Scripted,
        agents=2,
        clock=called(0),
        latency=SLOWLY,
        schedule={"kind": "exchange", "resend_after": 2.0},
        **up(folder, _0=[(0, 2), (8, 100)]),
    )
    assert [event[1] for event in log.of("sent", "request")] == [1.0, 9.0, 11.0]
    assert world.protocol.count("respond") == 1


def test_a_session_with_a_partner_that_is_gone_for_good_is_void(folder):
    world, log = run_exchange(
        Scripted,
        agents=2,
        clock=called(0),
        schedule={"kind": "exchange", "resend_after": 2.0},
        stop=Stop(),
        latency={"kind": "constant", "value": 0.5},
        **up(folder, _1=1.25),
    )
    assert world.ended == "every agent has finished"
    assert world.quiet_edges.all()
    assert world.protocol.calls == [("request", 0, 1)]
    assert len(log.of("sent")) == 1


def test_the_last_reply_of_a_partner_that_is_gone_is_still_taken(folder):
    world, _ = run_exchange(
        Scripted,
        agents=2,
        clock=called(0),
        latency=SLOWLY,
        schedule={"kind": "exchange", "resend_after": 2.0},
        stop=Stop(),
        **up(folder, _1=4.5),
    )
    assert world.ended == "every agent has finished"
    assert world.activations == 1
    assert world.quiet_edges.all()


def test_a_session_that_only_its_gone_partner_has_applied_stays_open_and_the_run_still_ends(folder):
    """Agent 1 accepts at 4 and is gone at 4.5; its reply finds agent 0 down at 7."""
    world, _ = run_exchange(
        Scripted,
        agents=2,
        clock=called(0),
        latency=SLOWLY,
        schedule={"kind": "exchange", "resend_after": 2.0},
        stop=Stop(),
        **up(folder, _0=[(0, 6), (8, 100)], _1=4.5),
    )
    assert world.ended == "every agent has finished"
    assert world.activations == 0
    assert not world.quiet_edges.all()


def test_agents_without_anybody_to_call_end_their_run():
    world, log = run_exchange(agents=3, graph=Graph.from_matrix(np.zeros((3, 3))), stop=Stop(updates=2))
    assert world.ended == "every agent has made its updates"
    assert log.events == []


@pytest.mark.parametrize(
    ("stop", "reached"),
    [
        (Stop(updates=3), lambda world: min(agent.updates for agent in world.agents) == 3),
        (Stop(activations=11), lambda world: world.activations == 11),
        (Stop(vectors=41), lambda world: world.traffic.vectors == 44),
    ],
)
def test_a_run_that_ends_by_numbers_ends_between_two_exchanges(stop, reached):
    world, _ = run_exchange(stop=stop)
    assert reached(world)
    assert world.quiet_edges.all()


def test_the_last_call_of_a_recorded_clock_is_completed():
    world, _ = run_exchange(agents=2, clock=called(0, 1, 0), latency=SLOWLY, stop=Stop())
    assert world.quiet_edges.all()
    assert world.activations > 0


class Poor(Scripted):
    """Only the callee's budget is spent."""

    decides = True

    def respond(self, me, partner, vector):
        me.fall_silent()


class Bankrupt(Scripted):
    """The caller's budget is spent."""

    decides = True

    def request(self, me, partner):
        me.fall_silent()


def test_a_callee_that_cannot_afford_an_answer_refuses_and_the_session_is_void():
    world, log = run_exchange(Poor, agents=2, clock=called(0), latency={"kind": "constant", "value": 0.5})
    assert [event[1:5] for event in log.of("sent", "refusal")] == [(1.5, "refusal", 1, 0)]
    assert world.quiet_edges.all()
    assert world.agents[1].silent
    assert world.activations == 0
    assert world.traffic.vectors == 1


def test_a_caller_that_cannot_afford_a_request_falls_silent_without_a_session():
    world, log = run_exchange(Bankrupt, agents=2, clock=called(0, 0), stop=Stop())
    assert world.agents[0].silent
    assert not log.of("sent")
    assert len(log.of("woke")) == 1


class Twice(Scripted):
    decides = True

    def request(self, me, partner):
        super().request(me, partner)
        super().request(me, partner)


class Everybody(Scripted):
    decides = True

    def request(self, me, partner):
        me.send("request", me.model, me.plain())


class Mute(Scripted):
    decides = True

    def respond(self, me, partner, vector):
        return


class Astray(Gossip):
    def partner(self, me, uniform):
        return len(me.neighbours)


class Kindless(Gossip):
    def layout(self):
        return Layout(agent={"model": 2}, messages={"request": MessageKind(2), "answer": MessageKind(2)})


class Reacting(Gossip):
    traits = Traits(exchange="pairwise", trigger="message")


@pytest.mark.parametrize(
    ("protocol", "complaint"),
    [
        (Twice, "it sends exactly one 'request' to its partner, agent 1"),
        (Everybody, "exactly one 'request' to its partner, agent 1, and not 'request' to everybody"),
        (Mute, "agent 1 .* the respond of Mute failed: it sends exactly one message"),
        (Astray, "partner of agent 0 must be the rank of one of its 1 neighbours, got 1"),
        (Kindless, "must include 'request' and 'reply' and must not include 'refusal'; they are: request, answer"),
        (Reacting, "its trigger must be 'wake'"),
    ],
)
def test_a_protocol_that_breaks_the_rules_of_an_exchange_is_told(protocol, complaint):
    with pytest.raises((ValueError, StepFailure), match=complaint):
        run_exchange(protocol, agents=2, clock=called(0))


def test_a_protocol_that_broadcasts_cannot_be_scheduled_in_pairs():
    with pytest.raises(InputError, match="does not exchange in pairs") as caught:
        world_of(Stamp, Stamp.Parameters(schedule="exchange"))
    assert caught.value.field == ("schedule",)


class ModelPropagation(Gossip):
    """Asynchronous gossip of models (Vanhaesebrouck, Bellet and Tommasi 2017, equation 6), alpha = 0.9."""

    traits = Traits(exchange="pairwise", unanswered="give_up")
    golden: ClassVar = dict(np.load(GOLDEN))

    def layout(self):
        messages = {"request": MessageKind(4), "reply": MessageKind(4)}
        return Layout(agent={"model": 4}, edge={"copy": 4, "met": 1}, messages=messages)

    def start(self, me):
        me.model = self.golden["local"][me.agent]
        me.send("request", me.model, me.plain("a solitary model"))

    def partner(self, me, uniform):
        own = self.golden["neighbour"][self.golden["order"] == me.agent]
        return int(np.searchsorted(me.neighbours, own[me.tick]))

    def request(self, me, partner):
        me.send("request", me.model, me.plain(), to=int(me.neighbours[partner]))

    def respond(self, me, partner, vector):
        me.send("reply", me.model, me.plain(), to=int(me.neighbours[partner]))
        self.complete(me, partner, vector)

    def complete(self, me, partner, vector):
        me.copy[partner], me.met[partner] = vector, 1.0
        copies = np.where(me.met[:, None] > 0, me.copy, told(me, "request"))
        confidence = self.golden["c"][me.agent]
        mean = me.weights @ copies / me.weights.sum()
        solitary = self.golden["local"][me.agent]
        me.model = (0.9 * mean + 0.1 * confidence * solitary) / (0.9 + 0.1 * confidence)


def test_gossip_model_propagation_follows_an_independent_implementation_step_by_step():
    golden = ModelPropagation.golden
    models = []

    class EveryActivation:
        def sample(self, world, *, final):
            if not final:
                models.append(world.state.agent["model"].rows.copy())

    world, _ = run_exchange(
        ModelPropagation,
        task=small_task(12),
        graph=Graph.from_matrix(golden["W"]),
        clock=called(*golden["order"].tolist()),
        stop=Stop(),
        recorder=EveryActivation(),
        activations=1,
    )
    assert world.activations == 200
    np.testing.assert_allclose(np.array(models), golden["mp_async_a0.9"], atol=1e-12)
