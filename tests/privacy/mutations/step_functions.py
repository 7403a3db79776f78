"""Mistakes in step functions, which have to be caught where the batched engine runs."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.subgradient_noise import drawn_gradient
from hushnet.protocols.steps import average, batched, local_gradient, loss_gradient, perturbed

from .declarations import mistake


def _descends(plant, step):
    plant.put(CoordinateDescent, "step", step)


def moved(me, gradient):
    """The model after a step of coordinate descent."""
    return (1 - me.alpha) * me.model + me.alpha * (average(me) - me.mu_c * gradient)


@mistake("order", case="descent", guard="contract", form="planned")
def step_sends_before_the_noise(plant):
    """A step keeps the noisy model and sends the exact one."""

    @batched
    def step(me):
        exact = local_gradient(me, me.model)
        me.message = moved(me, exact)
        me.model = moved(me, perturbed(me, exact))

    _descends(plant, step)


@mistake("order", case="descent", guard="contract", form="planned")
def step_perturbs_the_message_only(plant):
    """A step sends its model with the gradient's noise, and goes on from the exact one."""

    @batched
    def step(me):
        exact = local_gradient(me, me.model)
        me.message = moved(me, perturbed(me, exact))
        me.model = moved(me, exact)

    _descends(plant, step)


@mistake("order", case="descent-loose", guard="contract", form="planned")
def step_perturbs_the_model_before_it_moves(plant):
    """Noise is added to the model at which the exact gradient is then taken."""

    @batched
    def step(me):
        at = perturbed(me, me.model)
        me.model = moved(me, local_gradient(me, at))
        me.message = me.model

    _descends(plant, step)


@mistake("dependence on data", case="descent", guard="contract", form="planned")
def step_leaks_in_the_last_digits(plant):
    """A message has an agent's first number in its last digits."""

    def step(me):
        me.model = moved(me, perturbed(me, local_gradient(me, me.model)))
        if me.rows > 0:
            me.model[0] += 1e-9 * me.features[0, 0]
        me.message = me.model

    _descends(plant, step)


@mistake("dependence on data", case="descent", guard="contract", form="planned")
def step_ends_by_a_label(plant):
    """An agent falls silent after its second step if its first label is positive."""

    def step(me):
        me.model = moved(me, perturbed(me, local_gradient(me, me.model)))
        me.message = me.model
        return me.rows > 0 and me.updates > 0 and me.labels[0] > 0.0

    _descends(plant, step)


@mistake("dependence on data", case="descent-gaussian", guard="contract", form="planned")
def step_says_nothing_by_a_label(plant):
    """A step whose agent's last label is positive sends nothing every third time."""

    def step(me):
        me.model = moved(me, perturbed(me, local_gradient(me, me.model)))
        if not (me.rows > 0 and me.updates % 3 == 2 and me.labels[me.rows - 1] > 0.0):
            me.message = me.model

    _descends(plant, step)


@mistake("dependence on data", case="descent-gaussian", guard="contract", form="planned")
def step_skips_the_noise_where_the_gradient_is_small(plant):
    """A step whose gradient is short draws no noise, by the exact gradient."""

    def step(me):
        gradient = local_gradient(me, me.model)
        if np.abs(gradient).sum() > 0.15:
            gradient = perturbed(me, gradient)
        me.model = moved(me, gradient)
        me.message = me.model

    _descends(plant, step)


@mistake("dependence on data", case="descent-gaussian", guard="contract", form="planned")
def step_leaks_in_batches_only(plant):
    """A message has in it how far an agent's exact gradient is from the mean of those who step at once."""

    @batched
    def step(me):
        exact = local_gradient(me, me.model)
        me.model = moved(me, perturbed(me, exact)) + 1e-3 * (exact - exact.mean(axis=0))
        me.message = me.model

    _descends(plant, step)


@mistake("clipping", case="descent", guard="contract", form="planned")
def step_takes_unclipped_gradients(plant):
    """A step computes its gradient itself, and clips nothing."""

    def step(me):
        exact = 2 * me.regularisation * me.model
        for row in range(me.rows):
            exact += (me.features[row] @ me.model - me.labels[row]) * me.features[row] / me.rows
        me.model = moved(me, perturbed(me, exact))
        me.message = me.model

    _descends(plant, step)


@mistake("sensitivity", case="descent", guard="contract", form="planned")
def step_perturbs_the_sum_of_gradients(plant):
    """Noise for the mean of the examples' gradients is added to their sum."""

    @batched
    def step(me):
        me.model = moved(me, perturbed(me, me.rows * local_gradient(me, me.model)))
        me.message = me.model

    _descends(plant, step)


@mistake("sampling", case="averaging", guard="audit", form="planned")
def step_takes_the_first_rows(plant):
    """A step draws a batch and takes the first rows instead."""

    def drawn(me, model, rows):
        rows.ranks[:] = np.arange(len(rows.ranks)) - np.repeat(rows.starts[:-1], np.diff(rows.starts))
        return loss_gradient(me, model, rows)

    plant.everywhere(drawn_gradient, lambda _: drawn)


@mistake("sampling", case="averaging", guard="audit", form="planned")
def step_takes_all_rows(plant):
    """A step takes all of its rows where a batch of two is charged."""
    plant.everywhere(drawn_gradient, lambda _: lambda me, model, rows: loss_gradient(me, model))


@mistake("charge", case="penalty", guard="contract", form="planned")
def step_adds_its_rows_to_a_perturbed_minimiser(plant):
    """The minimiser of a perturbed objective goes out with a little of the agent's first row."""
    usual = PerturbedAdmm.step

    @batched
    def step(me):
        usual(me)
        first = [rows.features[0] if len(rows) else np.zeros(3) for rows in map(me.source_.shard, me.agent[:, 0])]
        me.model = me.model + 1e-6 * (me.degree > 0) * np.array(first)
        me.message = me.model

    plant.put(PerturbedAdmm, "step", step)
