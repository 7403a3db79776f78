"""Charges of planned steps for what they release, equal to the charges of steps that are made one by one."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import place
from ...agents.errors import StepFailure
from ...agents.tables import Shard
from ..privacy.ledger import UNLIMITED, Ledger, charge_of
from ..privacy.mechanisms import Release
from .declarations import NO_NOISE, UNPERTURBED, grown

PLAIN = 1
"""What a message reveals: data without noise."""


class NotPlanned(Exception):
    """Raised if a protocol's steps cannot be planned, but are made one by one; the message is the reason."""


class ScaleMismatch(StepFailure):
    """A protocol's release names another noise scale than its `StepNoise.scales`, from which planned steps draw."""


class Unreadable(Exception):
    """Raised if a release reads what a `StagedAgent` does not have; the message is its name."""


@final
@dataclass(frozen=True, slots=True)
class StagedAgent:
    """View of an agent that a release may read when a planned step is charged, which is after the step."""

    agent: int
    now: float
    """Time at which it is charged."""
    data: Shard
    neighbours: NDArray[np.int64]
    """(degree,) int64."""
    updates: int
    """The step's stage."""

    @property
    def round(self) -> int:
        """The round that this step ends, were it made in rounds."""
        return self.updates + 1

    def __getattr__(self, name: str) -> Any:
        raise Unreadable(name)


