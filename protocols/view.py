"""What a step of a protocol sees, and its only way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..agents.blocks import State
from ..agents.graph import Graph
from ..agents.inbox import Inbox, Message
from ..agents.tables import Shard
from ..agents.tasks.base import Task
from .layout import Layout
from .privacy.mechanisms import Release

POST_PROCESSING = "it follows from what was released and heard"
"""Why a message without noise of its own is public."""


@dataclass(frozen=True)
class Problem:
    """What a protocol may look at while it prepares its public constants.

    Parameters
    ----------
    task : Task
        Only its public parts (dimension, bounds, sizes) may enter a constant without being listed in
        `Protocol.assumed_public`.
    graph : Graph
    oracle : callable, optional
        ``oracle(updates)`` gives the (n, updates) places of every agent's first wake-ups among all of these, for
        protocols that pretend to know the schedule in advance; None where absences make this impossible.
    stream : callable, optional
        ``stream(purpose, agent)`` gives an agent's random stream before time 0, for what agents prepare together;
        None where nothing is run.
    assumed : callable, optional
        ``assumed(name, value)`` gives a constant that comes from agents' records and is treated as public; its name has
        to be among `Protocol.assumed_public`. It is ``value``, except where a run is led along one on neighbouring
        data: these share such constants, and all others have to do without agents' records.
    """

    task: Task
    graph: Graph
    oracle: Callable[[int], NDArray[np.int64]] | None = None
    stream: Callable[[str, int], np.random.Generator] | None = None
    assumed: Callable[[str, Any], Any] = lambda _name, value: value


class Blocks(dict[str, Any]):
    """Blocks by name: arrays to write into, which nothing can take the place of.

    Parameters
    ----------
    where : str
        What a view calls them.
    blocks : mapping of str to array, or list of arrays
    """

    def __init__(self, where: str, blocks: Mapping[str, Any]) -> None:
        super().__init__(blocks)
        self.where = where

    def __setitem__(self, name: str, value: Any) -> None:
        # Python ends ``state["model"] -= step`` with putting back what was changed in place.
        if self.get(name) is not value:
            raise TypeError(f"write into a block, as in view.{self.where}[{name!r}][:] = ...; it cannot be replaced")


class View:
    """What one agent sees during a step: its own world and nothing else.

    Attributes
    ----------
    agent : int
        Index of the agent.
    now : float
        Time in expected wake-ups of a rate-1 agent.
    tick : int
        Tick of the agent's clock, counting wake-ups that it slept through.
    updates : int
        Steps that the agent has completed.
    round : int
        Round that the step belongs to (trigger ``round``).
    role : str
        What the agent is, by `Layout.roles`.
    neighbours : (degree,) int64
        In ascending order.
    weights : (degree,) float64
        W_ij of each neighbour.
    data : Shard
        The agent's own rows, as `Protocol.local_data` returned them; read-only where they are the task's.
    regularisation : float
        The agent's lambda_i.
    state : dict of str to (width,) float64
        The agent's blocks, writable.
    edge : dict of str to (degree, width) float64
        The blocks of the agent's outgoing edges, writable, in the order of `neighbours`; a list of vectors where
        widths differ.
    messages : list of Message
        Everything that arrived since the last step (inbox ``every`` only).
    """

    __slots__ = (
        "__weakref__",
        "_fill",
        "_inbox",
        "_kinds",
        "_make_stream",
        "_partner_uniform",
        "_received",
        "_slots",
        "_streams",
        "agent",
        "data",
        "edge",
        "messages",
        "neighbours",
        "now",
        "regularisation",
        "role",
        "round",
        "state",
        "tick",
        "updates",
        "weights",
    )

    def __init__(
        self,
        agent: int,
        problem: Problem,
        layout: Layout,
        state: State,
        inbox: Inbox,
        *,
        data: Shard,
        stream: Callable[[str, int, int], np.random.Generator],
        partner_uniform: Callable[[int, int], float],
        unheard: Literal["own", "zero"] = "own",
    ) -> None:
        slots = problem.graph.edges_of(agent)
        self.role = "peer" if layout.roles is None else layout.roles[agent]
        self.agent, self.now, self.tick, self.updates, self.round = agent, 0.0, 0, 0, 0
        self.neighbours = _read_only(problem.graph.heads[slots])
        self.weights = _read_only(problem.graph.weights[slots])
        self.data = data
        self.regularisation = float(problem.task.regularisation[agent])
        self.state = Blocks("state", {name: block[agent] for name, block in state.agent.items()})
        self.edge = Blocks("edge", {name: block.of(slots) for name, block in state.edge.items()})
        self.messages: list[Message] = []
        self._partner_uniform = partner_uniform
        self._make_stream, self._inbox, self._slots, self._kinds = stream, inbox, slots, layout.messages
        self._streams: dict[str, np.random.Generator] = {}
        self._fill = unheard == "own"
        self._received: dict[str, Any] = {}

    def received(self, kind: str) -> Any:
        """The newest vector of this kind from each neighbour, in the order of `neighbours`.

        Returns
        -------
        (degree, width) float64, read-only
            A list of vectors where widths differ. A neighbour that was never heard shows the agent's own block
            (`MessageKind.mirrors`), or zeros.
        """
        values, mirrors = self._newest(kind), self._kinds[kind].mirrors
        if not self._fill or mirrors is None or not isinstance(values, np.ndarray):
            return values
        heard = self.heard(kind)
        return values if heard.all() else np.where(heard[:, None], values, self.state[mirrors])

    def _newest(self, kind: str) -> Any:
        """The slices of the inbox that the view reads of a kind, made when they are first read."""
        blocks = self._inbox.values  # asked for each time, which brings it up to date
        if kind not in self._received:
            values = blocks[kind].of(self._slots)
            if blocks[kind].uniform and isinstance(values, np.ndarray):
                self._received[kind] = _read_only(values)
            else:
                self._received[kind] = [_read_only(array) for array in values]
        return self._received[kind]

    def heard_at(self, kind: str) -> tuple[Any, NDArray[np.int64]]:
        """The newest vectors of a kind over all edges of a run, and the (degree,) places of the agent's; -1: nothing.

        A list of the agent's own vectors, by their places in it, where widths differ.
        """
        block, first = self._inbox.values[kind], self._slots.start
        there = self._inbox.order[kind][self._slots] >= 0
        if block.uniform:
            return block.rows, np.where(there, np.arange(first, self._slots.stop), -1)
        return list(self._newest(kind)), np.where(there, np.arange(len(there)), -1)

    def heard(self, kind: str) -> NDArray[np.bool_]:
        """(degree,) whether each neighbour was ever heard with this kind of message."""
        return self._inbox.order[kind][self._slots] >= 0

    def sent_at(self, kind: str) -> NDArray[np.float64]:
        """(degree,) when the newest known vectors were sent; minus infinity if never."""
        return _read_only(self._inbox.sent_at[kind][self._slots])

    def orders(self, kind: str) -> NDArray[np.int64]:
        """(degree,) the rank among all sends of the newest message known of each neighbour; -1 for none."""
        return np.array(self._inbox.order[kind][self._slots])

    def stream(self, purpose: str) -> np.random.Generator:
        """A random stream of this agent and step (``noise``, ``sampling``, ...); asked twice, it goes on."""
        if purpose not in self._streams:
            self._streams[purpose] = self._make_stream(purpose, self.agent, self.tick)
        return self._streams[purpose]

    def partner_uniform(self) -> float:
        """The draw in (0, 1) that picks the partner of a pairwise session: one for each tick of the agent's clock."""
        return self._partner_uniform(self.agent, self.tick)

    def begin(self, now: float, tick: int, updates: int) -> None:
        """Move on to another step; the engine does this."""
        self.now, self.tick, self.updates = now, tick, updates
        self._streams = {}


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class Sent:
    """One call of `Out.send`."""

    kind: str
    vector: NDArray[np.float64]
    release: Release
    to: tuple[int, ...] | None


