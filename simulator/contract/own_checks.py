"""Check that a step uses and changes its own alone, by runs in which the data of all other agents are others.

The others say there what they have said on the usual data, with the same noise. So whatever an agent does otherwise
follows from something that is neither its own nor was heard.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.tasks.task import Task
from ...protocols.base import Peer, Protocol, ProtocolParameters
from ...protocols.steps.declarations import POST_PROCESSING
from ..engine.selection import EventEngine
from ..network.latency import Constant
from ..network.network import NetworkParameters
from ..world.watchers import Phase, Watch
from ..world.world import World
from .bench import AGENTS, SEED, admitted_world, small_setting
from .draws import Step, difference, protects_nothing
from .forcing import Led, under_own
from .replay import check_listed
from .transcript import Recording
from .violation import ContractViolation

Vectors = list[tuple[str, NDArray[np.float64]]]
"""Blocks of an agent by name."""
NETWORK = NetworkParameters(latency=Constant(kind="constant", value=1.0))
"""On which answers without end take their time."""
SHARED = (
    "made again, it differs, too, so something has changed that its steps share, such as a counter of the class or a "
    "generator of its own; keep what changes in blocks, and draw by uniform, normal or choice"
)


def check_own(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A step reads its own blocks, data and inbox, and writes its own blocks; public messages depend on no data.

    So does a start, unless the protocol says that starts are computed centrally. Constants that a private protocol
    prepares from agents' data are listed among what is assumed public, each by name. Raises `ContractViolation`.
    """
    noted, traits = _noted(protocol, parameters), protocol.traits_for(parameters)
    for agent in range(AGENTS):
        try:
            _among_others(protocol, parameters, noted, agent, central=traits.central)
        except ContractViolation as found:
            if _noted(protocol, parameters).everything() != noted.everything():
                raise ContractViolation(f"{found}; {SHARED}") from None
            raise
    if noted.private and not traits.central:
        check_listed(noted.constants, noted.assumed_public)
        for agent in range(AGENTS):
            try:
                _among_others(protocol, parameters, noted, agent, prepared=True)
            except ContractViolation as found:
                raise ContractViolation(
                    f"what agent {agent} does depends on constants that come from the data of others; take them from "
                    "problem.assumed(name, value) and list the name in assumed_public"
                ) from found


class OwnSteps(Recording):
    """A watch that notes what each step leaves in its agent's blocks, and finds what none may do on any data."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[Vectors] = []
        self.private = False
        self.assumed_public: tuple[str, ...] = ()
        self._latest: dict[int, tuple[Peer, Vectors]] = {}
        self._global_draws = _global_draws()

    @override
    def stepped(self, phase: Phase, me: Peer) -> None:
        who = f"{phase} of {self.agent(me.agent)}"
        if _global_draws() != self._global_draws:
            raise ContractViolation(
                f"{who} draws from np.random, which no rerun repeats; draw by uniform, normal or choice"
            )
        for other, (peer, before) in self._latest.items():
            for (name, kept), (_, now) in zip(before, peer.named_vectors_(), strict=True):
                if other != me.agent and not _same(kept, now):
                    raise ContractViolation(
                        f"{who} writes what is not its own: {name} of {self.agent(other)}, {difference(kept, now)}"
                    )
        vectors = [(name, vector.copy()) for name, vector in me.named_vectors_()]
        told = [(f"sends {sent.kind!r},", sent.vector) for sent in me.sent_]
        for what, vector in [*((f"sets {name} to", vector) for name, vector in vectors), *told]:
            if np.isnan(vector).any():
                place = int(np.flatnonzero(np.isnan(vector))[0])
                raise ContractViolation(f"{who} {what} what is not a number (NaN), coordinate {place}")
        super().stepped(phase, me)
        self.left.append(vectors)
        self._latest[me.agent] = me, vectors

    def everything(self) -> list[Any]:
        """All that steps have left and sent, to be compared."""
        left = [vector.tobytes() for vectors in self.left for _, vector in vectors]
        return left + [sent.vector.tobytes() for step in self.steps for sent in step.sent]


class _AmongOthers(Led):
    """A watch that compares one agent's steps with those noted, and has all others say what they said then."""

    def __init__(self, noted: OwnSteps, agent: int, change: Callable[[], None] | None) -> None:
        super().__init__(noted)
        self.left, self.alone, self.change, self.parted = noted.left, agent, change, False
        self.plain: set[int] = set()  # who has released something without noise, from which the rest may follow

    @override
    def assumed(self, name: str, value: Any) -> Any:
        return deepcopy(self.recording.constants.get(name, value))

    @override
    def stepped(self, phase: Phase, me: Peer) -> None:
        rank, step = len(self.steps), self.step(phase, me)
        noted = self.recording.steps[rank] if rank < len(self.recording.steps) else None
        self.parted |= noted is None or (noted.agent, noted.phase) != (step.agent, step.phase)
        if noted is None or self.parted:  # where others choose by their data whom they ask
            return
        who = f"{phase} of {self.agent(me.agent)}"
        if me.agent == self.alone:
            for (name, before), (_, now) in zip(self.left[rank], me.named_vectors_(), strict=True):
                if not _same(before, now):
                    raise ContractViolation(
                        f"{who} sets {name} from something outside its own data, state and inbox: "
                        f"{difference(before, now)}"
                    )
        if any(map(protects_nothing, step.releases)):
            self.plain.add(me.agent)
        _compare(who, noted, step, alone=me.agent == self.alone, plain=me.agent in self.plain)
        if me.agent != self.alone:
            me.give_out_(under_own(noted.sent, step.sent), silent=noted.silent)
        self.steps.append(step)
        if self.change is not None and len(self.steps) == AGENTS:
            self.change()


