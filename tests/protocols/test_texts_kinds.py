"""Steps on agents' own clocks send several kinds of messages, and keep edge blocks that differ by agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hushnet.agents.availability import Always, Window
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.steps import average, heard_of, local_gradient, post_processed
from hushnet.simulator.contract.charges import books_of
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.language.message_window import MessageWindow
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.recording.message_log import MessageLog
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared
from .text_worlds import check_forms, random_setting

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 30))]
PARAMETERS = ProtocolParameters.model_validate({"kind": "several"})


class Shares(Protocol):
    """Tells a model to all, a share of its own width to each, and now and then a number."""

    def layout(self):
        graph, p = self.problem.graph, self.problem.task.dimension
        return Layout(
            agent={"model": p, "seen": 3, "share_width": 2},
            edge={"kept": 1 + graph.tails % 3, "given": 2},
            messages={
                "model": MessageKind(p, "model"),
                "share": MessageKind(2, addressed=True),
                "sum": MessageKind(1),
            },
        )

    def start(self, view, out):
        view.state["model"][:] = view.agent
        out.send("model", view.state["model"], out.public("a number"))

    @staticmethod
    def step(me):
        me.seen[0] += me.heard_sum.sum()
        for rank in range(me.degree):
            width = me.kept.shape[1]
            me.kept[rank, width - 1] += 0.5 * heard_of(me, rank)[0]
            me.kept[rank, 0] += me.updates
            if me.was_heard_share[rank]:
                me.seen[1] += me.heard_share[rank, 0]
                me.seen[2] += me.heard_share[rank, 1]
            me.given[rank, 0] = me.kept[rank, 0] / (1 + me.updates)
            me.given[rank, 1] = rank
        if me.degree > 0:
            me.model = 0.5 * me.model + 0.5 * average(me) - 0.01 * local_gradient(me, me.model)
        me.message_model = me.model
        if me.updates % 3 != 1:
            me.message_share = me.given
        if me.updates % 2 == 0:
            me.message_sum = me.seen[0] / 100.0 + me.agent


class ToAll(Shares):
    """The same without shares."""

    def layout(self):
        made = super().layout()
        return replace(made, messages={kind: made.messages[kind] for kind in ("model", "sum")})

    @staticmethod
    def step(me):
        me.seen[0] += me.heard_sum.sum()
        if me.degree > 0:
            me.model = 0.5 * me.model + 0.5 * average(me) - 0.01 * local_gradient(me, me.model)
            me.kept[0] += me.heard_sum[0, 0]
        if me.updates % 2 == 0:
            me.message_sum = me.seen[0] / 100.0 + me.agent + me.updates
        if me.updates % 3 != 1:
            me.message_model = me.model
        return me.updates >= 15


@pytest.mark.parametrize("protocol", [Shares, ToAll])
@pytest.mark.parametrize("seed", SEEDS)
def test_all_forms_agree_where_agents_wake_on_their_own(protocol, seed):
    world = check_forms(random_setting(seed, loss="logistic"), protocol, PARAMETERS)
    assert world.activations > 20
    assert (world.state.agent["seen"].rows[:, 0] != 0.0).any()
    assert len({world.views[agent].edge["kept"].shape[1] for agent in range(3)}) >= 2


class Repeats(ToAll):
    """Says the same numbers again and again, now of one kind and now of another or of both."""

    def start(self, view, out):
        """Nothing is said at the start."""

    @staticmethod
    def step(me):
        if me.updates % 4 != 2:
            me.message_model = 0.0 * me.model + me.agent
        if me.updates % 4 != 1:
            me.message_sum = 0.5 + me.agent + me.updates // 8


class Between(Repeats):
    """Says numbers, what follows from earlier ones, and the first again."""

    @staticmethod
    def step(me):
        if me.updates % 2 == 1:
            post_processed(me)
            me.message_sum = 1.0 + me.agent
        else:
            me.message_sum = 2.0 + me.updates // 4


class Apart(Protocol):
    """Tells each neighbour something else, all at once: rows of a block, or one vector, or one number, or nothing."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p, "seen": 2},
            edge={"given": 2},
            messages={"share": MessageKind(2, addressed=True)},
        )

    def start(self, view, out):
        view.state["model"][:] = view.agent

    @staticmethod
    def step(me):
        for rank in range(me.degree):
            me.seen += heard_of(me, rank) / 8.0
            me.given[rank] = me.seen * (1 + rank) + me.agent
        me.model = 0.5 * me.model - 0.01 * local_gradient(me, me.model)
        if me.updates % 5 == 0:
            me.message = me.seen
        elif me.updates % 5 == 1:
            me.message = 1.5 * me.agent
        elif me.updates % 5 < 4:
            me.message = me.given
            me.given = 0.0


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("seed", SEEDS)
def test_all_forms_agree_on_what_is_told_to_each_neighbour(schedule, seed):
    parameters = ProtocolParameters.model_validate({"kind": "several", "schedule": {"kind": schedule}})
    world = check_forms(random_setting(seed, loss="logistic", easy=schedule == "rounds"), Apart, parameters)
    assert (world.state.agent["seen"].rows != 0.0).any()
    assert world.engine == "batched (compiled step)"


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("protocol", [Repeats, Between])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_bytes_after_others_are_charged_alike_in_all_forms(protocol, schedule, seed):
    """The last bytes that were charged are free, whatever was said between them and of whichever kind."""
    make = random_setting(seed, loss="logistic", easy=schedule == "rounds")
    parameters = ProtocolParameters.model_validate({"kind": "several", "schedule": {"kind": schedule}})
    event = drive(prepared(World(make(), protocol, parameters), EventEngine()))
    compiled = drive(fast_world(make(), protocol, parameters))
    assert compiled.engine == "batched (compiled step)"
    for agent in range(event.ledger.agents):
        assert books_of(compiled, agent, exact=True) == books_of(event, agent, exact=True)
    agents = range(event.ledger.agents)
    assert sum(sum(books_of(event, agent, exact=True).values()) for agent in agents) > event.ledger.agents


