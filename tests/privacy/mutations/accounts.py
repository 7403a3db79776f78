"""Mistakes in what is charged: how often, for what, to whom, and with which part of the rows."""

from __future__ import annotations

import dataclasses

import numpy as np
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.subgradient_noise import SubgradientNoise, drawn_gradient
from hushnet.protocols.algorithms.warm_start import WarmStart
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy import ledger as ledgers
from hushnet.protocols.privacy.ledger import Ledger
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.protocols.steps import draw_rows, loss_gradient
from hushnet.protocols.steps.peer import Peer, PeerSource

from .declarations import mistake
from .seams import exact_gradient, memory, stepping, streams


def _commit(plant, refuses):
    """Leave out the charge of releases for which ``refuses(ledger, release)`` holds."""

    def change(commit):
        def other(self, release, vector=None):
            if release.mechanism != "public" and refuses(self, release):
                self.cancel(release)
                return False
            return commit(self, release, vector)

        return other

    plant.around(Ledger, "commit", change)


def _copy(release, **fields):
    """The same release with other fields, as another event."""
    return dataclasses.replace(release, **fields)


# Count


@mistake("count", case="descent", guard="contract")
def last_release_not_counted(plant):
    """An agent's last planned release is not charged."""
    _commit(plant, lambda ledger, release: ledger.releases(release.agent) >= 3)


@mistake("count", case="descent-gaussian", guard="contract")
def first_release_not_counted(plant):
    """An agent's first release is not charged."""

    def refuses(ledger, release):
        made = memory(ledger)
        made[release.agent] = made.get(release.agent, 0) + 1
        return made[release.agent] == 1

    _commit(plant, refuses)


@mistake("count", case="averaging-full", guard="contract")
def every_other_release_counted(plant):
    """Only every other release of an agent is charged."""

    def refuses(ledger, release):
        made = memory(ledger)
        made[release.agent] = made.get(release.agent, 0) + 1
        return made[release.agent] % 2 == 0

    _commit(plant, refuses)


@mistake("count", case="descent-gaussian", guard="tests")
def draws_not_counted(plant):
    """The ledger charges a release once, however often noise was drawn for it."""

    def change(commit):
        def other(self, release, vector=None):
            drawn = release.draws
            object.__setattr__(release, "draws", min(drawn, 1))
            try:
                return commit(self, release, vector)
            finally:
                object.__setattr__(release, "draws", drawn)

        return other

    plant.around(Ledger, "commit", change)
    _drawn_twice(plant)


def _drawn_twice(plant):
    """Coordinate descent releases two draws under one release: the mean of both, which is less noisy."""

    def change(perturb):
        def other(self, vector, **how):
            first = perturb(self, vector, **how)
            return first if self.scale == 0 else (first + perturb(self, vector, **how)) / 2

        return other

    plant.around(Release, "perturb", change)


@mistake("count", case="descent", guard="contract")
def one_release_for_all_updates(plant):
    """An agent's first release serves all its updates, whose noise is drawn beside it and never counted."""

    def change(release):
        def other(self, me):
            kept = memory(self).setdefault(me.agent, release(self, me))
            object.__setattr__(kept, "draws", 0)
            return kept

        return other

    plant.around(GradientNoise, "release", change)


@mistake("count", case="averaging-full", guard="contract")
def counted_by_time_units(plant):
    """Releases of all agents within one time unit count once, for the first of them."""

    def refuses(ledger, release):
        first = memory(ledger).setdefault(int(release.time), release.agent)
        return first != release.agent

    _commit(plant, refuses)


@mistake("count", case="descent-gaussian", guard="tests")
def one_release_more_than_planned(plant):
    """Agents make T + 1 releases, each with the noise of T."""

    def change(prepare):
        def other(self):
            prepare(self)
            self.limit = None if self.limit is None else self.limit + 1

        return other

    plant.around(CoordinateDescent, "prepare", change)
    plant.around(Ledger, "reserve", lambda _: lambda self, release: True)


@mistake("count", case="descent", guard="contract")
def counts_forgotten(plant):
    """What an agent was charged is read as two releases at most."""

    def change(histogram):
        return lambda self, agent: type(found := histogram(self, agent))({c: min(k, 2) for c, k in found.items()})

    plant.around(Ledger, "_histogram", change)


@mistake("count", case="sharing", guard="contract")
def parties_counted_together(plant):
    """Only the first party of a star is charged."""
    _commit(plant, lambda ledger, release: release.unit == "party" and release.agent != 1)


# Charge


