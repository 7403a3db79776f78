"""What is measured: worlds of several sizes, made directly as packed arrays, and the engines that may run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from hushnet.agents.availability import Always, OnOff
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import batched, local_gradient
from hushnet.simulator.language.message_window import MessageWindow
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.recording.message_log import MessageLog

Family = Literal["broadcast", "gossip", "rounds"]
ENGINES = ("batched", "event", "naive")
SEED = 1
MU = 0.04
STEP_SIZE = 0.1
LATENCY = {"kind": "exponential", "mean": 0.2}
LOSS = 0.05


@dataclass(frozen=True)
class Trouble:
    """What else may happen in a world, beside `LATENCY` and `LOSS` (none in rounds).

    Parameters
    ----------
    words : str
        For the table.
    network : mapping
        Fields of the network that differ.
    absences : mapping, optional
        An on/off availability; without it, everybody is always there.
    patience : float, optional
        Of agents in rounds.
    logged : int
        Agents whose messages are kept one by one, from the beginning to the end.
    """

    words: str = ""
    network: Mapping[str, Any] = field(default_factory=dict)
    absences: Mapping[str, Any] | None = None
    patience: float | None = None
    logged: int = 0


QUIET = Trouble()
SELDOM, OFTEN = ({"kind": "on_off", "online": 0.8, "mean_down": mean} for mean in (3.0, 0.5))


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Parameters
    ----------
    name : str
        For ``--cases``.
    agents, dimension, degree : int
        n, p, and the number of neighbours of every agent in a random regular graph.
    rows : (int, int)
        Least and most rows of an agent; their number is drawn uniformly.
    family : str
        Coordinate descent by broadcast, learning by gossip, or coordinate descent in rounds without losses.
    recorded : bool
        Whether the share of recording is measured, which needs the exact minimum.
    trouble : Trouble
    base : str
        The case that the table compares it with; empty for none.
    """

    name: str
    agents: int
    dimension: int
    degree: int
    rows: tuple[int, int] = (10, 100)
    family: Family = "broadcast"
    recorded: bool = False
    trouble: Trouble = QUIET
    base: str = ""

    @property
    def title(self) -> str:
        """The case in words."""
        what = {"broadcast": "", "gossip": ", gossip", "rounds": ", rounds"}[self.family]
        graph = "complete graph" if self.degree == self.agents - 1 else f"degree {self.degree}"
        trouble = f", {self.trouble.words}" if self.trouble.words else ""
        rows = f"{self.rows[0]}-{self.rows[1]} rows"
        return f"{self.agents:,} agents{what}{trouble}, {graph}, p={self.dimension}, {rows}"

    @property
    def toy(self) -> Case:
        """The same world with a handful of agents: what is compiled before anything is timed."""
        complete = self.degree == self.agents - 1
        return replace(self, agents=8 if complete else 16, degree=7 if complete else 5, rows=(2, 6))


BURSTS = {"kind": "gilbert_elliott", "mean_good": 9.5, "mean_bad": 0.5}
"""Bad for the share of time that `LOSS` is."""


def _with_troubles(base: Case, troubles: Mapping[str, Trouble]) -> list[Case]:
    """A case, and the same world with each of some troubles."""
    others = [
        replace(base, name=f"{base.name}-{name}", trouble=trouble, base=base.name) for name, trouble in troubles.items()
    ]
    return [base, *others]


CASES = {
    case.name: case
    for case in (
        Case("1k", agents=1_000, dimension=100, degree=11, recorded=True),
        Case("10k", agents=10_000, dimension=100, degree=11),
        Case("complete", agents=100, dimension=100, degree=99, recorded=True),
        Case("100k", agents=100_000, dimension=20, degree=11, rows=(5, 15)),
        Case("100k-rows", agents=100_000, dimension=20, degree=11),
        Case("gossip-1k", agents=1_000, dimension=100, degree=11, family="gossip"),
        Case("gossip-10k", agents=10_000, dimension=100, degree=11, family="gossip"),
        Case("rounds-1k", agents=1_000, dimension=100, degree=11, family="rounds"),
        *_with_troubles(
            Case("broadcast", agents=1_000, dimension=20, degree=10),
            {
                "gamma": Trouble("gamma delays", {"latency": {"kind": "gamma", "mean": 0.2, "shape": 2.0}}),
                "bursts": Trouble("bursts of losses", {"loss": BURSTS}),
                "absent": Trouble("absences", absences=SELDOM),
                "churn": Trouble("frequent absences", absences=OFTEN),
                "log-two": Trouble("messages of two agents kept", logged=2),
                "log-all": Trouble("all messages kept", logged=1_000),
            },
        ),
        *_with_troubles(
            Case("exchanges", agents=1_000, dimension=20, degree=10, family="gossip"),
            {"churn": Trouble("frequent absences", absences=OFTEN)},
        ),
        *_with_troubles(
            Case("rounds", agents=1_000, dimension=20, degree=10, family="rounds"),
            {
                "lossy": Trouble("losses", {"loss": LOSS}),
                "absent": Trouble("absences", absences=SELDOM),
                "both": Trouble("losses and absences", {"loss": LOSS}, SELDOM),
                "churn": Trouble("frequent absences", absences=OFTEN),
                "patience": Trouble("patience", patience=2.0),
                "lossy-patience": Trouble("losses and patience", {"loss": LOSS}, patience=2.0),
            },
        ),
    )
}


class GossipParameters(ProtocolParameters):
    """No parameters."""

    kind: Literal["benchmark_gossip"] = "benchmark_gossip"


