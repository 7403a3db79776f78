"""Mistakes about which data sets are neighbours: counts that leak, and releases of two kinds of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hushnet.protocols.steps import perturbed

from .base import Descent, Waking, clipped_to, gradients, mean_gradient, mixed, variant
from .harness import NOISES, Case


def by_count(me):
    return me.model + 1e-3 * me.rows


def by_inverse_count(me):
    return me.model + 1e-3 * me.regularisation


def shrunk(me):
    """The model, shrunk towards 0 by the agent's own 1/m."""
    return me.model / (1 + me.regularisation)


def regularised(me, ranks):
    """The gradient of the regularised objective, whose weight is 1/m."""
    return mean_gradient(me, ranks) + 2 * me.regularisation * (me.model + 1)


def parity(me):
    return me.model + (me.rows % 2) * 1e-3


def divided_by_rows(me, ranks):
    return clipped_to(me, gradients(me, ranks), me.clip).sum(axis=0) / max(1, me.rows)


def of_at_least_two(me, ranks):
    """Nothing is added up where rows are few."""
    return mean_gradient(me, ranks) if me.rows > 4 else np.zeros(len(me.model))


def at_most_four(me):
    """The first four rows: without the first, a fifth one enters."""
    return np.arange(min(4, me.rows))


def shorter_steps(me):
    me.model -= me.step_size / max(1, me.rows) * me.model
    return me.model


def until_rows_are_over(me):
    """An agent makes as many steps as it has rows."""
    me.model = mixed(me) - me.step_size * perturbed(me, mean_gradient(me, np.arange(me.rows)))
    me.message = me.model
    return me.updates + 1 >= min(me.rows, me.limit)


def scaled_by_count(self, me):
    terms = Descent.terms(self, me)
    return {**terms, "scale": terms["scale"] * len(me.data) / 8}


def charged_by_count(self, me):
    terms = Descent.terms(self, me)
    bound = self.parameters.privacy.clip / max(1, len(me.data))
    return {**terms, "sensitivity": bound, "verified_sensitivity": bound}


def rate_by_count(self, count):
    return min(1.0, 2 / max(1, count))


def weighted_by_counts(self):
    """Weights of agents by their share of all rows, as constants."""
    found, counts = Descent.constants(self), self.problem.task.train.counts
    return type(found)(run=found.run, agent={**found.agent, "share": counts / counts.sum()})


def weighted_by_regularisation(self):
    """The same from what a task says of every agent in public, 1/m."""
    found, inverse = Descent.constants(self), self.problem.task.regularisation
    return type(found)(run=found.run, agent={**found.agent, "share": 1 / np.maximum(inverse, 1e-9)})


def by_share(me):
    return me.model + 1e-3 * me.share


def mixed_by_share(me):
    """A model that own data weigh on by their share."""
    me.model = me.model * (1 - 1e-3 * me.share)
    return me.model


def two_adjacencies(which: Callable[..., bool]) -> Callable[..., Any]:
    """Some releases say replace-one, and are charged what adding one row costs."""

    def terms(self, me):
        found = Descent.terms(self, me)
        return {**found, "adjacency": "replace-one" if which(me) else "add-or-remove-one"}

    return terms


def every_other_step(me):
    return me.updates % 2 == 1


def but_the_first(me):
    return me.updates > 0


def but_agent_0(me):
    return me.agent != 0


def but_the_last_step(me):
    return me.updates < 5


def two_in_a_step(self, me, release, exact):
    """A release of nothing that says add-or-remove-one, beside one that says replace-one for half of what it costs."""
    beside = replace(release, adjacency="add-or-remove-one")
    self.beside[me.agent] = beside
    nothing = beside.perturb(np.zeros(len(exact)), rng=me.stream("noise"))
    return release.perturb(exact, rng=me.stream("noise")) + 0 * nothing


def discloses_both(self, me, release):
    me.disclose(self.beside[me.agent])
    me.send("model", me.model, release)


def with_beside(self):
    self.beside: dict[int, Any] = {}


def replaced_for_half(self, me):
    return {**Descent.terms(self, me), "adjacency": "replace-one"}


PRIVATE_COUNTS = ("add-or-remove-one",)


def of(name: str, what: str, *, parts=None, base=Descent, samplings=("full", "poisson"), mechanisms=NOISES, **members):
    protocol = variant(name.title().replace("-", ""), base, parts=parts, **members)
    return Case(name, "adjacency", protocol, what, mechanisms, samplings, PRIVATE_COUNTS)


ADJACENCY = [
    of("count-sent", "sends its number of rows along", parts={"send": by_count}),
    of("inverse-count-sent", "sends 1/m along", parts={"send": by_inverse_count}),
    of("shrunk", "shrinks its model by 1/m", parts={"send": shrunk}),
    of("regularised", "adds a regulariser of weight 1/m to its gradient", parts={"value": regularised}),
    of("parity", "shows whether its rows are even", parts={"send": parity}),
    of("divided-by-rows", "divides by its number of rows", parts={"value": divided_by_rows}),
    of("few-rows", "says nothing of few rows", parts={"value": of_at_least_two}),
    of("first-four", "looks at its first four rows", parts={"draw": at_most_four}, samplings=("full",)),
    of("shorter-steps", "steps of 1/m", parts={"send": shorter_steps}),
    of("steps-by-rows", "as many steps as rows", step=staticmethod(until_rows_are_over), samplings=("full",)),
    of("scale-by-count", "noise by its number of rows", terms=scaled_by_count),
    of("charge-by-count", "a sensitivity by its number of rows", terms=charged_by_count),
    of("rate-by-count", "a rate by its number of rows", rate=rate_by_count, samplings=("poisson",)),
    of("share-of-rows", "shares of all rows as constants", parts={"send": by_share}, constants=weighted_by_counts),
    of("share-by-lambda", "likewise from 1/m", parts={"send": by_share}, constants=weighted_by_regularisation),
    of("kept-share", "likewise in its state", parts={"send": mixed_by_share}, constants=weighted_by_regularisation),
    of("alternating", "replace-one for half in every other step", terms=two_adjacencies(every_other_step)),
    of("after-the-first", "replace-one for half after the first step", terms=two_adjacencies(but_the_first)),
    of("before-the-last", "replace-one for half until the last step", terms=two_adjacencies(but_the_last_step)),
    of("one-agent-apart", "replace-one for half but for agent 0", terms=two_adjacencies(but_agent_0)),
    of(
        "two-in-a-step",
        "replace-one for half, and another release beside",
        base=Waking,
        terms=replaced_for_half,
        noisy=two_in_a_step,
        send=discloses_both,
        prepare=with_beside,
        samplings=("full",),
    ),
    of("all-for-half", "replace-one for half in all steps", terms=replaced_for_half),
]