class Out:
    """The only way out of a step.

    Parameters
    ----------
    view : View
    layout : Layout
    reserve : callable
        The ledger's answer to whether a release fits the agent's budget.
    commit : callable
        Charges a release.
    released : callable, optional
        How many releases an agent was charged for; none by default.
    """

    def __init__(
        self,
        view: View,
        layout: Layout,
        reserve: Callable[[Release], bool],
        commit: Callable[[Release], bool],
        released: Callable[[int], int] | None = None,
    ) -> None:
        self._view, self._layout, self._reserve, self._commit = view, layout, reserve, commit
        self._released = released
        self.sent: list[Sent] = []
        self.disclosed: list[Release] = []
        self.silent = False

    def send(self, kind: str, vector: NDArray[np.float64], release: Release, *, to: int | None = None) -> None:
        """Send a vector to all neighbours, or to one of them.

        The vector is copied: changing it afterwards changes nothing that was sent.

        Parameters
        ----------
        kind : str
            A message kind of the layout.
        vector : (width,) float64
        release : Release
            What the vector reveals; charged to the agent when the message leaves.
        to : int, optional
            One neighbour; all of them by default.

        Raises
        ------
        TypeError
            Without a `Release`.
        ValueError
            If the release is another agent's, or the kind, the width or the neighbour does not fit.
        """
        if not isinstance(release, Release):
            raise TypeError(f"a message of kind {kind!r} needs a Release, got {type(release).__name__}")
        if release.agent != self._view.agent:
            raise ValueError(f"{kind!r} has a release of agent {release.agent}, sent by agent {self._view.agent}")
        if kind not in self._layout.messages:
            raise ValueError(f"{kind!r} is not a message kind of this protocol: {', '.join(self._layout.messages)}")
        copied = np.array(vector, dtype=np.float64).reshape(-1)
        width = np.asarray(self._layout.messages[kind].width)
        expected = int(width if width.ndim == 0 else width[self._view.agent])
        if len(copied) != expected:
            raise ValueError(f"a message of kind {kind!r} carries {expected} numbers, got {len(copied)}")
        if to is not None and to not in self._view.neighbours.tolist():
            raise ValueError(f"agent {to} is not a neighbour of agent {self._view.agent}")
        copied.flags.writeable = False
        self.sent.append(Sent(kind, copied, release, None if to is None else (int(to),)))

    def reserve(self, release: Release) -> bool:
        """Set budget aside for a release, before its noise is drawn; False if the agent cannot afford it."""
        return self._reserve(release)

    def disclose(self, release: Release) -> None:
        """Charge at once a release that leaves the agent in another way than as a message under its own name.

        A sum of noisy values that goes out as one message is such a way for all of its terms but one.
        """
        self.disclosed.append(release)
        self._commit(release)

    def fall_silent(self) -> None:
        """This agent is done: it takes no further steps, though it goes on receiving."""
        self.silent = True

    def public(self, reason: str) -> Release:
        """A release without private content, which costs nothing."""
        return Release.public(self._view.agent, self._view.now, reason)

    def plain(self, reason: str = "") -> Release:
        """A release of private content without noise, which makes epsilon infinite."""
        return Release.plain(self._view.agent, self._view.now, reason)

    def post_processing(self) -> Release:
        """A release of what follows from the agent's own releases and from what it heard, which costs nothing more.

        Own data may enter only by what was charged before, as noisy values or by `disclose`: the replay of the contract
        (`hushnet.simulator.contract.check_replay`) shows whether that is so.

        Raises
        ------
        ValueError
            If the agent has neighbours, but has released nothing and heard nothing yet.
        """
        view = self._view
        if not len(view.neighbours):  # nobody hears it
            return self.public(POST_PROCESSING)
        released = bool(self._released and self._released(view.agent)) or any(one.release.draws for one in self.sent)
        if not (released or view.messages or any(view.heard(kind).any() for kind in self._layout.messages)):
            raise ValueError(
                f"agent {view.agent} at time {view.now:.6g} has neither released nor heard anything that it could "
                "process; release something first, by out.send or out.disclose"
            )
        return self.public(POST_PROCESSING)
