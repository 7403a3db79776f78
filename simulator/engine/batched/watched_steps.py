"""Compiled steps that are watched: called one by one, each shown to a watch before anything of it leaves its agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ....agents.errors import HushnetError, StepFailure, words_of
from ....protocols.base import Out, View
from ....protocols.kernel import COMPLETING, KIND, PLAIN, REQUESTING, RESPONDING, SAID, SILENT, WIDTH, Compiled, Kernel
from ....protocols.privacy.mechanisms import Release
from ....protocols.steps.noise import UNPERTURBED
from ....protocols.steps.solves import inverse_of
from ....protocols.steps.tape import SUM, Tape
from ....protocols.view import POST_PROCESSING
from ...world.world import World

Array = NDArray[np.float64]


@final
class WatchedSteps:
    """The compiled form of a protocol's texts in the place of its methods.

    The step is the one that compiled windows call, but that it writes its draws on a tape. It reads what the view's
    inbox has, tells the watch of its draws, and says what it says under the protocol's own release. Noise is charged by
    the counts that the step has kept, as in windows; where they are wrong, the ledger is.

    Parameters
    ----------
    world : World
        Watched, and not run yet.
    kernel : Compiled
    tape : Tape
        That the kernel was made for.
    """

    def __init__(self, world: World, kernel: Compiled, tape: Tape) -> None:
        self.world, self.kernel, self.tape = world, kernel, tape
        graph, kinds = world.setting.graph, world.layout.messages
        self.kinds, self.table = list(kinds), kernel.table.values
        degree = int(graph.degrees.max(initial=1))
        self.known = np.full(len(graph.heads) * len(kinds), -1, dtype=np.int64)
        self.first_row = len(kinds) * degree
        ports = len(kernel.ports) if isinstance(kernel, Kernel) else 0
        self.rows = np.arange(self.first_row, self.first_row + max(1, ports * degree))
        width = max(int(np.max(kind.width)) for kind in kinds.values())
        self.pool = np.zeros((self.first_row + len(self.rows), width))
        self._begun: set[int] = set()

    def wake(self, view: View, out: Out) -> None:
        """One step of an agent, as `Protocol.wake`."""
        assert isinstance(self.kernel, Kernel)
        slots, step = self._begin(view), self.kernel.step
        said = self._call("step", view, lambda: step(*self._who(view), *slots, *self._heard, self.rows, self.table))
        release = self._told(view)
        if said & SILENT:
            out.fall_silent()
        place, degree = 0, slots[1] - slots[0]
        for port in self.kernel.ports:
            kind, rows = self.kinds[int(port[KIND])], self.rows[place : place + (degree if port[1] else 1)]
            place += len(rows)
            if not port[SAID]:
                continue
            under = self._under(release, view, said)
            for rank, row in enumerate(rows):
                to = int(view.neighbours[rank]) if port[1] else None
                out.send(kind, self.pool[row, : port[WIDTH]], under, to=to)

    def make_request(self, view: View, partner: int, out: Out) -> None:
        """Open an exchange, as `Protocol.make_request`."""
        self._half(REQUESTING, view, partner, np.empty(0), out, "request")

    def make_response(self, view: View, partner: int, vector: Array, out: Out) -> None:
        """The callee's half, as `Protocol.make_response`."""
        self._half(RESPONDING, view, partner, vector, out, "reply")

    def complete_exchange(self, view: View, partner: int, vector: Array) -> None:
        """The caller's half, as `Protocol.complete_exchange`."""
        self._half(COMPLETING, view, partner, vector, None, "")

    def _half(self, phase: int, view: View, partner: int, vector: Array, out: Out | None, kind: str) -> None:
        slots, step = self._begin(view), self.kernel.step
        message = np.zeros(int(np.max(self.world.layout.messages[kind].width)) if kind else 0)
        heard, edge = np.array(vector), slots[0] + partner
        said = self._call(
            "exchange",
            view,
            lambda: step(phase, *self._who(view), edge, *slots, *self._heard, heard, message, self.table),
        )
        release = self._told(view)
        if out is not None:
            out.send(kind, message, self._under(release, view, said), to=int(view.neighbours[partner]))

    @property
    def _heard(self) -> tuple[NDArray[np.int64], Array]:
        return self.known, self.pool

    @staticmethod
    def _who(view: View) -> tuple[int, int, float, int]:
        return view.agent, view.tick, view.now, view.updates

    def _begin(self, view: View) -> tuple[int, int]:
        """Lay out what the agent knows, and what its draws come to; its first edge, and the one after its last."""
        world, agent = self.world, view.agent
        if agent not in self._begun:
            self._begun.add(agent)
            self.kernel.charges.started(agent)
        slots, row = world.setting.graph.edges_of(agent), 0
        for rank, kind in enumerate(self.kinds):
            there, values = view.heard(kind), view.received(kind)
            place = rank * len(world.setting.graph.heads) + slots.start
            for number in range(slots.stop - slots.start):
                self.known[place + number] = row if there[number] else -1
                self.pool[row, : len(values[number])] = values[number]
                row += 1
        assert world.watch is not None
        self.tape.begin(world.watch.forced(agent))
        for words in self.tape.streams.values():
            words[0], words[10] = 0, 4
        return slots.start, slots.stop

    def _call(self, what: str, view: View, step: Callable[[], int]) -> int:
        try:
            return step()
        except HushnetError:
            raise
        except Exception as error:
            who, name = self.world.setting.task.ids[view.agent], type(self.world.protocol).__name__
            raise StepFailure(
                f"agent {who!r} at time {view.now:.6g}: the compiled {what} of {name} raised "
                f"{type(error).__name__} ({words_of(error)}) after {view.updates} updates"
            ) from error

    def _told(self, view: View) -> Release:
        """Tell the watch of streams and draws, and charge what the step has counted; the step's release."""
        world, release = self.world, self.world.protocol.release(view)
        watch: Any = world.watch
        for purpose, words in self.tape.streams.items():
            if words[0] or words[10] != 4:
                stream = np.random.Philox(key=words[4:6], counter=np.append(np.uint64(0), words[1:4]))
                watch.stream(np.random.Generator(stream), purpose, view.agent)
        loss = world.protocol.problem.task.loss
        for one in self.tape.drawn():
            release.note_draw()
            if one.kind == SUM:
                value = watch.noisy(release, one.exact, one.found)
            else:
                weight, curvature, influence = one.terms.tolist()
                inverse = inverse_of(view.data, loss, weight, curvature, one.exact, influence)
                value = watch.solved(release, one.found, one.noise, *inverse, None)
            if value.tobytes() != one.used.tobytes():
                raise ValueError("a watch has put another value in place of a noisy one than it had announced")
        self.kernel.charges.settle(world.ledger, view.now)
        return release

    def _under(self, release: Release, view: View, said: int) -> Release:
        """What a message goes out as.

        The ledger charges it as it leaves where the step calls it plain, and otherwise has nothing to charge any more.
        """
        if not (said & PLAIN or release.free or release.draws):
            return Release.public(view.agent, view.now, POST_PROCESSING, recipients=len(view.neighbours))
        if self.world.protocol.step_noise is not None and release.noisy and not release.draws:
            release = Release.plain(view.agent, view.now, UNPERTURBED)
        if not said & PLAIN and not release.free:
            self.world.ledger.settled(release)
        return release