@mistake("charge", case="descent", guard="contract")
def charged_to_the_neighbour(plant):
    """A release is charged to the next agent."""

    def change(commit):
        def other(self, release, vector=None):
            if release.mechanism == "public":
                return commit(self, release, vector)
            return commit(self, _copy(release, agent=(release.agent + 1) % self.agents), vector)

        return other

    plant.around(Ledger, "commit", change)


@mistake("charge", case="averaging-full", guard="contract")
def charged_to_agent_0(plant):
    """All releases are charged to agent 0."""

    def change(commit):
        def other(self, release, vector=None):
            return commit(self, release if release.mechanism == "public" else _copy(release, agent=0), vector)

        return other

    plant.around(Ledger, "commit", change)


@mistake("charge", case="descent-warm", guard="contract")
def warm_start_free(plant):
    """Coordinate descent takes a private warm start without charging it."""

    def change(share):
        def other(self, me):
            vars(me).update(reserve=lambda release: True, disclose=lambda release: None)
            try:
                model, _ = share(self, me)
            finally:
                del vars(me)["reserve"], vars(me)["disclose"]
            return model, me.public("it is only a start")

        return other

    plant.around(WarmStart, "share", change)


@mistake("charge", case="propagation", guard="contract")
def solitary_models_free(plant):
    """Model propagation sends noisy solitary models as public."""

    def change(reserved):
        def other(self, agent, me):
            release = reserved(self, agent, me)
            self.releases[agent] = Release.public(agent, me.now, "it has noise", recipients=release.recipients)
            return self.releases[agent]

        return other

    plant.around(ModelPropagation, "_reserved", change)


@mistake("charge", case="rows", guard="contract")
def disclosed_rows_free(plant):
    """What is disclosed is not charged."""
    plant.around(Peer, "disclose", lambda _: lambda self, release: None)


@mistake("charge", case="descent-claimed", guard="contract")
def multiplier_by_the_claim(plant):
    """The ledger divides noise by the claimed sensitivity instead of the proved one."""

    def change(charge_of):
        return lambda release: charge_of(release)._replace(multiplier=release.claimed_multiplier)

    plant.everywhere(ledgers.charge_of, change)


@mistake("charge", case="descent-claimed", guard="contract")
def multiplier_of_a_release_by_the_claim(plant):
    """A release's own multiplier divides by the claimed sensitivity instead of the proved one."""
    plant.around(Release, "multiplier", lambda _: lambda self: self.claimed_multiplier)


@mistake("charge", case="descent", guard="contract")
def noisy_updates_as_public(plant):
    """Coordinate descent draws its noise and sends the model as public, as noise is harmless."""

    def change(sent_under):
        def other(self):
            release = sent_under(self)
            return release if release.scale == 0 else self.public("it has noise")

        return other

    plant.around(Peer, "sent_under_", change)


@mistake("charge", case="consensus", guard="contract")
def raw_models_as_public_from_the_second_step(plant):
    """Consensus ADMM sends nothing but zeros at first, and later its models, all of it as public."""

    def change(step):
        def other(self, me):
            step(self, me)
            told, me.sent_[:] = list(me.sent_), []
            for one in told:
                exact = one.vector if me.updates else np.zeros_like(one.vector)
                me.send(one.kind, exact, me.public("known by now"))

        return other

    stepping(plant, ConsensusAdmm, change)


@mistake("charge", case="descent", guard="contract")
def raw_gradient_as_public_late_and_once(plant):
    """Agent 4 sends its exact gradient as public in its third update, and nothing else unprotected."""

    def change(step):
        def other(self, me):
            if me.agent != 4 or me.updates != 2:
                return step(self, me)
            gradient = exact_gradient(self, me)
            return me.send("model", gradient, me.public("one message is none"))

        return other

    stepping(plant, CoordinateDescent, change)


@mistake("charge", case="averaging-full", guard="contract")
def charged_for_twice_the_noise(plant):
    """The ledger takes the noise for twice as large as it is."""

    def change(charge_of):
        return lambda release: charge_of(release)._replace(multiplier=2 * release.multiplier)

    plant.everywhere(ledgers.charge_of, change)


@mistake("charge", case="descent-gaussian", guard="contract")
def cancelled_after_sending(plant):
    """A release is given back as soon as it was sent, as if it had been reserved only."""

    def change(commit):
        def other(self, release, vector=None):
            before = [dict(counts) for counts in self._counts]
            totals, charged = list(self._totals), commit(self, release, vector)
            if charged and release.agent % 2:
                self._counts, self._totals = before, totals
            return charged

        return other

    plant.around(Ledger, "commit", change)


