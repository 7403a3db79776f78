"""Dada: personal models and a sparse collaboration graph, learned together (Zantedeschi, Bellet, Tommasi 2020).

Agents minimise over models in an l1 ball and weights w_ij = w_ji >= 0 of the edges over which they may meet

    J(Theta, w) = sum_i d_i c_i L_i(Theta_i) + mu_1 / 2 sum_{i<j} w_ij |Theta_i - Theta_j|^2
                  + mu_2 (lambda |w|^2 - sum_i log(d_i + delta)),    d_i = sum_j w_ij.

====================================================  =================================================================
equation                                              here
====================================================  =================================================================
(4), g_i = d_i c_i L_i' + mu_1 (d_i Theta_i           ``slope``, divided by d_i, which changes no step; an agent without
    - sum_j w_ij Theta_j)                             weights learns alone
algorithm 1, s = -beta sign(g_m) e_m at the largest   a vertex of the l1 ball for one coordinate m: boosting, where
    |g_m|; Theta_i <- (1 - gamma) Theta_i + gamma s   features are the predictions of weak classifiers
gamma = 2 K / (t + 2 K) of K agents                   2 / (2 + own steps), which is its value at one's expected step
algorithm 2, w_k <- max(0, w_k - h'(w)_k / L_k), with every `graph_every` steps, over the edges that were heard anew
    h'_kl = c_k L_k + c_l L_l + mu_1/2 |T_k - T_l|^2  since the last step, kappa of them
    + mu_2 (2 lambda w_kl - 1/(d_k+delta)             (the paper's: kappa random agents)
    - 1/(d_l+delta)) and
    L_k = mu_2 (2 lambda + (kappa + 1) / delta^2)
====================================================  =================================================================

``sent``: (Theta_i, c_i L_i, d_i), to the neighbours with w_ij > 0, and to `peers` random ones while the graph is
learned, so that who has lost touch may meet again. Both ends keep a weight of their own and descend along the same
derivative: they are equal where both are at the minimum, and differ on the way. The paper has one weight of both, and
two phases that take turns; here models and weights move in one. Its L_i is the logarithm of a sum of exponentials, ours
the task's mean loss. Weights begin in proportion to the graph's, with 1 for the largest d_i; the paper's begin with
those of local models.

Use it where agents' targets differ and nobody knows whose are alike. What breaks it: few neighbours that an agent might
meet, and losses so large, or mu_2 so small, that all weights end at zero and everybody learns alone.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from typing_extensions import override

from ...agents.blocks import State
from ...agents.parameters import NotNegative, Positive, Size
from ..base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from ..context import Context, check_length
from ..invariants import Declared, Instant, Invariant
from ..steps import Constants, choice, local_loss, loss_gradient, received
from .coordinate_descent import Confidence, assumed_of, confidences


class DadaParameters(ProtocolParameters):
    """Dada: learn personal models, and with whom to share them (Zantedeschi et al. 2020)."""

    kind: Literal["dada"]
    l1_radius: Positive = 10.0
    """Radius beta of the l1 ball that models are in."""
    mu: NotNegative = 0.1
    """Weight mu_1 of agreement between neighbours."""
    graph_every: Size | None = 1
    """Weights are updated at every so many of an agent's steps; null keeps the graph's own."""
    mu_graph: Positive = 1.0
    """Weight mu_2 of the graph's own terms: the larger, the larger the learned weights."""
    lambda_graph: Positive = 0.01
    """Penalty lambda on squared weights: the smaller, the sparser the learned graph."""
    delta: Positive = 1.0
    """What is added to d_i in the logarithm; the smaller, the less can an agent be left alone, and the slower."""
    peers: Size = 1
    """Random neighbours that a step sends to as well, while the graph is learned; all where an agent has fewer."""
    confidence: Confidence = "relative"
    """c_i: m_i / max m (``relative``), m_i (``count``), or one value per agent."""


