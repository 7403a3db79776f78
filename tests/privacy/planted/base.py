"""The honest protocol that planted mistakes vary: private gossip descent, each of its parts a small function.

Agents mix with their neighbours and follow one clipped mean gradient of their own rows with noise of the release. The
step is one text with four parts that a mistake replaces: ``draw`` (the rows of a step), ``value`` (what noise is added
to), ``noisy`` (the noise) and ``send`` (the message). `Waking` is the same as a method, for mistakes that reach for
streams and releases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from hushnet.agents.clipping import clip_rows
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.protocols.steps import Constants, average, draw_each, draw_rows, perturbed, scores_of, slopes

Array = Any
Sampling = Literal["full", "poisson", "fixed"]
Adjacency = Literal["replace-one", "add-or-remove-one"]

SHARE, BATCH, TYPICAL = 0.3, 2, 8.0
"""Rate of a Poisson sample, rows of one of fixed size, and what sums are divided by where counts are private."""


class DescentParameters(ProtocolParameters):
    """What a scenario may set."""

    privacy: Privacy
    sampling: Sampling = "full"
    adjacency: Adjacency = "replace-one"
    step_size: float = 0.1


def drawn(me):
    """Ranks of the rows of a step, drawn as declared."""
    if me.sampling == "full" or me.rows == 0:
        return np.arange(me.rows)
    return draw_each(me, SHARE) if me.sampling == "poisson" else draw_rows(me, BATCH)


def gradients(me, ranks):
    """(k, p) gradients of some rows at the model."""
    return slopes(me, scores_of(me, me.model, ranks), ranks)[:, None] * me.features[ranks]


def clipped_to(me, rows, bound):
    """Rows clipped in the norm of the mechanism."""
    return clip_rows(rows, bound, "l1" if me.l1 else "l2")


def mean_gradient(me, ranks):
    """Sum of clipped gradients, divided by the expected number of rows."""
    return clipped_to(me, gradients(me, ranks), me.clip).sum(axis=0) / me.parts


def once(me, vector):
    """The noise of the step's release."""
    return perturbed(me, vector)


def model(me):
    """What is sent: the model."""
    return me.model


def mixed(me):
    """The model, half way to the neighbours' mean."""
    return (me.model + average(me)) / 2 if me.degree > 0 else me.model


def step_of(
    draw: Callable[..., Any] = drawn,
    value: Callable[..., Any] = mean_gradient,
    noisy: Callable[..., Any] = once,
    send: Callable[..., Any] = model,
) -> Callable[..., Any]:
    """The text of a step with other parts."""

    def step(me):
        gradient = noisy(me, value(me, draw(me)))
        me.model = mixed(me) - me.step_size * gradient
        me.message = send(me)
        return me.updates + 1 >= me.limit

    return step


class Descent(Protocol):
    """Private gossip descent."""

    Parameters = DescentParameters
    parameters: DescentParameters
    blocks: tuple[str, ...] = ()
    """Further blocks of so many numbers as the model has."""

    def layout(self):
        p = self.problem.task.dimension
        names = ("model", *self.blocks)
        return Layout(agent=dict.fromkeys(names, p), messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me: Any) -> None:
        me.send("model", me.model, me.public("the start does not depend on data"))

    def constants(self):
        given, counts = self.parameters.privacy, self.problem.task.train.counts
        run = {"limit": given.updates, "clip": given.clip, "l1": given.norm == "l1", "agents": self.problem.task.agents}
        return Constants(run=run, agent={"parts": np.array([self.parts(count) for count in counts])})

    def parts(self, count: int) -> float:
        """What the sum of a step is divided by: the expected number of its rows, or one that is public."""
        if self.parameters.sampling == "fixed":
            return float(max(1, min(BATCH, count)))
        rows = TYPICAL if self.parameters.adjacency == "add-or-remove-one" else max(1, count)
        return rows * (SHARE if self.parameters.sampling == "poisson" else 1.0)

    def rate(self, count: int) -> float:
        """With which probability a row takes part in a step."""
        return {"full": 1.0, "poisson": SHARE, "fixed": min(1.0, BATCH / max(1, count))}[self.parameters.sampling]

    def sensitivity(self, count: int) -> float:
        """How far one row moves what noise is added to."""
        rows = 1 if self.parameters.adjacency == "add-or-remove-one" else 2
        return rows * self.parameters.privacy.clip / self.parts(count)

    def release(self, me: Any) -> Release:
        if not len(me.data) and self.parameters.adjacency == "replace-one":
            return Release.public(me.agent, me.now, "the agent has no data", recipients=len(me.neighbours))
        return Release(**self.terms(me))

    def terms(self, me: Any) -> dict[str, Any]:
        """What a release says."""
        privacy, count = self.parameters.privacy, len(me.data)
        sensitivity = self.sensitivity(count)
        return {
            "agent": me.agent,
            "time": me.now,
            "mechanism": privacy.mechanism,
            "norm": privacy.norm,
            "sensitivity": sensitivity,
            "sensitivity_source": "clip",
            "verified_sensitivity": sensitivity,
            "scale": privacy.multiplier * sensitivity,
            "claimed_epsilon": 1.0,
            "claimed_delta": 0.0 if privacy.noise.pure else 1e-6,
            "recipients": len(me.neighbours),
            "sampling": self.rate(count),
            "adjacency": self.parameters.adjacency,
            "dimension": self.problem.task.dimension,
        }

    step = staticmethod(step_of())


class Waking(Descent):
    """The same as a method."""

    decides = True
    asks_for_budget = True

    def step(self, me: Any) -> None:
        release = self.release(me)
        if not me.reserve(release):
            me.fall_silent()
            return
        gradient = self.noisy(me, release, self.exact(me))
        own = me.model
        heard = me.heard.mean(axis=0) if len(me.neighbours) else own
        own[:] = (own + heard) / 2 - self.parameters.step_size * gradient
        self.send(me, release)
        if me.updates + 1 >= self.parameters.privacy.updates:
            me.fall_silent()

    def exact(self, me: Any) -> Array:
        """The clipped mean gradient of all rows."""
        data, privacy = me.data, self.parameters.privacy
        scores = data.features @ me.model
        rows = self.problem.task.loss.slope(scores, data.labels)[:, None] * data.features
        return clip_rows(rows, privacy.clip, privacy.norm).sum(axis=0) / self.parts(len(data))

    def noisy(self, me: Any, release: Release, exact: Array) -> Array:
        """The noise of the step's release."""
        return release.perturb(exact, rng=me.stream("noise"))

    def send(self, me: Any, release: Release) -> None:
        """What is sent: the model."""
        me.send("model", me.model, release)


def variant(name: str, base: type[Descent] = Descent, *, parts: dict[str, Any] | None = None, **members: Any):
    """A protocol with some parts of its step, or some of its members, replaced."""
    own = {"step": staticmethod(step_of(**parts))} if parts else {}
    return type(name, (base,), {"__module__": __name__, **own, **members})
