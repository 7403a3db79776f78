"""A run on neighbouring data, led along the transcript of another run.

Every noisy value is replaced by the one that was noted, and whatever leaves an agent has to be what left it then. What
may differ is the exact value under each noise, by no more than its release was charged for. Where that holds, the
transcript is as likely on D' as the noise says, step by step: that is the proof of an epsilon, by adaptive composition.

An agent that was charged for a release which protects nothing (multiplier 0, such as a plain one) is exposed: its
epsilon is infinite, and there is nothing to show about its data, which neighbouring data sets should share. Where they
do not, it sends from there on what was noted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...protocols.base import Peer, Sent
from ...protocols.privacy.mechanisms import Release
from ..world.watchers import Phase
from .draws import DERIVED, Draw, Step, difference, protects_nothing
from .transcript import Recording
from .violation import ContractViolation

PASSING = ("agent", "time", "reason", "draws", "free", "noisy")
TERMS = tuple(field.name for field in fields(Release) if field.name not in PASSING)
"""What a release says in public; all of it has to be the same on neighbouring data."""


def _moved(before: float | None, now: float | None) -> str:
    return "nothing" if before is None or now is None else f"{now - before:.6g}"


def under_own(noted: tuple[Sent, ...], now: tuple[Sent, ...]) -> list[Sent]:
    """The recorded messages, under the releases of this run where its messages are of the same kinds.

    Steps have paid for those when they drew their noise; the other run's would be paid for once more.
    """
    if [one.kind for one in noted] != [one.kind for one in now]:
        return list(noted)
    return [replace(before, release=own.release) for before, own in zip(noted, now, strict=True)]


class Led(Recording):
    """A watch that leads a run along the noisy values of another one, on other data, and compares nothing.

    It is for the exact values that other data have under the same noisy ones.
    """

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording.names)
        self.recording = recording

    def noted(self, agent: int) -> Draw | None:
        """The other run's draw at the place of an agent's next one; None if it has drawn less often."""
        rank, noted = len(self.draws[agent]), self.recording.draws[agent]
        return noted[rank] if rank < len(noted) else None

    def solution(self, release: Release, solution: NDArray[np.float64]) -> NDArray[np.float64]:
        """The minimiser that was noted: what differs is the noise that implies it, and the Jacobian there."""
        noted = self.noted(release.agent)
        return solution if noted is None or noted.noisy.shape != solution.shape else noted.noisy

    def drew(self, draw: Draw) -> NDArray[np.float64]:
        """Keep the exact value, and go on with the other run's noisy one."""
        noted = self.noted(draw.release.agent)
        return super().drew(draw if noted is None else replace(draw, noisy=noted.noisy))

    def stepped(self, phase: Phase, me: Peer) -> None:
        """Compare nothing."""


