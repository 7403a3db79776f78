"""Making the steps of a plan one after the other, in their order."""

from __future__ import annotations

from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.authors import place_of
from ....agents.errors import INTERRUPTED, HushnetError, Objection
from ....protocols.steps.names import MESSAGE
from ....protocols.steps.record import One, Record
from ....protocols.steps.single_steps import UNSENT, contradiction, failure_of
from ...tables.sessions import COMPLETING, REQUESTING
from ...world.rewind import Rewind
from ...world.world import World
from .planned_steps import SENT, PlannedSteps
from .step_ports import finite


@final
class StepsInTurn(PlannedSteps):
    """Planned steps that are made one after the other, of one agent each.

    Parameters
    ----------
    world : World
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._one = One(self.tables, self.source)

    @override
    def _make(self, total: int, plain: NDArray[np.bool_]) -> None:
        source, private = self.source, self.world.private
        functions: Any = self.functions
        self._open(self.plan.steps[:total], np.arange(total))
        columns = [source.window[name].tolist() for name in ("agent", "phase", "updates", "tick", "now")]
        me, messages, noisy, w = self._one, self.names.messages, self.charges.noisy, 0
        if not self.pairs:
            places = [one.tolist() for one in self._places]
            ports = zip(messages.items(), self._due, places, self._apart_ports, strict=True)
            self._sent = [(name, kind, due, place, apart) for (name, kind), due, place, apart in ports]
        try:
            for w, (agent, phase, updates, tick, now) in enumerate(zip(*columns, strict=True)):
                source.begin(slice(w, w + 1))
                me.begin_(agent, SENT[phase] if phase else messages, updates, tick, now)
                try:
                    over: Any = functions[phase - 1](me, *self._given(w, phase)) if phase else functions[0](me)
                except (HushnetError, Objection, *INTERRUPTED):
                    raise
                except BaseException as error:  # a class of an author's own may derive from it
                    self._end(w, failure_of(self.protocol, agent, now, updates, self._name(phase), error))
                if over and not phase:
                    self._contradicted(f"it ended an agent's steps at its step {updates + 1}")
                self._say(w, me, phase)
                if noisy or source.follows is not None:
                    self._charge(slice(w, w + 1))
                for vector in me.said_.values() if private else me.blocks_.values():
                    if not finite(vector):
                        self._end(w, None)
            w = total
        finally:
            plain[:w] = self._plain[:w]

    def _given(self, w: int, phase: int) -> tuple[Any, ...]:
        """Arguments of half of an exchange: the neighbour's rank and, after a request, the vector received from it."""
        step, graph = self.source.window[w], self.tables.graph
        edge = int(step["edge"])
        partner = edge - int(graph.offsets[step["agent"]])
        if phase == REQUESTING:
            return (partner,)
        heard = self.world.transport.tables.pool[step["heard"], : self._heard_width(edge, phase)].view()
        heard.flags.writeable = False
        return partner, heard

    def _say(self, w: int, me: One, phase: int) -> None:
        """Put what a step says where its plan has it."""
        pool, said = self.world.transport.tables.pool, me.said_
        if phase:
            if phase != COMPLETING:
                message = said.get(MESSAGE)
                if message is None:
                    who = me.agent, me.now, me.updates
                    self._end(w, failure_of(self.protocol, *who, self._name(phase), UNSENT))
                kind, edge = SENT[phase][MESSAGE], self.source.window[w : w + 1]["edge"]
                pool[self._wrote[w], : len(message)] = self._leaving(me, kind, message[None], edge)[0]
            return
        for name, kind, due, places, apart in self._sent:
            message: Any = said.get(name)
            place, is_due = places[w], due is None or due[w]
            if message is None:
                if is_due and me.degree:
                    self._contradicted(f"it did not send {name} at an agent's step {me.updates + 1}")
                continue
            if not is_due:
                if me.degree:
                    what, who = f"sends {name}", (me.agent, me.now, me.updates)
                    self._end(w, contradiction(self.protocol, self.functions[0], *who, what, kind))
                continue
            if self.tables.attackers is not None:
                message = self._leaving(me, kind, np.atleast_2d(message)).reshape(message.shape)
            if apart:
                pool[self.plan.reads[place : place + me.degree], : message.shape[-1]] = message
            else:
                pool[place, : len(message)] = message

    @override
    def _diverged(self, place: int) -> Record:
        return self._one

    @override
    def _contradicted(self, what: str) -> NoReturn:
        where, name = place_of(self.functions[0]), type(self.protocol).__name__
        raise Rewind(0, f"{what}, against what {name} declares ({where})")
