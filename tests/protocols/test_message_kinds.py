"""Steps on agents' own clocks send several kinds of messages, and keep edge blocks that differ by agent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.steps import Every, average, batched, heard_of, heard_sum, local_gradient, post_processed
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.language.message_window import MessageWindow
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.message_log import MessageLog
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared
from .random_worlds import check_engines_agree, joining, random_setting

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 30))]
PARAMETERS = ProtocolParameters.model_validate({"kind": "several"})
PLANNED, ONE_BY_ONE = "batched (planned steps)", "event, because "


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

    def start(self, me):
        me.model = me.agent
        me.send("model", me.model, me.public("a number"))

    def sends(self):
        return {"sum": Every(2)}

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
        me.message_share = me.given
        if me.updates % 2 == 0:
            me.message_sum = me.seen[0] / 100.0 + me.agent


class ToAll(Shares):
    """The same without shares."""

    def layout(self):
        made = super().layout()
        return replace(made, messages={kind: made.messages[kind] for kind in ("model", "sum")})

    def sends(self):
        return {"sum": Every(2), "model": Every(3, phase=np.arange(self.problem.task.agents) % 3)}

    def most_steps(self):
        return 15

    @staticmethod
    def step(me):
        me.seen[0] += me.heard_sum.sum()
        if me.degree > 0:
            me.model = 0.5 * me.model + 0.5 * average(me) - 0.01 * local_gradient(me, me.model)
            me.kept[0] += me.heard_sum[0, 0]
        if me.updates % 2 == 0:
            me.message_sum = me.seen[0] / 100.0 + me.agent + me.updates
        if me.updates % 3 == me.agent % 3:
            me.message_model = me.model


@pytest.mark.parametrize("protocol", [Shares, ToAll])
@pytest.mark.parametrize("seed", SEEDS)
def test_engines_agree_where_agents_wake_on_their_own(protocol, seed):
    world = check_engines_agree(random_setting(seed, loss="logistic"), protocol, PARAMETERS, engine=PLANNED)
    assert world.activations > 20
    assert (world.state.agent["seen"].rows[:, 0] != 0.0).any()
    assert len({world.peers[agent].kept.shape[1] for agent in range(3)}) >= 2
    assert protocol is Shares or world.updates.max() == 15


class Repeats(ToAll):
    """Says the same numbers again and again, now of one kind and now of another or of both."""

    decides = True

    def start(self, me):
        """Nothing is said at the start."""

    @staticmethod
    def step(me):
        if me.updates % 4 != 2:
            me.message_model = 0.0 * me.model + me.agent
        if me.updates % 4 != 1:
            me.message_sum = 0.5 + me.agent + me.updates // 8


class RepeatsByPlan(Repeats):
    """The same numbers, of which half are declared."""

    decides = False

    def sends(self):
        return {"model": Every(2), "sum": Every(3)}

    @staticmethod
    def step(me):
        if me.updates % 2 == 0:
            me.message_model = 0.0 * me.model + me.agent
        if me.updates % 3 == 0:
            me.message_sum = 0.5 + me.agent + me.updates // 8


class Between(Repeats):
    """Says numbers, what follows from earlier ones, and the first again."""

    decides = False

    def sends(self):
        return {"model": Every(0)}

    @staticmethod
    def step(me):
        if me.updates % 2 == 1:
            post_processed(me)
            me.message_sum = 1.0 + me.agent
        else:
            me.message_sum = 2.0 + me.updates // 4


class Apart(Protocol):
    """Tells each neighbour something else: rows of a block, or one vector, or one number."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p, "seen": 2},
            edge={"given": 2},
            messages={"share": MessageKind(2, addressed=True)},
        )

    def start(self, me):
        me.model = me.agent

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
        else:
            me.message = me.given
            me.given = 0.0


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("seed", SEEDS)
def test_engines_agree_on_what_is_told_to_each_neighbour(schedule, seed):
    parameters = ProtocolParameters.model_validate({"kind": "several", "schedule": {"kind": schedule}})
    make = random_setting(seed, loss="logistic", easy=schedule == "rounds")
    world = check_engines_agree(make, Apart, parameters, engine=PLANNED)
    assert (world.state.agent["seen"].rows != 0.0).any()


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize(("protocol", "engine"), [(Repeats, ONE_BY_ONE), (RepeatsByPlan, PLANNED), (Between, PLANNED)])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_bytes_after_others_are_charged_alike(protocol, engine, schedule, seed):
    """The last bytes that were charged are free, whatever was said between them and of whichever kind."""
    make = random_setting(seed, loss="logistic", easy=schedule == "rounds")
    parameters = ProtocolParameters.model_validate({"kind": "several", "schedule": {"kind": schedule}})
    world = check_engines_agree(make, protocol, parameters, engine=engine)
    agents = range(world.ledger.agents)
    assert sum(sum(world.ledger.histogram(agent).values()) for agent in agents) > world.ledger.agents


class Mute(ToAll):
    """Says nothing at its start."""

    def start(self, me):
        me.model = me.agent

    @staticmethod
    @batched
    def step(me):
        me.model = 0.5 * me.model + heard_sum(me) / 9.0 - 0.1 * local_gradient(me, me.model)
        if me.updates[0] % 3 == me.agent[0] % 3:
            me.message_model = me.model
        if me.updates[0] % 2 == 0:
            me.message_sum = me.agent


@pytest.mark.parametrize("seed", SEEDS)
def test_who_joins_late_is_told_the_last_of_every_kind(seed):
    make = joining(random_setting(seed, loss="logistic", easy=True))
    check_engines_agree(make, ToAll, PARAMETERS, engine=PLANNED)
    world = check_engines_agree(make, Mute, PARAMETERS)
    assert (world.traffic.start_vectors > 0) == (world.setting.network.start == "known")


class Uneven(ToAll):
    """Edge blocks that differ between the edges of one agent, which has a list of them."""

    def layout(self):
        return replace(super().layout(), edge={"kept": 1 + self.problem.graph.heads % 3})

    def sends(self):
        return {"sum": Every(0)}

    @staticmethod
    def step(me):
        for rank in range(me.degree):
            me.kept[rank][:] += 1.0 + rank
        me.message_model = me.model


def test_edge_blocks_may_differ_between_edges_of_one_agent():
    world = check_engines_agree(random_setting(0, loss="logistic"), Uneven, PARAMETERS, engine=PLANNED)
    assert len({len(world.state.edge["kept"][edge]) for edge in range(world.setting.graph.degrees[0])}) > 1
    assert world.state.edge["kept"].values.max() > 3


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
    assert world.engine == PLANNED
    assert len(logs[0]) > 3 * 4096
    assert set(logs[0]["kind"].dropna()) >= {"model", "share", "sum"}
    assert logs[0].equals(logs[1])