class Dada(Protocol):
    """Learned models and weights, by clocks; see the module's docstring."""

    Parameters = DadaParameters
    parameters: DadaParameters
    learns = "convex"
    traits = Traits(changing=True)
    asks_what_is_new = True
    decides = True

    @classmethod
    @override
    def check_scenario(cls, parameters: DadaParameters, context: Context) -> None:
        check_length(parameters.confidence, context.task.agents, "confidence")

    def layout(self) -> Layout:
        """The model; an end's weight of each edge; model, loss and degree in a message."""
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, edge={"weight": 1}, messages={"sent": MessageKind(p + 2)})

    def start(self, me: Any) -> None:
        """Begin with zero models and the graph's weights, and send nothing."""
        if me.degree > 0:
            me.weight[...] = (me.weights / me.strongest).reshape(me.weight.shape)

    def constants(self) -> Constants:
        """Confidences c_i, and the largest degree of the graph."""
        trust = confidences(self.parameters.confidence, self.problem.task)
        return Constants(run={"strongest": self.problem.graph.strengths.max(initial=0.0)}, agent={"trust": trust})

    def step(self, me: Any) -> None:
        """Update the weights, go towards a vertex of the l1 ball, and send to whom it concerns."""
        given, heard, p = self.parameters, received(me), len(me.model)
        learns = given.graph_every is not None
        if learns and (me.updates + 1) % given.graph_every == 0:
            descend_weights(me, heard)
        weights, degree = np.ravel(me.weight), me.weight.sum()  # (degree, 1) where there is one feature
        slope = me.trust * loss_gradient(me, me.model)
        if degree > 0:
            slope = slope + given.mu * (me.model - weights @ heard[:, :p] / degree)
        if slope.any():
            m, gamma = int(np.argmax(np.abs(slope))), 2.0 / (2.0 + me.updates)
            me.model *= 1.0 - gamma
            me.model[m] -= gamma * given.l1_radius * np.sign(slope[m])
        vector = np.concatenate((me.model, [own_loss(me), degree]))
        chosen = weights > 0
        if learns and me.degree > 0:
            chosen[choice(me, me.degree, min(given.peers, me.degree))] = True
        for neighbour in me.neighbours[chosen & me.is_open]:
            me.send("sent", vector, to=int(neighbour))

    def invariants(self) -> Declared:
        """Models are in the ball, and weights are none below zero."""
        radius = self.parameters.l1_radius

        def beyond(instant: Instant) -> Any:
            return np.maximum(np.abs(instant.agent("model")).sum(axis=1) - radius, 0.0)

        def below(instant: Instant) -> Any:
            return np.maximum(-instant.edge("weight")[:, 0], 0.0)

        source = "Zantedeschi et al. 2020, section 3: the sets that J is minimised over"
        return (
            Invariant("l1 ball", beyond, lambda _: radius, source=source),
            Invariant("weights", below, lambda _: 1.0, source=source),
        )

    @override
    def conserved(self, state: State) -> dict[str, float]:
        """Largest difference between the two ends' weights of an edge."""
        weights = state.edge["weight"].rows[:, 0]
        return {"weights of two ends": float(np.abs(weights - weights[self.problem.graph.reverse]).max(initial=0.0))}

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Confidences, where they come from the data."""
        return assumed_of(self.parameters.confidence)


def own_loss(me: Any) -> float:
    """c_i L_i at the agent's model, without regulariser."""
    value = float(local_loss(me, me.model))
    return float(me.trust) * (value - float(me.regularisation) * float(me.model @ me.model) if me.rows else 0.0)


def descend_weights(me: Any, heard: Any) -> None:
    """One projected step of algorithm 2, over the edges that were heard anew."""
    new, p = me.is_new, len(me.model)
    apart = ((heard[:, :p] - me.model) ** 2).sum(axis=1)
    theirs = np.maximum(heard[:, p + 1], 0.0)  # only an attacker says less
    barrier = 1.0 / (me.weight.sum() + me.delta) + 1.0 / (theirs + me.delta)
    slope = own_loss(me) + heard[:, p] + 0.5 * me.mu * apart
    weight = np.ravel(me.weight)
    slope += me.mu_graph * (2.0 * me.lambda_graph * weight - barrier)
    smooth = me.mu_graph * (2.0 * me.lambda_graph + (new.sum() + 1.0) / me.delta**2)
    me.weight[new] = np.maximum(weight - slope / smooth, 0.0).reshape(me.weight.shape)[new]