def _compare(who: str, noted: Step, step: Step, *, alone: bool, plain: bool) -> None:
    """Compare what is public, which has to be the same on all data, and of an agent alone all that it sends."""
    kinds = [[sent.kind for sent in one.sent] for one in (noted, step)]
    if alone and kinds[0] != kinds[1]:
        raise ContractViolation(f"{who} sends {kinds[0]} or {kinds[1]}, by something that is not its own")
    for before, now in zip(noted.sent, step.sent, strict=False):
        if _same(before.vector, now.vector):
            continue
        gap = difference(before.vector, now.vector)
        if alone:
            raise ContractViolation(f"{who} sends {now.kind!r}, something that is not its own: {gap}")
        if before.release.free and now.release.free and not (plain and now.release.reason == POST_PROCESSING):
            raise ContractViolation(
                f"{who} sends {now.kind!r} as public ({now.release.reason}), but it depends on the agent's data: {gap}"
            )


def _noted(protocol: type[Protocol], parameters: ProtocolParameters) -> OwnSteps:
    noted = OwnSteps()
    world = _world(protocol, parameters, noted)
    noted.private, noted.assumed_public = world.protocol.privacy is not None, world.protocol.assumed_public
    EventEngine().run(world)
    return noted


def _among_others(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    noted: OwnSteps,
    agent: int,
    *,
    prepared: bool = False,
    central: bool = False,
) -> None:
    """Lead a run in which the others' data change: before anything, once the protocol is prepared, or after starts."""

    def change() -> None:
        _change(world.setting.task, agent, protocol.shared_parts)

    watch = _AmongOthers(noted, agent, change if central else None)
    world = _world(protocol, parameters, watch, agent if prepared else None)
    if not central and not prepared:
        change()
    EventEngine().run(world)


def _world(
    protocol: type[Protocol], parameters: ProtocolParameters, watch: Watch, unchanged: int | None = None
) -> World:
    setting = small_setting(empty=False, network=NETWORK)
    if unchanged is not None:
        _change(setting.task, unchanged, protocol.shared_parts)
    return admitted_world(setting, protocol, parameters, watch=watch)


def _change(task: Task, unchanged: int, shared: Collection[str]) -> None:
    """Give all agents but one other data, in place, but for parts that neighbouring data sets have in common."""
    rng = np.random.default_rng(SEED + 1)
    for agent in range(AGENTS):
        shard = task.train.shard(agent)
        if agent != unchanged and "features" not in shared:
            shard.features[...] = rng.uniform(-1, 1, shard.features.shape)
        if agent != unchanged and "labels" not in shared:
            shard.labels[...] = np.where(rng.random(shard.labels.shape) < 0.5, 1.0, -1.0)


def _global_draws() -> bytes:
    return pickle.dumps(np.random.get_state())  # noqa: NPY002 - to see whether others draw from it


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return np.array_equal(one, other, equal_nan=True)
