"""Worlds with observers: gossip averaging on graphs of one's own, on either engine."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
from hushnet.agents.graph import Graph
from hushnet.agents.tables import Table
from hushnet.protocols.algorithms.muffliato import Muffliato
from hushnet.protocols.base import Traits
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy.composition import gaussian_mu
from hushnet.protocols.steps import mixing_weights
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.language.observer_parameters import ObserverParameters
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.observers import Observing
from hushnet.simulator.observers.learned import BOUNDS, LINEAR
from hushnet.simulator.recording.message_log import MessageLog
from hushnet.simulator.world.watchers import Observer
from hushnet.simulator.world.world import World

DELTA = 1e-5
NOISE = {"mechanism": "gaussian", "multiplier": 2.0, "clip": 0.2}
ENGINES = {"event": EventEngine(), "batched": BatchedEngine()}


class Pushed(Muffliato):
    """Noisy values that are mixed with what was heard, whoever is heard when."""

    @classmethod
    def traits_for(cls, parameters):
        return Traits(directed=True, changing=True)

    def prepare(self):
        self.weights, self.gamma = mixing_weights(self.problem.graph, "uniform"), 1.0
        self.noise = GradientNoise(self.parameters.privacy, self.problem.task)
        self.releases, self.shared = {}, None


class Vectors(Observer):
    """What every agent has sent, by its tick."""

    def __init__(self):
        self.sent_at = {}

    def woke(self, world, agent):
        """Nothing."""

    def sent(self, world, message, delay, lost):
        """Keep the vector."""
        if len(message.vector):
            self.sent_at[message.sender, message.tick] = message.vector

    def arrived(self, world, message, up, newest):
        """Nothing."""


class Asks:
    """A recorder that asks observers at every record instant."""

    def __init__(self, mistakes):
        self.mistakes = mistakes

    def sample(self, world, *, final):
        """Keep what they say, and the bounds that they rely on."""
        learned = world.learned(world, DELTA)
        self.mistakes.append((learned.mistake, LINEAR in np.array(BOUNDS)[learned.bounds]))


def ran(
    graph: nx.Graph,
    fields: dict,
    *,
    protocol=Muffliato,
    engine="event",
    time=50.0,
    seed=20,
    clock=None,
    observer=None,
    features=None,
    compute=None,
    changes=None,
    mistakes=None,
    **setting,
) -> World:
    """A world that has run to its end, whose observer is a log of everything; each agent has three rows.

    ``mistakes`` is a list to which what observers say against its linear map is added at every time unit.
    """
    network = NetworkParameters.model_validate(setting.pop("network", {}))
    made = small_setting(agents=len(graph), empty=False, network=network, time=time, **setting)
    listed = sorted(graph.edges) if graph.is_directed() else sorted(map(sorted, graph.edges))
    tails, heads = np.array(listed, dtype=np.int64).reshape(-1, 2).T
    build = Graph.from_directed_edges if graph.is_directed() else Graph.from_edges
    edges = build(len(graph), tails, heads, np.ones(len(tails)))
    owners, rng = np.repeat(np.arange(len(graph)), 3), np.random.default_rng(7)  # equal data, and so equal noise
    drawn, labels = rng.uniform(-1, 1, (len(owners), 3)), rng.choice([-1.0, 1.0], len(owners))
    rows = Table.from_owners(drawn, labels, owners, len(graph))
    if features is not None:
        rows = Table.from_owners(features, np.ones(len(owners)), owners, len(graph))
    given = {"clock": clock or made.clock, "compute": compute, "changes": changes, "graph": edges, "draws": Draws(seed)}
    made = replace(made, task=replace(made.task, train=rows), **given)
    log = observer or MessageLog(None, made.task.ids, edges, whole=True)
    recorded = {} if mistakes is None else {"every": 1.0, "recorder": Asks(mistakes)}
    world = World(made, protocol, protocol_parameters(protocol, fields), observer=log, **recorded)
    if observer is None:
        world.learned = Observing(ObserverParameters(against=["agents"]))
        world.begun = _noted(world) if world.protocol.linear_map() is not None else {}
    ENGINES[engine].run(world)
    return world


def _noted(world: World) -> dict:
    """What each agent's start releases, by agent, once the world has run: a multiple of one of its blocks."""
    values, started, linear = {}, world.learned.started, world.protocol.linear_map()
    block, factor = next(((name, factor) for name, factor in linear.start.items() if factor), (None, 0.0))

    def noted(me):
        started(me)
        if block in world.state.agent:
            values[me.agent] = np.array(world.state.agent[block][me.agent]) / factor

    world.learned.started = noted
    return values


def gossip(graph: nx.Graph, rounds: int, **given) -> World:
    """Rounds of simple gossip with one release each, sigma = 2 Delta."""
    fields = {"gossip": "simple", "rounds": rounds, "privacy": NOISE, **given.pop("fields", {})}
    return ran(graph, fields, **given)


def found(world: World, *against, heard="delivered", delta=DELTA):
    """What observers have learned by the end of a world's run."""
    observers = ObserverParameters.model_validate({"against": list(against) or ["agents"], "heard": heard})
    world.learned.observers, world.learned._known = observers, None  # tests change what a world declares
    return world.learned(world, delta)


def mu_of(epsilons):
    """mu of the Gaussian release that has an epsilon; NaN stays."""
    flat = [0.0 if e == 0 else e if np.isnan(e) else gaussian_mu(e, DELTA) for e in np.ravel(epsilons).tolist()]
    return np.reshape(flat, np.shape(epsilons))
