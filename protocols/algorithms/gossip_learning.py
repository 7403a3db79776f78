"""Gossip learning with age-weighted merging (Ormandi, Hegedus, Jelasity 2013; Hegedus, Danner, Jelasity 2021).

=============================================  ========================================================================
line                                           here
=============================================  ========================================================================
every Delta: send (x_i, t_i) to a random peer  ``message``, at the end of a step, over the edges that are open; on a
                                               complete graph with `topology.changes: {kind: sample, peers: 1}`
merge: x = (t_i x_i + t_j x_j) / (t_i + t_j),  at the beginning of a step, with all (x_j, t_j) that are new since the
    t = max(t_i, t_j)                          last one: x = sum of t x / sum of t, t the largest
update: x -= eta grad f_i(x), t += 1           ``model``, ``aged``
=============================================  ========================================================================

A model that has seen many updates counts for more than one that has seen few, so fast agents pull slow ones along. The
papers merge and update at every arrival; here what has arrived waits for the agent's own wake-up, as in every step,
and of several messages of one neighbour only the newest counts. An age counts updates, as Ormandi et al. say; where
agents have batches of several sizes, Hegedus et al. count rows. The papers' step size falls with the age; here it
is constant.

Use it where agents come and go, and no round can be kept. What breaks it: labels that are skewed between agents, since
the oldest models count most, whatever they were learned from.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from ..base import Layout, MessageKind, Traits
from ..invariants import Declared, last_sent_is_kept
from ..steps import batched, received, segment_sum
from .gradient_rounds import Array, GradientProtocol, GradientRoundsParameters, gradient


class GossipLearningParameters(GradientRoundsParameters):
    """Gossip learning: merge with received models by their ages, and go along the own gradient."""

    kind: Literal["gossip_learning"]


class GossipLearning(GradientProtocol):
    """Gossip learning; see the module's docstring."""

    Parameters = GossipLearningParameters
    parameters: GossipLearningParameters
    from_first: ClassVar[tuple[str, ...]] = ("model", "aged")
    traits = Traits(directed=True, changing=True)
    asks_what_is_new = True

    def layout(self) -> Layout:
        """The model, and with its age as it was sent; an agent that was never heard has age 0."""
        p = self.problem.task.dimension
        return Layout(agent={"model": p, "aged": p + 1}, messages={"aged": MessageKind(p + 1)})

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Merge with what is new, update, and send."""
        heard, own, age = received(me), me.aged[:, :-1], me.aged[:, -1:]
        ages = me.is_new * heard[:, -1:]
        total = age + segment_sum(me, ages)
        merged = (age * own + segment_sum(me, ages * heard[:, :-1])) / np.where(total > 0, total, 1.0)
        merged = np.where(total > 0, merged, own)
        me.model = merged - me.step_size * gradient(me, merged)
        me.aged = me.message = np.concatenate((me.model, np.maximum(age, largest(me, ages)) + 1.0), axis=1)

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (last_sent_is_kept("aged", "aged", "Ormandi et al. 2013, algorithm 1: what is merged is what was sent"),)


def largest(me: Any, values: Array) -> Array:
    """(B, 1) largest of (R, 1) values >= 0 over each agent's edges; 0 without neighbours."""
    degrees = me.degree[:, 0].astype(np.int64)
    begins = np.cumsum(degrees) - degrees
    return np.where(me.degree > 0, np.maximum.reduceat(np.append(values, 0.0), begins)[:, None], 0.0)
