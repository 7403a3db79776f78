"""Mistakes in the compiled forms of words, in the arrays that they read, and in what compiled steps are charged."""

from __future__ import annotations

import numpy as np
from hushnet.agents import streams
from hushnet.agents.compilation.compiled import inlined
from hushnet.protocols.steps import charges, fields, gradient_forms, noise_forms, word_form, words

from .declarations import mistake


def _filling(plant, mechanism, fill):
    """Fill vectors of a mechanism's noise in another way: ``fill(stream, scale, out)``."""
    law, _ = noise_forms.NOISES[mechanism]
    plant.put(noise_forms, "NOISES", {**noise_forms.NOISES, mechanism: (law, inlined(fill))})


@mistake("scale", case="descent-gaussian", guard="audit", form="compiled")
def compiled_scale_halved(plant):
    """Compiled Gaussian noise has half of its scale."""

    def fill(stream, scale, out):
        streams.fill_normal(stream, scale / 2, out)

    _filling(plant, "gaussian", fill)


@mistake("scale", case="descent", guard="audit", form="compiled")
def compiled_laplace_a_tenth_smaller(plant):
    """Compiled Laplace noise has .9 of its scale."""

    def fill(stream, scale, out):
        streams.fill_laplace(stream, 0.9 * scale, out)

    _filling(plant, "laplace", fill)


@mistake("scale", case="descent", guard="audit", form="compiled")
def compiled_gaussian_for_laplace(plant):
    """Compiled Laplace releases get Gaussian noise of the same variance."""

    def fill(stream, scale, out):
        streams.fill_normal(stream, scale * np.sqrt(2.0), out)

    _filling(plant, "laplace", fill)


@mistake("clipping", case="descent", guard="contract", form="compiled")
def compiled_gradients_not_clipped(plant):
    """Compiled gradients of examples are not clipped."""

    def shortened(_):
        def whole(slope, row, bound):
            return slope, 1.0

        return inlined(whole)

    plant.everywhere(gradient_forms.shortened_in, lambda _: shortened)


@mistake("clipping", case="descent-gaussian", guard="contract", form="compiled")
def compiled_clipped_to_twice_the_bound(plant):
    """The table gives compiled steps twice the bound that the sensitivity takes."""

    def change(method):
        def other(self):
            self.bound *= 2.0
            return method(self)

        return other

    plant.around(fields.Fields, "_bound", change)


@mistake("sampling", case="averaging", guard="audit", form="compiled")
def compiled_first_rows_always(plant):
    """A compiled batch is the first rows."""

    def make(_):
        def draw_rows(me, count):
            return np.arange(min(count, len(me.labels)))

        return inlined(draw_rows)

    _replacing(plant, words.draw_rows, make)


def _replacing(plant, word, make):
    """Give a word another compiled form, that reads the same fields."""
    plant.put(word, "compiled_form", word_form.Form(word.compiled_form.fields, make))


@mistake("count", case="descent", guard="contract", form="compiled")
def compiled_draws_not_counted(plant):
    """Compiled steps draw noise and count none of it."""

    def change(method):
        def other(self, ledger, now):
            self.draws[:] = 0

        return other

    plant.around(charges.StepCharges, "settle", change)


@mistake("count", case="averaging-full", guard="contract", form="compiled")
def compiled_draws_counted_for_agent_0(plant):
    """The table has compiled steps count their draws where those of agent 0 are."""
    plant.around(fields.Fields, "_draws", lambda method: lambda self: method(self).replace("agent *", "0 *", 1))


@mistake("charge", case="descent-plain", guard="contract", form="compiled")
def compiled_plain_messages_free(plant):
    """Compiled steps do not say that what they send is plain."""

    def change(method):
        def other(self, agent):
            method(self, agent)
            self.plain_bits[:] = 0

        return other

    plant.around(charges.StepCharges, "started", change)
