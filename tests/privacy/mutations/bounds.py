"""Mistakes in what the noise relies on: clipping, sensitivities, and the order of things."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np
from hushnet.agents.clipping import clip_rows
from hushnet.agents.losses import local_gradient
from hushnet.agents.tables import Shard
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.feature_noise import ClippedScores
from hushnet.protocols.algorithms.feature_sharing import noisy_scores
from hushnet.protocols.algorithms.local_dp import LocalDP
from hushnet.protocols.algorithms.output_perturbation import OutputNoise
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.subgradient_noise import SubgradientNoise
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy.composition import remaining_delta
from hushnet.protocols.privacy.ledger import Ledger
from hushnet.protocols.privacy.mechanisms import GAMMA, GAUSSIAN, LAPLACE, Release
from hushnet.protocols.privacy.mechanisms.privacy_loss import amplified
from hushnet.protocols.steps import clipped, perturbed

from .declarations import mistake
from .seams import clipping, exact_gradient, memory, replace_one, stepping

# Clipping


@mistake("clipping", case="descent", guard="contract")
def gradients_not_clipped(plant):
    """Coordinate descent clips nothing and charges as if it did."""
    clipping(plant, lambda _: lambda model, shard, loss, ridge, norm, bound: local_gradient(model, shard, loss, ridge))


@mistake("clipping", case="descent-gaussian", guard="contract")
def mean_clipped_instead_of_examples(plant):
    """The mean gradient is clipped to the bound, and not every example's."""

    def mean_clipped(model, shard, loss, ridge, norm, bound):
        if len(shard) == 0:
            return np.zeros_like(model)
        mean = local_gradient(model, shard, loss, 0.0)
        length = np.linalg.norm(mean, ord=1 if norm == "l1" else 2)
        return mean * (bound / max(length, bound)) + 2 * ridge * model

    clipping(plant, lambda _: mean_clipped)


@mistake("clipping", case="descent", guard="contract")
def clipped_in_the_wrong_norm(plant):
    """Examples are clipped in l2 where the noise is Laplace."""

    def change(clip):
        return lambda model, shard, loss, ridge, norm, bound: clip(model, shard, loss, ridge, "l2", bound)

    clipping(plant, change)


@mistake("clipping", case="descent-gaussian", guard="contract")
def last_example_not_clipped(plant):
    """All examples but the last one are clipped."""

    def change(clip):
        def other(model, shard, loss, ridge, norm, bound):
            if len(shard) < 2:
                return local_gradient(model, shard, loss, ridge)
            first, last = (Shard(shard.features[part], shard.labels[part]) for part in (slice(-1), slice(-1, None)))
            clipped, exact = clip(model, first, loss, 0.0, norm, bound), local_gradient(model, last, loss, 0.0)
            return ((len(shard) - 1) * clipped + exact) / len(shard) + 2 * ridge * model

        return other

    clipping(plant, change)


@mistake("clipping", case="averaging-full", guard="contract")
def clipped_to_twice_the_bound(plant):
    """Examples are clipped to twice the bound that the sensitivity takes."""

    def change(clip):
        return lambda model, shard, loss, ridge, norm, bound: clip(model, shard, loss, ridge, norm, 2 * bound)

    clipping(plant, change)


@mistake("clipping", case="descent", guard="contract")
def slopes_clipped_instead_of_gradients(plant):
    """The slope of the loss is clipped, without the row that it is multiplied by."""

    def slopes_clipped(model, shard, loss, ridge, norm, bound):
        if len(shard) == 0:
            return np.zeros_like(model)
        slopes = np.clip(loss.slope(shard.features @ model, shard.labels), -bound, bound)
        return slopes @ shard.features / len(shard) + 2 * ridge * model

    clipping(plant, lambda _: slopes_clipped)


@mistake("clipping", case="propagation", guard="contract")
def rows_of_solitary_models_not_clipped(plant):
    """Rows of the minimiser that output perturbation releases keep their norms."""
    plant.around(OutputNoise, "clipped", lambda _: lambda self, shard: shard)