def joining(seed: int) -> Callable[[], Setting]:
    make, joins = random_setting(seed, loss="logistic", easy=True), Window(share=0.5, between=[2.0, 9.0])
    return lambda: replace(make(), availability=Always(kind="always", joins=joins))


@pytest.mark.parametrize("seed", SEEDS)
def test_who_joins_late_is_told_the_last_of_every_kind_in_all_forms(seed):
    check_forms(joining(seed), ToAll, PARAMETERS)


class Uneven(ToAll):
    """Edge blocks that differ between the edges of one agent."""

    def layout(self):
        made = super().layout()
        return replace(made, edge={"kept": 1 + self.problem.graph.heads % 3})

    @staticmethod
    def step(me):
        for rank in range(me.degree):
            me.kept[rank][0] += 1.0
        me.message_model = me.model


def test_edge_blocks_that_differ_between_edges_of_one_agent_stay_in_python_and_say_so():
    world = drive(fast_world(random_setting(0, loss="logistic")(), Uneven, PARAMETERS))
    assert "Python step, because the edge block 'kept' has different widths on edges of one agent" in world.engine
    assert world.activations > 20


class Unpacks(Apart):
    """Assigns several things at once, and in loops."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p, "other": p, "seen": 2, "count": 1, "total": 1},
            edge={"given": 2},
            messages={"share": MessageKind(2, addressed=True)},
        )

    @staticmethod
    def step(me):
        for rank in range(me.degree):
            me.seen += heard_of(me, rank) / 8.0
        first, me.count = 1.0, me.count + 1.0
        me.total, me.count = me.count, me.total
        me.model, me.other = me.other, me.model + 0.5
        me.seen[0], (me.seen[1], second) = me.seen[1] + first, (me.agent, 2.0)
        for me.total in range(3):
            me.count += me.total
        values = me.model + 1.0
        for rank, me.seen[0] in enumerate(values):
            me.count += rank * me.seen[0]
        me.message, third = me.seen * second, me.seen[1]
        me.given = kept = third + 1.0
        return kept < 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_all_forms_agree_where_several_things_are_assigned_at_once(seed):
    world = check_forms(random_setting(seed, loss="logistic"), Unpacks, PARAMETERS)
    assert world.engine == "batched (compiled step)"
    assert (world.state.agent["seen"].rows != 0.0).any()


@pytest.mark.parametrize("network", [{"loss": 0.99}, {"latency": {"kind": "exponential", "mean": 0.4}}])
def test_every_message_of_every_kind_is_in_the_log(network):
    """More notes than there is room for at once, hardly any of which is of a message that is under way."""
    make = random_setting(2, loss="logistic", easy=True)

    def setting():
        return replace(make(), network=NetworkParameters.model_validate(network), stop=Stop(time=1500.0))

    logs = []
    for prepare in (lambda *what, **log: prepared(World(*what, **log), EventEngine()), fast_world):
        made = setting()
        window = MessageWindow.model_validate({"between": [0.0, 1500.0], "agents": len(made.task.ids)})
        log = MessageLog(window, made.task.ids, made.graph)
        world = drive(prepare(made, Shares, PARAMETERS, observer=log))
        table = log.table(world)
        logs.append(table.sort_values(list(table.columns), kind="stable").reset_index(drop=True))
    assert world.engine == "batched (compiled step)"
    assert len(logs[0]) > 3 * 4096
    assert set(logs[0]["kind"].dropna()) >= {"model", "share", "sum"}
    assert logs[0].equals(logs[1])