@mistake("charge", case="sharing-stale", guard="contract")
def scores_soon_after_others_free(plant):
    """Scores that follow the last ones within about 4 time units are free, as if they were repeats."""

    def refuses(ledger, release):
        last = memory(ledger)
        known, last[release.agent] = last.get(release.agent), round(release.time / 4)
        return known == last[release.agent]

    _commit(plant, refuses)


@mistake("charge", case="propagation-central", guard="contract")
def closed_form_charged_to_the_first_agent(plant):
    """The closed form charges the agent that computes it and nobody else whose model is part of it."""

    def change(disclose):
        return lambda self, release: disclose(self, release) if release.agent == self.agent else None

    plant.around(Peer, "disclose", change)


# Sampling


def _release(plant, change):
    plant.around(SubgradientNoise, "release", change)


@mistake("sampling", case="averaging", guard="audit")
def share_understated(plant):
    """The probability that a row takes part is charged as half of what it is."""
    plant.around(SubgradientNoise, "share", lambda share: lambda self, count: share(self, count) / 2)


@mistake("sampling", case="averaging-single", guard="audit")
def share_of_all_agents_rows(plant):
    """The probability that a row takes part is charged as if rows were drawn from all agents'."""

    def change(share):
        return lambda self, count: share(self, count) * count / max(1, int(self.task.train.counts.sum()))

    plant.around(SubgradientNoise, "share", change)


@mistake("sampling", case="averaging", guard="audit")
def one_row_more_in_a_batch(plant):
    """A batch has one row more than is charged for."""

    def change(draw):
        def other(own, count):
            return draw(own, count + 1)

        return other

    plant.everywhere(draw_rows, change)


@mistake("sampling", case="averaging", guard="audit")
def same_rows_in_every_round(plant):
    """The sampling stream has no tick in its key: an agent's rows are the same in every round."""
    streams(plant, lambda seed, what, ids: (seed, what, (0, *ids[1:]) if what == "sampling" else ids))


@mistake("sampling", case="averaging", guard="audit")
def rows_drawn_alike_by_all_agents(plant):
    """The sampling stream has no agent in its key."""
    streams(plant, lambda seed, what, ids: (seed, what, (ids[0], 0, *ids[2:]) if what == "sampling" else ids))


def _rows_drawn(plant, choose):
    """Replace which rows a step draws: ``choose(batch, me, rng)`` gives their ranks, out of all."""

    def drawn(self, *_):
        me = self._peer()
        ranks = choose(self.tables.protocol.parameters.batch, me, self.stream("sampling"))
        return ranks, np.array([0, len(ranks)])

    for name in ("choose", "choose_each"):
        plant.around(PeerSource, name, lambda _: drawn)


@mistake("sampling", case="averaging", guard="audit")
def first_rows_always(plant):
    """A batch is always made of an agent's first rows."""
    _rows_drawn(plant, lambda batch, me, rng: np.arange(min(batch, len(me.data))))


@mistake("sampling", case="averaging", guard="contract")
def rows_drawn_with_replacement(plant):
    """Rows are drawn with replacement, so that one may count twice."""
    _rows_drawn(plant, lambda batch, me, rng: rng.integers(len(me.data), size=min(batch, len(me.data))))


@mistake("sampling", case="averaging", guard="audit")
def rows_drawn_by_their_labels(plant):
    """Rows with positive labels are drawn before others."""

    def choose(batch, me, rng):
        order = rng.permutation(len(me.data))
        return order[np.argsort(-me.data.labels[order], kind="stable")][:batch]

    _rows_drawn(plant, choose)


@mistake("sampling", case="averaging-poisson", guard="audit")
def poisson_rate_doubled(plant):
    """Poisson sampling takes every row with twice the charged probability."""
    _rows_drawn(
        plant,
        lambda batch, me, rng: np.flatnonzero(rng.random(len(me.data)) < 2 * min(1.0, batch / len(me.data))),
    )


@mistake("sampling", case="averaging-poisson", guard="contract")
def mean_over_those_drawn(plant):
    """Poisson batches are averaged over the rows drawn, which may be fewer than the sensitivity takes."""
    plant.everywhere(drawn_gradient, lambda _: loss_gradient)


@mistake("sampling", case="push-sum", guard="audit")
def share_squared(plant):
    """The charge takes the square of the sampling probability."""

    def change(charge_of):
        return lambda release: charge_of(release)._replace(sampling=release.sampling**2)

    plant.everywhere(ledgers.charge_of, change)