@mistake("clipping", case="descent-claimed", guard="contract")
def rows_not_clipped_to_the_radius(plant):
    """Rows keep their norms where the proved sensitivity takes the radius."""
    plant.around(CoordinateDescent, "local_data", lambda _: lambda self, agent, shard: shard)


@mistake("clipping", case="rows", guard="contract")
def released_rows_clipped_in_the_wrong_norm(plant):
    """Rows that get Laplace noise are clipped in l2."""
    plant.everywhere(clip_rows, lambda clip: lambda features, radius, norm="l2": clip(features, radius))


@mistake("clipping", case="sharing-stale", guard="contract")
def scores_not_clipped(plant):
    """Scores of a party go out with noise for clipped ones, unclipped."""

    def whole(me, scores):
        return perturbed(me, scores)

    plant.everywhere(noisy_scores, lambda _: whole)


# Sensitivity


def _scaled(plant, owner, name, factor):
    """Multiply both numbers that a method gives by a factor of the object and the method's arguments."""

    def change(method):
        def other(self, *given):
            by = factor(self, *given)
            return tuple(by * number for number in method(self, *given))

        return other

    plant.around(owner, name, change)


def _release_scaled(factor):
    """From a method that makes a release to one whose release is for another sensitivity, at the same multiplier."""

    def change(method):
        def other(self, me, *more):
            release = method(self, me, *more)
            if release.scale == 0:
                return release
            by, fields = factor(self, me), ("sensitivity", "verified_sensitivity", "scale")
            return dataclasses.replace(release, **{name: by * getattr(release, name) for name in fields})

        return other

    return change


@mistake("sensitivity", case="descent", guard="contract")
def added_instead_of_replaced(plant):
    """The sensitivity is B / m, of adding or removing an example, where one is replaced."""
    _scaled(plant, GradientNoise, "sensitivities", lambda self, count: 0.5)


@mistake("sensitivity", case="descent-gaussian", guard="contract")
def divided_by_all_agents_rows(plant):
    """The sensitivity is divided by the number of all agents' rows."""
    _scaled(
        plant, GradientNoise, "sensitivities", lambda self, count: count / max(1, int(self.task.train.counts.sum()))
    )


@mistake("sensitivity", case="averaging", guard="contract")
def divided_by_all_rows_instead_of_the_batch(plant):
    """The sensitivity of a batch's mean is divided by all rows of the agent."""
    plant.around(
        SubgradientNoise,
        "release",
        _release_scaled(lambda self, me: min(self.batch, len(me.data)) / max(1, len(me.data))),
    )


@mistake("sensitivity", case="propagation-laplace", guard="contract")
def minimiser_in_the_wrong_norm(plant):
    """The l1 sensitivity of a minimiser lacks the root of the dimension."""

    def factor(self, agent):
        return 1 / math.sqrt(self.task.dimension) if self.privacy.norm == "l1" else 1.0

    _scaled(plant, OutputNoise, "sensitivities", factor)


@mistake("sensitivity", case="propagation", guard="contract")
def minimiser_of_twice_the_convexity(plant):
    """A minimiser's sensitivity is G / (2 m lambda), as if replacing an example moved one gradient only."""
    _scaled(plant, OutputNoise, "sensitivities", lambda self, agent: 0.5)


@mistake("sensitivity", case="sharing", guard="contract")
def scores_move_by_their_bound(plant):
    """Clipped scores are taken to move by B instead of 2 B."""
    plant.around(ClippedScores, "sensitivity", lambda known: lambda self: 0.5 * known(self))


@mistake("sensitivity", case="descent-claimed", guard="contract")
def claimed_as_proved(plant):
    """What a paper claims is entered as what is proved."""

    def change(method):
        def other(self, count):
            claimed, _ = method(self, count)
            return claimed, claimed

        return other

    plant.around(GradientNoise, "sensitivities", change)