class Gossip(Protocol):
    """Pairwise averaging (Boyd et al. 2006), after which both ends take a gradient step on their own rows."""

    Parameters = GossipParameters
    traits = Traits(exchange="pairwise")

    def layout(self) -> Layout:
        """One model; a session carries one each way."""
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"request": MessageKind(p), "reply": MessageKind(p)})

    def start(self, me: Any) -> None:
        """Start at zero, which every agent knows."""

    @staticmethod
    @batched
    def request(me: Any) -> None:
        """Call with the own model."""
        me.message = me.model

    @staticmethod
    @batched
    def respond(me: Any, heard: Any) -> None:
        """Answer with the own model, then learn."""
        me.message = me.model
        _learn(me, heard)

    @staticmethod
    @batched
    def complete(me: Any, heard: Any) -> None:
        """Average with the other's model and step down the own gradient."""
        _learn(me, heard)


def _learn(me: Any, heard: Any) -> None:
    model = me.model + (heard - me.model) / 2
    me.model = model - STEP_SIZE * local_gradient(me, model)


def protocol_of(family: Family, patience: float | None = None) -> tuple[type[Protocol], ProtocolParameters]:
    """What the agents of a family run."""
    if family == "gossip":
        return Gossip, GossipParameters()
    # The public bound spares the start one eigenvalue problem an agent, which is no engine's doing.
    fields: dict[str, Any] = {"kind": "coordinate_descent", "mu": MU, "smoothness": "public"}
    if family == "rounds":
        fields["schedule"] = {"kind": "rounds", "patience": patience}
    return CoordinateDescent, CoordinateDescentParameters.model_validate(fields)


def make_setting(case: Case, updates: float) -> Setting:
    """The world of a case, to run until an agent has woken so many times on average."""
    rng = np.random.default_rng(SEED)
    loss, absences = 0.0 if case.family == "rounds" else LOSS, case.trouble.absences
    return Setting(
        task=make_task(case, rng),
        graph=random_regular(case.agents, case.degree, rng),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters.model_validate({"latency": LATENCY, "loss": loss, **case.trouble.network}),
        availability=Always(kind="always") if absences is None else OnOff.model_validate(absences),
        stop=Stop(time=float(updates)),
        draws=Draws(SEED),
    )


def observer_of(case: Case, setting: Setting) -> MessageLog | None:
    """What keeps messages in a case that asks for it."""
    if not case.trouble.logged:
        return None
    assert setting.stop.time is not None
    window = MessageWindow(agents=min(case.trouble.logged, case.agents), between=[0.0, setting.stop.time])
    return MessageLog(window, setting.task.ids, setting.graph)


def make_task(case: Case, rng: np.random.Generator) -> Task:
    """Random rows inside the unit ball, labelled by one common model with 5 % noise."""
    counts = rng.integers(case.rows[0], case.rows[1] + 1, case.agents)
    features, labels = _rows(int(counts.sum()), case.dimension, rng)
    tests, test_labels = _rows(case.agents, case.dimension, rng)
    return Task(
        name=case.name,
        ids=list(range(case.agents)),
        train=Table(features, labels, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
        test=Table(tests, test_labels, np.arange(case.agents + 1, dtype=np.int64)),
        loss=LOSSES["logistic"],
        regularisation=1.0 / counts,
        metric="accuracy",
        bounds={"l2": 1.0},
    )


def _rows(count: int, dimension: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Made in place: at 10,000 agents a copy of the rows is what would decide the peak of memory."""
    features = rng.random((count, dimension))
    features -= 0.5
    features *= 2.0 / np.sqrt(dimension)
    flipped = rng.random(count) < 0.05
    return features, np.where((features.sum(axis=1) >= 0) != flipped, 1.0, -1.0)


def random_regular(agents: int, degree: int, rng: np.random.Generator) -> Graph:
    """A random regular graph with weights 1, by pairing stubs and shuffling pairs that are loops or repeated.

    networkx makes the same kind of graph, but takes most of a minute for 100,000 agents.
    """
    if degree == agents - 1:
        return Graph.from_matrix(1.0 - np.eye(agents))
    if degree > (agents - 1) // 2:
        others = random_regular(agents, agents - 1 - degree, rng)
        matrix = 1.0 - np.eye(agents)
        matrix[others.tails, others.heads] = 0.0
        return Graph.from_matrix(matrix)
    pairs = rng.permutation(np.repeat(np.arange(agents), degree)).reshape(-1, 2)
    while True:
        pairs.sort(axis=1)
        _, first = np.unique(pairs[:, 0] * agents + pairs[:, 1], return_index=True)
        bad = np.ones(len(pairs), dtype=bool)
        bad[first] = False
        bad |= pairs[:, 0] == pairs[:, 1]
        if not bad.any():
            return Graph.from_edges(agents, pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))
        # In a small graph, mixing many pairs would spoil as many as it mends.
        more = int(bad.sum()) * (10 if 100 * bad.sum() <= len(pairs) else 1)
        mixed = np.union1d(np.flatnonzero(bad), rng.integers(0, len(pairs), more))
        pairs[mixed] = rng.permutation(pairs[mixed].ravel()).reshape(-1, 2)


def step_constants(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """(n,) alpha and mu c_i of coordinate descent with the public bound on the rows."""
    mu_c = MU * task.train.counts.astype(np.float64)
    smoothness = task.loss.curvature * task.bounds["l2"] ** 2 + 2.0 * task.regularisation
    return 1 / (1 + mu_c * smoothness), mu_c
