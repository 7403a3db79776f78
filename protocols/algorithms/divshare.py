"""DivShare (Biswas, Kermarrec, Marouani, Pires, Sharma, de Vos 2025, algorithms 1 and 2): fragments to random agents.

==========================================================  ===========================================================
line                                                        here
==========================================================  ===========================================================
x_i = (x_i + sum of what was received of a coordinate)      ``model``, at the beginning of a step: of each neighbour and
    / (1 + number of those), coordinate by coordinate       fragment the newest that has come since the last step
x_i -= eta grad f_i(x_i), H times                           ``half``, after `local_steps` of these
every fragment is sent to J agents drawn at random          ``fragment_0`` and so on: `fragments` of them, each to
                                                            `peers` neighbours of its own draw
==========================================================  ===========================================================

Fragment f of m has the coordinates c with c mod m = f; the authors' code (sacs-epfl/divshare) deals coordinates at
random, once and for all agents. There a new round empties the queue of what was not sent yet; here all of it leaves, in
turns where the network has an `uplink`. Of the traffic in vectors, fragment 0 counts as one and the others as none, so
that a whole model is one.

Agents go on by their own clocks, and what is late is averaged when it comes. Fragments of different agents meet in one
average, so no mean is kept.

Use it where links are slow, so that parts of a model in time are better than a whole one late. What breaks it: few
peers for many fragments, with which coordinates of one model are of different ages.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from ...agents.parameters import Size
from ..base import Layout, MessageKind, Problem, Traits
from ..context import Context, check_within
from ..invariants import Declared, NoInvariant
from ..steps import choice, received
from .gradient_rounds import GradientProtocol, GradientRoundsParameters, gradient


class DivShareParameters(GradientRoundsParameters):
    """DivShare: cut models into fragments, and send each to random neighbours of its own."""

    kind: Literal["divshare"]
    fragments: Annotated[int, Field(ge=2, le=200)] = 2
    """Fragments of a model (1 / Omega), at most its numbers."""
    peers: Size = 1
    """Neighbours that each fragment is sent to (J); all where an agent has fewer."""
    local_steps: Size = 1
    """Gradient steps between two averages (H)."""


class DivShare(GradientProtocol):
    """DivShare, by clocks; see the module's docstring."""

    Parameters = DivShareParameters
    parameters: DivShareParameters
    from_first: ClassVar[tuple[str, ...]] = ("model", "half")
    traits = Traits(directed=True, changing=True)
    asks_what_is_new = True
    decides = True

    @classmethod
    @override
    def check_scenario(cls, parameters: DivShareParameters, context: Context) -> None:
        check_within("fragments", parameters.fragments, context.width)

    @classmethod
    @override
    def check_problem(cls, parameters: DivShareParameters, problem: Problem) -> None:
        check_within("fragments", parameters.fragments, problem.task.dimension)

    def layout(self) -> Layout:
        """The model, and what was sent of it; a kind of message for each fragment."""
        p, count = self.problem.task.dimension, self.parameters.fragments
        widths = [len(range(rank, p, count)) for rank in range(count)]
        kinds = {f"fragment_{rank}": MessageKind(width, vectors=int(not rank)) for rank, width in enumerate(widths)}
        return Layout(agent={"model": p, "half": p}, messages=kinds)

    def step(self, me: Any) -> None:
        """Average what is new, go along the gradient, and send each fragment to some neighbours."""
        count = self.parameters.fragments
        total, heard_of = me.half.copy(), np.ones(len(me.half))
        for rank in range(count):
            new = getattr(me, f"is_new_fragment_{rank}")
            total[rank::count] += new @ received(me, f"fragment_{rank}")
            heard_of[rank::count] += new.sum()
        half = me.model = total / heard_of
        for _ in range(self.parameters.local_steps):
            half = half - me.step_size * gradient(me, half)
        me.half = half
        open_to = me.neighbours[me.is_open]
        for rank in range(count) if len(open_to) else ():
            for place in choice(me, len(open_to), min(self.parameters.peers, len(open_to))):
                me.send(f"fragment_{rank}", half[rank::count], to=int(open_to[place]))

    def invariants(self) -> Declared:
        """None."""
        return NoInvariant("an average over different numbers of agents keeps no mean")