class NoiseColumns:
    """Noise and plain releases of planned steps, by agent; of one run, or of several side by side.

    Attributes
    ----------
    noisy : bool
        Whether steps draw noise.
    mechanism : str
        Whose noise that is.
    plain_bits, undrawn_bits : (n,) int64
        `PLAIN` for agents whose messages reveal their data without noise: always, or if their
        step has drawn none.
    scales : (n, K) float64
        Scale of the noise, by agent and stage (`hushnet.protocols.steps.declarations.StepNoise`); (n, 0) without noise.
    growth : (n,) float64 or None
        Its growth from stage to stage, if it never ends; `draws` are then the stages that were drawn, one by one.
    draws : (n, K) int64
        How often steps have drawn noise for what they then sent.
    degrees : (n,) int64
    """

    noisy: bool
    mechanism: str
    plain_bits: NDArray[np.int64]
    undrawn_bits: NDArray[np.int64]
    scales: NDArray[np.float64]
    growth: NDArray[np.float64] | None
    draws: NDArray[np.int64]
    degrees: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[NoiseColumns]) -> NoiseColumns:
        """Those of several runs with one mechanism and equally many stages, whose agents follow each other.

        What the runs have are views of the same numbers from then on.
        """
        whole = cls()
        whole.noisy, whole.mechanism = parts[0].noisy, parts[0].mechanism
        for name in ("plain_bits", "undrawn_bits", "scales", "draws", "degrees"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            setattr(whole, name, joined)
            ends = np.cumsum([len(part.degrees) for part in parts])
            for part, own in zip(parts, np.split(joined, ends[:-1]), strict=True):
                setattr(part, name, own)
        growth = [part.growth for part in parts if part.growth is not None]
        whole.growth = np.concatenate(growth) if growth else None
        return whole

    def scales_at(self, agents: NDArray[np.int64], updates: NDArray[np.int64]) -> NDArray[np.float64]:
        """(B,) noise scales of agents' next steps after so many.

        Raises `ValueError` if noise grows from step to step, and one of an agent's steps has drawn none.
        """
        if self.growth is None:
            return self.scales[agents, np.minimum(updates, self.scales.shape[1] - 1)]
        return grown(self.scales[agents, 0], self.growth[agents], updates)

    def count(self, agents: NDArray[np.int64], updates: NDArray[np.int64], drawn: NDArray[np.int64] | None) -> None:
        """Count the noise that steps have drawn for what somebody hears."""
        if drawn is None:
            return
        heard = drawn * (self.degrees[agents] > 0)
        if self.growth is not None and (self.draws[agents, 0] != updates)[heard > 0].any():
            raise ValueError("its noise grows from step to step, and one of its steps has drawn none")
        self.draws[agents, np.minimum(updates, self.scales.shape[1] - 1)] += heard

    def plain(self, agents: NDArray[np.int64], drawn: NDArray[np.int64] | None) -> NDArray[np.bool_]:
        """(B,) whether what steps say reveals data without noise, that have drawn noise so often."""
        revealing = self.plain_bits[agents] != 0
        if self.noisy:
            undrawn = self.undrawn_bits[agents] != 0
            revealing |= undrawn if drawn is None else undrawn & (drawn == 0)
        return revealing


@final
class StepCharges(NoiseColumns):
    """Charges of the planned steps of one protocol; a function gives the record of an agent.

    Noise is ``private`` if it protects data, so that only what is sent ends a run; (n,) steps are ``affordable`` by
    budgets.
    """

    def __init__(self, protocol: Any, peer: Callable[[int], Any], ledger: Ledger) -> None:
        self.protocol, self._peer, self._ledger = protocol, peer, ledger
        agents, privacy, noise = protocol.problem.task.agents, protocol.privacy, protocol.step_noise
        self.private = privacy is not None and not privacy.noiseless
        self.noisy = noise is not None and noise.mechanism is not None
        self.mechanism = noise.mechanism or "" if noise is not None else ""
        if self.noisy:
            _check_draws(self.mechanism)
        self.plain_bits, self.undrawn_bits = np.zeros((2, agents), dtype=np.int64)
        self.affordable = np.full(agents, UNLIMITED)
        self._seen: dict[int, tuple[Shard, NDArray[np.int64]]] = {}  # data and neighbours of agents that draw noise
        self._drawn_before: dict[int, Release] = {}
        self._reasons = [NO_NOISE] * agents
        self.scales, self.growth = np.zeros((agents, 0)), None
        if self.noisy and noise is not None:
            self.scales, self.growth = np.ascontiguousarray(noise.scales(), dtype=np.float64), noise.growth
            if self.growth is not None and (self.scales.shape[1] != 1 or protocol.privacy.budget is not None):
                raise NotPlanned("its noise grows without end, and stages or a budget limit it")
            if not (self.scales[protocol.problem.task.train.counts > 0] > 0.0).all():
                raise NotPlanned("some of its noise has the scale 0")
            self._try_release()
        self.draws = np.zeros(self.scales.shape, dtype=np.int64)
        self.degrees = protocol.problem.graph.degrees
        self._settled = self.draws.copy()
        self._afforded: dict[Any, int] = {}

    def _try_release(self) -> None:
        """Refuse a release that depends on more than a `StagedAgent` has."""
        for agent in np.flatnonzero(self.protocol.problem.task.train.counts > 0)[:1].tolist():
            try:
                self._staged(agent, 0, 0.0)
            except Unreadable as missing:
                line = traceback.extract_tb(missing.__traceback__)[-2]
                raise NotPlanned(
                    f"its release reads me.{missing} ({place(line.filename, line.lineno or 0)}); releases of "
                    "planned steps depend on agent, data, neighbours and updates"
                ) from None

    def _staged(self, agent: int, stage: int, now: float) -> Release:
        seen = self._seen.get(agent)
        if seen is None:
            me = self._peer(agent)
            seen = me.data, me.neighbours
        return self.protocol.release(StagedAgent(agent, now, *seen, stage))

    def started(self, agent: int) -> None:
        """Note the release of an agent that has started, and what it can afford; later releases differ by stage alone.

        Raises `ScaleMismatch` if its noise has another scale than `StepNoise.scales` says.
        """
        me = self._peer(agent)
        release = self.protocol.release(me)
        drawing = self.noisy and release.noisy
        if drawing:
            self._check_scale(agent, me.updates, release)
            self._seen[agent] = me.data, me.neighbours
        elif release.noisy:
            self._drawn_before[agent] = release
        self._reasons[agent] = release.reason
        self.plain_bits[agent] = 0 if release.free or drawing else PLAIN
        self.undrawn_bits[agent] = PLAIN if drawing else 0
        ledger = self._ledger
        if release.free or ledger.holds(release) or not ledger.limited:
            return
        stages = range(self.scales.shape[1]) if drawing else ()
        charges = [charge_of(self._at(agent, stage, me.now)) for stage in stages] or [charge_of(release)]
        every = 1 if self.protocol.step_noise is None else self.protocol.step_noise.every
        self.affordable[agent] = min(ledger.affordable(agent, charges, self._afforded) * every, UNLIMITED)

    def all_started(self, agents: NDArray[np.int64]) -> None:
        """`started` of several agents."""
        if not self.protocol.releases_rows_plainly or self._ledger.limited:
            for agent in agents.tolist():
                self.started(agent)
            return
        holds = self.protocol.problem.task.train.counts[agents] > 0
        self.plain_bits[agents] = np.where(holds, PLAIN, 0)

    def _at(self, agent: int, stage: int, now: float) -> Release:
        """The release of an agent's step at a stage, which is charged now; refuse another than was declared."""
        name = type(self.protocol).__name__
        try:
            release = self._staged(agent, stage, now)
        except Unreadable as missing:
            raise StepFailure(
                f"the release of {name} reads me.{missing} at stage {stage} of agent {agent}; releases of planned "
                "steps depend on agent, data, neighbours and updates; or use engine: event"
            ) from None
        self._check_scale(agent, stage, release)
        return release

    def _check_scale(self, agent: int, stage: int, release: Release) -> None:
        """Refuse a release of another scale than that of the noise which planned steps draw."""
        if self.growth is None:
            scale = float(self.scales[agent, min(stage, self.scales.shape[1] - 1)])
            same = release.scale == scale
        else:
            scale = float(self.scales[agent, 0] * self.growth[agent] ** stage)
            same = math.isclose(release.scale, scale, rel_tol=1e-9)
        if not same:
            raise ScaleMismatch(
                f"the noise of agent {agent} at stage {stage} has the scale {scale:.17g} by the scales() of "
                f"{type(self.protocol).__name__}'s noise, and its release says {release.scale:.17g}; planned steps "
                "draw the first and are charged the second, so they must agree"
            )

    def charge(self, ledger: Ledger, agent: int, times: int, now: float) -> None:
        """Charge a step; noise that was drawn at the start is charged once."""
        if self.undrawn_bits[agent]:
            ledger.add(Release.plain(agent, now, UNPERTURBED), times)
        elif agent in self._drawn_before:
            ledger.commit(self._drawn_before[agent])
        else:
            ledger.add(Release.plain(agent, now, self._reasons[agent]), times)

    def settle(self, ledger: Ledger, now: float) -> None:
        """Charge the noise that steps have drawn since the last time."""
        if not self.noisy:
            return
        due = self.draws - self._settled
        for agent, stage in np.argwhere(due).tolist():
            if self.growth is None:
                ledger.add(self._at(agent, stage, now), int(due[agent, stage]))
                continue
            for number in range(int(self._settled[agent, 0]), int(self.draws[agent, 0])):
                ledger.add(self._at(agent, number, now), 1)
        self._settled[:] = self.draws


def _check_draws(mechanism: str) -> None:
    """Refuse noise that is not drawn by kernels, or not as NumPy draws it."""
    from .kernels import FILLS, disagreement

    if mechanism not in FILLS:
        raise NotPlanned(f"{mechanism} noise is drawn by its own Python")
    if disagreement():
        raise NotPlanned(disagreement())