class Forcing(Led):
    """A watch that leads a run on neighbouring data along a transcript, and finds what may not be.

    Nothing at all may change for agents whose data are not among the changed ones, by default all. Exposed agents were
    charged for something that protects nothing; constants that the protocol treats as public may be held as on the
    usual data; and so many records of each agent are added or removed, or 1 where replacing one is what is charged for.

    The first violation is raised at once, and kept for the case that somebody catches it; ``ratio`` is the largest
    realised change in relation to the sensitivity that was charged for.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        exposed: Collection[int] = (),
        changed: Iterable[int] | None = None,
        held: bool = False,
        records: int = 1,
    ) -> None:
        super().__init__(recording)
        self.exposed, self.held, self.records = exposed, held, records
        self.changed = None if changed is None else frozenset(changed)
        self.violation: ContractViolation | None = None
        self.ratio = 0.0
        self._open: set[int] = set()

    def assumed(self, name: str, value: Any) -> Any:
        """Return a constant that the protocol prepares from records: the recorded run's if constants are held fixed."""
        return super().assumed(name, deepcopy(self.recording.constants.get(name, value)) if self.held else value)

    def drew(self, draw: Draw) -> NDArray[np.float64]:
        """Compare a draw with the one noted, and give out that one's value."""
        agent, before = draw.release.agent, self.noted(draw.release.agent)
        where = f"{self.agent(agent)} at time {draw.release.time:.6g}, noise {len(self.draws[agent]) + 1},"
        if before is None:
            return self.fail(f"{where} draws noise that it does not draw on neighbouring data")
        self._same_terms(where, before.release, draw.release)
        if draw.noisy.shape != before.noisy.shape:
            self.fail(f"{where} is added to {draw.noisy.shape} numbers instead of {before.noisy.shape}")
        self._check_change(where, before, draw)
        return super().drew(draw)

    def _check_change(self, where: str, before: Draw, now: Draw) -> None:
        release = before.release
        if not self._may_change(release.agent):
            if before.exact.tobytes() != now.exact.tobytes():
                self.fail(
                    f"{where} is added to a value that depends on other agents' data beyond what these have released: "
                    f"{difference(before.exact.reshape(-1), now.exact.reshape(-1))}"
                )
            return
        if protects_nothing(release):
            return
        if before.too_large(now):
            largest = max(np.abs(before.exact).max(), np.abs(now.exact).max())
            self.fail(
                f"{where}: the value under its {release.mechanism} noise is up to {largest:.6g}, and rounding hides "
                f"a sensitivity of {release.verified_sensitivity:.6g} at a scale of {release.scale:.6g}; perturb what "
                "is released, without an offset"
            )
        if not before.misderived(now) <= DERIVED:
            self.fail(
                f"{where}: one change of its data moves the log Jacobian of its perturbed objective by "
                f"{_moved(before.log_jacobian, now.log_jacobian)}, and by {_moved(before.derived, now.derived)} if the "
                "implied noise is derived numerically"
            )
        change, allowed = before.change(now), self.records * before.allowed(now)
        if not change <= allowed:
            size = "not a number" if np.isnan(change) else f"{change:.6g}"
            one, most = ("one change", "") if self.records == 1 else ("one row that is replaced by another", "twice ")
            self.fail(
                f"{where}: {one} of its data moves the value under its {release.mechanism} noise by {size} in "
                f"{release.norm}, which is more than {most}the sensitivity {release.verified_sensitivity:.6g} that it "
                "is charged for"
            )
        if release.verified_sensitivity > 0:
            self.ratio = max(self.ratio, change / (self.records * release.verified_sensitivity))

    def stepped(self, phase: Phase, me: Peer) -> None:
        """Compare a step with the one noted, and let the same leave the agent."""
        rank, step = len(self.steps), self.step(phase, me)
        if rank >= len(self.recording.steps):
            self.fail(f"{self.where(step)} is made although the run on neighbouring data has ended")
        noted = self.recording.steps[rank]
        for name in ("agent", "phase", "now", "tick", "updates"):
            if getattr(noted, name) != getattr(step, name):
                self.fail(
                    f"{self.where(step)} is made in place of {self.where(noted)[:-1]}: the order of steps differs"
                )
        plain = any(protects_nothing(one) for one in (*noted.releases, *step.releases))
        if plain and step.agent in self.exposed and self._may_change(step.agent):
            self._open.add(step.agent)
        if step.agent in self._open:
            me.give_out_(under_own(noted.sent, step.sent), silent=noted.silent)
        else:
            self._compare(noted, step)
            self.check_noise(step)
        self.steps.append(step)

    def _may_change(self, agent: int) -> bool:
        return self.changed is None or agent in self.changed

    def _compare(self, noted: Step, step: Step) -> None:
        """Check that a step sends and discloses the same on both data sets."""
        where = self.where(step)
        if noted.silent != step.silent:
            self.fail(f"{where} falls silent on one of two neighbouring data sets only")
        if noted.drawn != step.drawn:
            self.fail(f"{where} has drawn noise {step.drawn} times, and {noted.drawn} times on neighbouring data")
        if len(noted.disclosed) != len(step.disclosed):
            self.fail(f"{where} discloses {len(step.disclosed)} releases, {len(noted.disclosed)} on neighbouring data")
        for before, now in zip(noted.disclosed, step.disclosed, strict=True):
            self._same_terms(where, before, now)
        if [sent.kind for sent in noted.sent] != [sent.kind for sent in step.sent]:
            kinds = [[sent.kind for sent in one.sent] or "nothing" for one in (step, noted)]
            self.fail(f"{where} sends {kinds[0]}, and {kinds[1]} on neighbouring data")
        for before, now in zip(noted.sent, step.sent, strict=True):
            if before.to != now.to:
                self.fail(
                    f"{where} sends {now.kind!r} to {now.to or 'all'}, and to {before.to or 'all'} on neighbouring data"
                )
            self._same_terms(f"{where} {now.kind!r}", before.release, now.release)
            self._same_vector(where, before, now)

    def _same_vector(self, where: str, before: Sent, now: Sent) -> None:
        if before.vector.tobytes() == now.vector.tobytes():
            return
        release, agent = now.release, now.release.agent
        what = f"as public ({release.reason})" if release.free else f"under {release.mechanism} noise"
        whose = "the agent's data" if self._may_change(agent) else "other agents' data"
        beyond = "" if release.free else " beyond what was released"
        self.fail(
            f"{where} sends {now.kind!r} {what}, but it depends on {whose}{beyond}: "
            f"{difference(before.vector, now.vector)}"
        )

    def _same_terms(self, where: str, before: Release, now: Release) -> None:
        for name in TERMS:
            one, other = getattr(before, name), getattr(now, name)
            if one != other and not (one != one and other != other):
                self.fail(f"{where}: the {name} of its release depends on the data, {other!r} in place of {one!r}")

    def finished(self) -> None:
        """Raise the violation that was found, or one if the run made fewer steps than the recorded run."""
        if self.violation is not None:
            raise self.violation
        if len(self.steps) < len(self.recording.steps):
            step = self.recording.steps[len(self.steps)]
            self.fail(f"{self.where(step)} is not made on neighbouring data: the run ended before it")

    def fail(self, sentence: str) -> Any:
        """Raise what may not be, and keep the first such thing."""
        violation = ContractViolation(sentence)
        self.violation = self.violation or violation
        raise violation
