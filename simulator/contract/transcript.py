"""Transcript of a run: its observable steps, one by one, and the noisy values behind them.

`Recording` records a run on data D; `hushnet.simulator.contract.forcing.Forcing` forces one on neighbouring data along
the same transcript.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...protocols.base import Peer
from ...protocols.privacy.mechanisms import Implied, LogJacobian, Release, Solve, WatchedStream
from ..world.watchers import Phase
from .draws import SOLVED, Draw, Step, difference, distance, distribution_of, protects_nothing
from .violation import ContractViolation

MOST_BYTES = 2**30
"""A transcript that is larger is not kept."""
NEARBY = 2
"""Draws of an agent for whose noise the inverse is tried nearby."""
INVERSE = 1e-5
"""How far the minimiser for an implied noise may be from the one that implies it, in relation to the larger."""
STEP = 1e-5
"""Of numerical derivatives, in units of the larger of 1 and the coordinate."""


class TooLarge(Exception):
    """A transcript does not fit into the memory that it may take."""


class Recording:
    """A watch that takes note of a run and changes nothing; sentences call agents by names, or else by their indices.

    Its ``steps`` are in order, as are each agent's ``draws``; ``constants`` are what the protocol has prepared from
    records and treats as public, by name.
    """

    def __init__(self, names: Sequence[int | str] | None = None) -> None:
        self.names = names
        self.steps: list[Step] = []
        self.constants: dict[str, Any] = {}
        self.draws: dict[int, list[Draw]] = defaultdict(list)
        self._drawn_for: dict[Release, int] = defaultdict(int)
        self._drawn_with: dict[tuple[Any, ...], int] = defaultdict(int)
        self._sent_with: dict[tuple[Any, ...], set[Release]] = defaultdict(set)
        self._bytes = 0
        self._noisy_bytes: dict[int, set[bytes]] = defaultdict(set)
        self._streams: dict[bytes, tuple[str, int, int]] = {}

    def assumed(self, name: str, value: Any) -> Any:
        """Note a constant that the protocol treats as public."""
        self.constants[name] = deepcopy(value)
        return value

    def stream(self, stream: np.random.Generator, purpose: str, agent: int) -> np.random.Generator:
        """Watch a stream of random numbers; no two askers are given the same bits."""
        state = pickle.dumps(stream.bit_generator.state)
        # Before time 0 an agent may ask for its stream as often as it likes.
        asked = (purpose, agent, -1 if purpose.endswith("before time 0") else len(self.steps))
        before = self._streams.setdefault(state, asked)
        if before != asked:
            raise ContractViolation(
                f"the stream {purpose!r} of {self.agent(agent)} draws the same numbers as the stream {before[0]!r} of "
                f"{self.agent(before[1])}" + (" in another step" if before[:2] == asked[:2] else "")
            )
        return WatchedStream(stream, self)

    def noisy(self, release: Release, exact: NDArray[np.float64], noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Note the noise that was added to a value."""
        return self.drew(Draw(release, np.array(exact, dtype=np.float64), noisy.copy()))

    def solved(
        self,
        release: Release,
        solution: NDArray[np.float64],
        noise: NDArray[np.float64],
        implied: Implied,
        log_jacobian: LogJacobian,
        solve: Solve | None,
    ) -> NDArray[np.float64]:
        """Note the noise with which an objective was minimised, and check that the minimiser belongs to it."""
        gap = distance(release, implied(solution) - noise)
        if not gap <= SOLVED * release.scale:
            raise ContractViolation(
                f"{self.agent(release.agent)} at time {release.time:.6g}: the minimiser of its perturbed objective "
                f"belongs to other noise than was drawn, {gap:.3g} away at a scale of {release.scale:.3g}; "
                "solve it more exactly"
            )
        place = self.solution(release, solution)
        belongs = implied(place)
        if solve is not None and not (place is solution and len(self.draws[release.agent]) >= NEARBY):
            self._check_inverse(release, place if place is not solution else None, belongs, implied, solve)
        draw = Draw(release, belongs, place.copy(), log_jacobian(place), derived(implied, place), noise.copy())
        return self.drew(draw)

    def _check_inverse(
        self,
        release: Release,
        place: NDArray[np.float64] | None,
        noise: NDArray[np.float64],
        implied: Implied,
        solve: Solve,
    ) -> None:
        """Check that the implied noise has the minimiser that implies it: the recorded one, or one for noise nearby."""
        if place is None:
            rng = np.random.default_rng([len(self.steps), release.agent])
            place = solve(noise + 0.01 * release.scale * rng.normal(size=noise.shape))
            noise = implied(place)
        found = solve(noise)
        size = max(float(np.abs(found).max(initial=0.0)), float(np.abs(place).max(initial=0.0)))
        if not float(np.abs(found - place).max(initial=0.0)) <= INVERSE * size:
            raise ContractViolation(
                f"{self.agent(release.agent)} at time {release.time:.6g}: the noise implied by a minimiser of its "
                f"perturbed objective has another minimiser: {difference(place, found)}"
            )

    def solution(self, release: Release, solution: NDArray[np.float64]) -> NDArray[np.float64]:
        """The minimiser that a perturbed objective is to have: the one that it has, unless a run is led."""
        return solution

    def drew(self, draw: Draw) -> NDArray[np.float64]:
        """Keep a draw; what the protocol goes on with."""
        if not (protects_nothing(draw.release) or np.isfinite(draw.exact).all()):
            what = "not a number (NaN)" if np.isnan(draw.exact).any() else "infinite"
            raise ContractViolation(
                f"{self.agent(draw.release.agent)} at time {draw.release.time:.6g}: the value under its "
                f"{draw.release.mechanism} noise is {what}"
            )
        self.draws[draw.release.agent].append(draw)
        self._keep(draw.exact, draw.noisy)
        self._drawn_for[draw.release] += 1
        self._drawn_with[distribution_of(draw.release)] += 1
        return draw.noisy.copy()

    def stepped(self, phase: Phase, me: Peer) -> None:
        """Note a step with all that it sends, and check its noise."""
        step = self.step(phase, me)
        self.check_noise(step)
        self.steps.append(step)
        self._keep(*(sent.vector for sent in step.sent))

    def step(self, phase: Phase, me: Peer) -> Step:
        """A step as it leaves its agent."""
        sent, disclosed, drawn = tuple(me.sent_), tuple(me.disclosed_), len(self.draws[me.agent])
        return Step(phase, me.agent, me.tick, me.updates, me.now, sent, disclosed, me.silent_, drawn)

    def check_noise(self, step: Step) -> None:
        """Check that each message sent as noisy has noise drawn from a stream that this watch observes."""
        known = self._noisy_bytes[step.agent]
        for sent in step.sent:
            release = sent.release
            if protects_nothing(release) or not release.noisy:
                continue
            if release.draws > self._drawn_for[release]:
                raise ContractViolation(
                    f"{self.where(step)} sends {sent.kind!r} with noise from another generator than me.stream(...), "
                    "so nobody can tell what was drawn"
                )
            distribution = distribution_of(release)
            if release.draws or sent.vector.tobytes() not in known:
                self._sent_with[distribution].add(release)
            if len(self._sent_with[distribution]) > self._drawn_with[distribution]:
                raise ContractViolation(
                    f"{self.where(step)} sends {sent.kind!r} as released with {release.mechanism} noise of scale "
                    f"{release.scale:g}, for which none was drawn; use release.perturb(..., rng=me.stream('noise'))"
                )
            known.add(sent.vector.tobytes())

    def _keep(self, *arrays: NDArray[np.float64]) -> None:
        self._bytes += sum(array.nbytes for array in arrays)
        if self._bytes > MOST_BYTES:
            raise TooLarge(f"what is sent in the own world takes more than {MOST_BYTES / 2**30:g} GiB to compare")

    def agent(self, index: int) -> str:
        """Name an agent in messages."""
        return f"agent {index if self.names is None else self.names[index]!r}"

    def where(self, step: Step) -> str:
        """Name a step in messages, by agent, phase, time and index."""
        number = f" (step {step.updates + 1})" if step.phase in ("step", "request", "complete") else ""
        return f"{self.agent(step.agent)}, {step.phase} at time {step.now:.6g}{number},"


def derived(implied: Implied, solution: NDArray[np.float64]) -> float:
    """Log abs det, by central differences, of an implied noise's derivative at a minimiser; -inf if it is singular."""
    steps = STEP * np.maximum(1.0, np.abs(solution)) * np.eye(len(solution))
    columns = [(implied(solution + step) - implied(solution - step)) / (2 * step.max()) for step in steps]
    return float(np.linalg.slogdet(np.array(columns))[1])