@mistake("sensitivity", case="penalty", guard="contract")
def determinant_left_out(plant):
    """Objective perturbation charges for its noise alone, not for the Jacobian."""

    def change(epsilons):
        def other(self, agent, number, rows, degree):
            claimed, proved = epsilons(self, agent, number, rows, degree)
            share = self.parameters.loss_weight / rows
            row = share * self.problem.task.loss.curvature * self.problem.task.bounds["l2"] ** 2
            curvature = self.iteration.local.curvature(degree, self.iteration.penalty(agent, number))
            return claimed, proved - math.log1p(row / curvature)

        return other

    plant.around(PerturbedAdmm, "epsilons", change)


@mistake("sensitivity", case="penalty", guard="contract")
def penalty_of_another_round(plant):
    """Objective perturbation charges for the noise of a penalty that is twice as large as the one it uses."""

    def change(epsilons):
        return lambda self, *given: tuple(epsilon / 2 for epsilon in epsilons(self, *given))

    plant.around(PerturbedAdmm, "epsilons", change)


@mistake("sensitivity", case="rows", guard="contract")
def rows_move_by_their_bound(plant):
    """A row within the bound B is taken to move by B instead of 2 B."""
    plant.around(LocalDP, "_release", _release_scaled(lambda self, me: 0.5))


@mistake("sensitivity", case="descent-warm", guard="contract")
def warm_start_as_if_all_rows_were_one_agents(plant):
    """The warm start's sensitivity is divided by the rows of all agents."""
    _scaled(
        plant,
        OutputNoise,
        "sensitivities",
        lambda self, agent: int(self.task.train.counts[agent]) / max(1, int(self.task.train.counts.sum())),
    )


# Order


@mistake("order", case="sharing", guard="contract")
def scores_clipped_after_the_noise(plant):
    """Noise is added to scores as they are, and the sum is clipped."""

    def after(me, scores):
        return clipped(perturbed(me, scores), me.clip)

    plant.everywhere(noisy_scores, lambda _: after)


@mistake("order", case="descent-gaussian", guard="contract")
def gradient_clipped_after_the_noise(plant):
    """Noise is added to the gradient as it is, and the sum is clipped to the bound."""
    clipping(plant, lambda _: lambda model, shard, loss, ridge, norm, bound: local_gradient(model, shard, loss, ridge))

    def change(perturb):
        def other(self, vector, **how):
            noisy = perturb(self, vector, **how)
            return noisy * (1.0 / max(1.0, float(np.linalg.norm(noisy)))) if self.scale else noisy

        return other

    plant.around(Release, "perturb", change)


@mistake("order", case="descent", guard="contract")
def noise_on_the_message_only(plant):
    """The update is made with the exact gradient, and noise is added to the copy that is sent."""

    def change(step):
        def other(self, me):
            release = self.noise.release(me)
            if release.scale == 0:
                return step(self, me)
            if not me.reserve(release):
                return me.fall_silent()
            model, alpha, mu_c = me.model, me.alpha, me.mu_c
            gradient, around = exact_gradient(self, me), model.copy()
            if len(me.neighbours):
                around = me.weights @ me.heard / me.weights.sum()
            noisy = release.perturb(gradient, rng=me.stream("noise"))
            told = (1 - alpha) * model + alpha * (around - mu_c * noisy)
            model[:] = (1 - alpha) * model + alpha * (around - mu_c * gradient)
            me.send("model", told, release)
            if self.limit is not None and me.updates + 1 >= self.limit:
                me.fall_silent()
            return None

        return other

    stepping(plant, CoordinateDescent, change)


@mistake("order", case="averaging-full", guard="contract")
def mixed_before_the_noise(plant):
    """Dual averaging keeps its own exact dual and mixes that with its neighbours' noisy ones."""

    def change(step):
        def other(self, me):
            noises = []

            def noted(release, vector, **how):
                noisy = perturb(release, vector, **how)
                noises.append((me.updates + 1) * (noisy - vector))
                return noisy

            perturb = Release.perturb
            Release.perturb = noted
            try:
                step(self, me)
            finally:
                Release.perturb = perturb
            if noises:
                me.sent -= noises[-1]

        return other

    stepping(plant, DualAveraging, change)


