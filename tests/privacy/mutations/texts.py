"""Mistakes in the texts of steps, which have to be caught where the text runs compiled."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.subgradient_noise import drawn_gradient
from hushnet.protocols.steps import average, local_gradient, loss_gradient, perturbed

from .declarations import mistake


def _descends(plant, text):
    plant.put(CoordinateDescent, "step", text)


def moved(me, gradient):
    """The model after a step of coordinate descent."""
    around = average(me) if me.degree > 0 else me.model
    return (1 - me.alpha) * me.model + me.alpha * (around - me.mu_c * gradient)


@mistake("order", case="descent", guard="contract", form="compiled")
def text_sends_before_the_noise(plant):
    """A step keeps the noisy model and sends the exact one."""

    def step(me):
        exact = local_gradient(me, me.model)
        me.message = moved(me, exact)
        me.model = moved(me, perturbed(me, exact))
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("order", case="descent", guard="contract", form="compiled")
def text_perturbs_the_message_only(plant):
    """A step sends its model with the gradient's noise, and goes on from the exact one."""

    def step(me):
        exact = local_gradient(me, me.model)
        me.message = moved(me, perturbed(me, exact))
        me.model = moved(me, exact)
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("order", case="descent-loose", guard="contract", form="compiled")
def text_perturbs_the_model_before_the_step(plant):
    """Noise is added to the model at which the exact gradient is then taken."""

    def step(me):
        at = perturbed(me, me.model)
        me.model = moved(me, local_gradient(me, at))
        me.message = me.model
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("dependence on data", case="descent", guard="contract", form="compiled")
def text_leaks_in_the_last_digits(plant):
    """A message has an agent's first number in its last digits."""

    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = moved(me, gradient)
        if me.rows > 0:
            me.model[0] += 1e-9 * me.features[0, 0]
        me.message = me.model
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("dependence on data", case="descent", guard="contract", form="compiled")
def text_ends_by_a_label(plant):
    """An agent falls silent after its second step if its first label is positive."""

    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = moved(me, gradient)
        me.message = me.model
        if me.rows > 0 and me.updates > 0 and me.labels[0] > 0.0:
            return True
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("dependence on data", case="descent-gaussian", guard="contract", form="compiled")
def text_says_nothing_by_a_label(plant):
    """A step whose agent's last label is positive sends nothing every third time."""

    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = moved(me, gradient)
        if not (me.rows > 0 and me.updates % 3 == 2 and me.labels[me.rows - 1] > 0.0):
            me.message = me.model
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("dependence on data", case="descent-gaussian", guard="contract", form="compiled")
def text_skips_the_noise_where_the_gradient_is_small(plant):
    """A step whose gradient is short draws no noise, by the exact gradient."""

    def step(me):
        gradient = local_gradient(me, me.model)
        if np.abs(gradient).sum() > 0.05:
            gradient = perturbed(me, gradient)
        me.model = moved(me, gradient)
        me.message = me.model
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("clipping", case="descent", guard="contract", form="compiled")
def text_takes_unclipped_gradients(plant):
    """A step computes its gradient itself, and clips nothing."""

    def step(me):
        exact = 2 * me.regularisation * me.model
        for row in range(me.rows):
            exact += (me.features[row] @ me.model - me.labels[row]) * me.features[row] / me.rows
        gradient = perturbed(me, exact)
        me.model = moved(me, gradient)
        me.message = me.model
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("sensitivity", case="descent", guard="contract", form="compiled")
def text_perturbs_the_sum_of_gradients(plant):
    """Noise for the mean of the examples' gradients is added to their sum."""

    def step(me):
        gradient = perturbed(me, me.rows * local_gradient(me, me.model))
        me.model = moved(me, gradient)
        me.message = me.model
        return me.updates + 1 >= me.limit

    _descends(plant, step)


@mistake("sampling", case="averaging", guard="audit", form="compiled")
def text_takes_the_first_rows(plant):
    """A step draws a batch and takes the first rows instead."""

    def drawn(me, model, rows):
        for place in range(len(rows)):
            rows[place] = place
        return loss_gradient(me, model, rows)

    plant.everywhere(drawn_gradient, lambda _: drawn)


@mistake("sampling", case="averaging", guard="audit", form="compiled")
def text_takes_all_rows(plant):
    """A step takes all of its rows where a batch of two is charged."""

    def drawn(me, model, rows):
        return loss_gradient(me, model)

    plant.everywhere(drawn_gradient, lambda _: drawn)


@mistake("charge", case="penalty", guard="contract", form="compiled")
def text_adds_its_rows_to_a_perturbed_minimiser(plant):
    """The minimiser of a perturbed objective goes out with a little of the agent's first row."""
    usual = PerturbedAdmm.step

    def step(me):
        usual(me)
        if me.degree > 0 and me.rows > 0:
            me.model = me.model + 1e-6 * me.features[0]
            me.message = me.model

    plant.put(PerturbedAdmm, "step", step)
