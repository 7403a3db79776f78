"""Choco-SGD: decentralised SGD that sends compressed differences (Koloskova, Stich, Jaggi 2019, algorithm 2).

=======================================================  ==============================================================
equation                                                 here
=======================================================  ==============================================================
x_i(t+1/2) = x_i(t) - eta grad f_i(x_i(t))               ``half``, at the end of a step
q_i = Q(x_i(t+1/2) - xhat_i(t))                          ``message``
xhat_j(t+1) = xhat_j(t) + q_j, of neighbours and itself  ``hat`` of itself, ``copy`` of each neighbour
x_i(t+1) = x_i(t+1/2)                                    ``model``, at the beginning of the next step
    + gamma sum_j w_ij (xhat_j(t+1) - xhat_i(t+1))
=======================================================  ==============================================================

W has Metropolis's weights. Q(v) of p coordinates, with values, or norms, of b bits and indices of 32, is one of

===========  ==================================================================================  =====================
compression  Q(v)                                                                                bits of a message
===========  ==================================================================================  =====================
top_k        the k largest coordinates                                                           k (32 + b)
random_k     k random ones                                                                       k (32 + b)
sign         the sign of each, times their mean size                                             p + b
quantise     |v| / (s tau) times sign(v_c) floor(s |v_c| / |v| + u_c), u_c uniform in [0, 1),    p (1 + log2(s+1)) + b
             tau = 1 + min(p / s^2, sqrt(p) / s); Alistarh et al. 2017, scaled
===========  ==================================================================================  =====================

Copies begin at zero, as in the paper; the authors' code begins with copies of x, and mixes by the copies of t before it
compresses.

Values and norms are rounded to their `precision`, at both ends, and levels take whole bits. Every difference has to be
added once, so rounds repeat what is lost, and never go on without it.

Use it where bytes are dear and rounds are not. What breaks it: a `consensus_step` that is large for what is kept of a
vector, with which copies and models part.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.errors import FieldError
from ...agents.parameters import Size, check_named
from ..base import Layout, MessageKind, Problem, Traits
from ..context import Context, check_within
from ..invariants import Declared, last_sent_is_kept
from ..steps import batched, choice, per_edge, received, segment_sum, uniform
from .gradient_rounds import Array, GradientRounds, MixingParameters, gradient


class ChocoParameters(MixingParameters):
    """Choco-SGD: send some coordinates of a difference, and mix the copies that neighbours have of each other."""

    kind: Literal["choco_sgd"]
    compression: Literal["top_k", "random_k", "sign", "quantise"] = "top_k"
    """What is sent of a difference: its largest coordinates, random ones, signs and a mean size, or random levels."""
    keep: Size = 1
    """Number k of coordinates that top_k and random_k send, at most the model's."""
    levels: Size = 16
    """Number s of levels of quantise."""
    precision: Literal["float64", "float32", "float16"] = "float64"
    """Type of the values that top_k and random_k send, and of the norms of the others."""
    consensus_step: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Step size gamma of the mixing; smaller for fewer coordinates."""

    @model_validator(mode="after")
    def _of_its_compression(self) -> ChocoParameters:
        check_named(self, "compression", levels="quantise")
        if self.keep > 1 and self.compression not in ("top_k", "random_k"):
            raise FieldError(
                "is for compression: top_k or random_k; leave it out, or say keep: null after like", "keep"
            )
        return self


class ChocoSGD(GradientRounds):
    """Choco-SGD, in rounds; see the module's docstring."""

    Parameters = ChocoParameters
    parameters: ChocoParameters
    from_first: ClassVar[tuple[str, ...]] = ("model", "half")
    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True)

    @classmethod
    @override
    def check_scenario(cls, parameters: ChocoParameters, context: Context) -> None:
        check_within("keep", parameters.keep, context.width)

    @classmethod
    @override
    def check_problem(cls, parameters: ChocoParameters, problem: Problem) -> None:
        check_within("keep", parameters.keep, problem.task.dimension)

    @override
    def layout(self) -> Layout:
        """The model, half a step further, and its copy at the neighbours, of whom an edge has theirs; differences."""
        given, p = self.parameters, self.problem.task.dimension
        value = np.dtype(given.precision).itemsize * 8
        if given.compression in ("top_k", "random_k"):
            width, bits = 2 * given.keep, given.keep * (32 + value)
        else:
            each = 1 if given.compression == "sign" else 1 + math.ceil(math.log2(given.levels + 1))
            width, bits = p, each * p + value
        agent = {"model": p, "half": p, "hat": p, "sent": width}
        return Layout(agent=agent, edge={"copy": p}, messages={"sent": MessageKind(width, bits=bits)})

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Add the neighbours' differences, mix, go along the gradient, and send the own difference."""
        me.copy = me.copy + expanded(me, received(me))
        gap = me.copy - per_edge(me, me.hat)
        me.model = me.half + me.consensus_step * segment_sum(me, me.mixing_weight * gap)
        me.half = me.model - me.step_size * gradient(me, me.model)
        me.sent = compressed(me, me.half - me.hat)
        me.hat = me.hat + expanded(me, me.sent)
        me.message = me.sent

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (last_sent_is_kept("sent", "sent", "Koloskova et al. 2019, algorithm 2: q is added at both ends"),)


def compressed(me: Any, vectors: Array) -> Array:
    """(B, width) messages that carry Q of (B, p) vectors."""
    p, sizes = vectors.shape[1], np.abs(vectors)
    if me.compression == "sign":
        return rounded(me, sizes.mean(axis=1, keepdims=True)) * np.where(vectors < 0, -1.0, 1.0)
    if me.compression == "quantise":
        s = me.levels
        norms = rounded(me, np.sqrt((vectors * vectors).sum(axis=1, keepdims=True)))
        tau = 1.0 + min(p / s**2, math.sqrt(p) / s)
        levels = np.minimum(np.floor(s * sizes / np.where(norms > 0, norms, 1.0) + uniform(me, p)), s)
        return norms / (s * tau) * np.sign(vectors) * levels
    kept: Any
    if me.compression == "random_k":
        kept = choice(me, p, me.keep)
    else:
        kept = np.argsort(-sizes, axis=1, kind="stable")[:, : me.keep]
    return np.concatenate((rounded(me, np.take_along_axis(vectors, kept, axis=1)), kept), axis=1)


def rounded(me: Any, values: Array) -> Array:
    """Values as they are sent, in the precision of messages."""
    return values.astype(me.precision).astype(np.float64)


def expanded(me: Any, messages: Array) -> Array:
    """(B, p) vectors of messages: of (B, 2k) values and their different indices, zeros elsewhere."""
    if me.compression in ("sign", "quantise"):
        return messages
    keep, dimension = messages.shape[1] // 2, me.model.shape[1]
    out = np.zeros((len(messages), dimension))
    np.put_along_axis(out, messages[:, keep:].astype(np.int64), messages[:, :keep], axis=1)
    return out