@mistake("order", case="descent", guard="contract")
def sent_before_the_noise(plant):
    """The model is sent first, and noise is added to what is kept."""

    def change(step):
        def other(self, me):
            noises = []

            def later(release, vector, **how):
                noises.append(perturb(release, np.zeros_like(vector), **how))
                return vector

            perturb = Release.perturb
            Release.perturb = later
            try:
                step(self, me)
            finally:
                Release.perturb = perturb
            if noises:
                me.model -= me.alpha * me.mu_c * noises[-1]

        return other

    stepping(plant, CoordinateDescent, change)


@mistake("order", case="averaging", guard="tests")
def pair_of_the_other_adjacency(plant):
    """Sampled releases under replace-one are composed as under add-or-remove-one."""

    def change(composed):
        return lambda parts, delta, *, replaced=False: composed(parts, delta)

    replace_one(plant, change)


@mistake("order", case="averaging", guard="tests")
def pair_in_the_other_order(plant):
    """Sampled Gaussian releases are composed with the two orders of their pair exchanged."""
    from dp_accounting.pld import privacy_loss_distribution as library

    def change(build):
        def other(*given, **named):
            pair = build(*given, **named)
            return library.PrivacyLossDistribution(pair._pmf_add, pair._pmf_remove)

        return other

    plant.around(library, "from_gaussian_mechanism", change)


# Composition


def _loss(plant, mechanism, change):
    """Change the loss distribution of a mechanism's releases: ``change(loss, multiplier, dimension)``."""

    def around(loss):
        return lambda self, multiplier, dimension=0: change(partial(loss, self), multiplier, dimension)

    plant.around(type(mechanism), "loss", around)


@mistake("composition", case="descent", guard="tests")
def laplace_loss_of_half_the_shift(plant):
    """A Laplace release reveals what one of half its sensitivity reveals."""
    _loss(plant, LAPLACE, lambda loss, multiplier, dimension: loss(2 * multiplier, dimension))


@mistake("composition", case="descent-gaussian", guard="tests")
def gaussian_loss_of_a_tenth_more_noise(plant):
    """A Gaussian release reveals, and is merged as, one of a tenth more noise."""
    _loss(plant, GAUSSIAN, lambda loss, multiplier, dimension: loss(1.1 * multiplier, dimension))
    plant.around(type(GAUSSIAN), "gaussian_multiplier", lambda merged: lambda self, multiplier: 1.1 * multiplier)


@mistake("composition", case="propagation", guard="tests")
def gamma_loss_in_one_dimension_more(plant):
    """Gamma noise is composed as if it had been added to one coordinate more."""
    _loss(plant, GAMMA, lambda loss, multiplier, dimension: loss(multiplier, dimension and dimension + 1))


@mistake("composition", case="averaging", guard="tests")
def amplified_twice(plant):
    """Sampling amplifies an epsilon by the square of its probability."""
    plant.everywhere(amplified, lambda amplify: lambda epsilon, sampling: amplify(epsilon, sampling**2))


@mistake("composition", case="descent-printed", guard="tests")
def delta_spent_twice(plant):
    """The deltas of single releases do not come out of the one that is left for their composition."""
    plant.everywhere(remaining_delta, lambda _: lambda delta, logs: delta)


@mistake("composition", case="descent", guard="tests")
def epsilon_read_once(plant):
    """An agent's epsilon is not composed anew after its first charges."""

    def change(epsilon):
        def other(self, which, delta):
            fresh, known = epsilon(self, which, delta), memory(self)
            kept = known.setdefault((which, delta), fresh.copy())
            kept[kept == 0] = fresh[kept == 0]
            return kept.copy()

        return other

    plant.around(Ledger, "epsilon", change)
