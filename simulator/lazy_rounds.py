"""The fast engine for lossless rounds: no event for any message or barrier, and compiled windows of ends of rounds.

Where nothing is lost and nobody is ever absent, when a round begins follows from when the others ended
(`hushnet.simulator.round_windows`); nothing has to be acknowledged, repeated or given up. The run is that of
`hushnet.simulator.rounds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..agents.agent import WAKE, Agent
from ..agents.compiled import announce
from ..agents.inbox import Message
from ..protocols.base import Out, Sent
from ..protocols.kernel import Kernel
from . import lazy, round_windows, windows
from .round_windows import Barriers
from .rounds import EMPTY, addressed, check_setting
from .windowed import Pause, Windowed

if TYPE_CHECKING:
    from .world import World


@final
class LazyRounds(Windowed):
    """Every agent steps once it has heard a whole round from its neighbours, of which nothing is ever lost.

    Parameters
    ----------
    world : World
    compiled : bool
        Whether to use the protocol's compiled step, if it has one.

    Attributes
    ----------
    kernel : Kernel or None
        The protocol's compiled step, if it is used.
    barriers : Barriers or None
        What agents wait for; None until the run begins.

    Raises
    ------
    InputError
        If the clock is recorded, or agents join or leave.
    ValueError
        If the protocol's compiled form is one of an exchange.
    """

    def __init__(self, world: World, *, compiled: bool = True) -> None:
        check_setting(world)
        kernel = world.protocol.kernel(world.state) if compiled else None
        if kernel is not None and not isinstance(kernel, Kernel):
            raise ValueError(f"{type(world.protocol).__name__} runs in rounds, so its kernel must be a Kernel")
        self.kernel = kernel
        super().__init__(world, compiled=kernel is not None)
        announce(round_windows.run_rounds, "the fast engine")
        if self.kernel is not None:
            self.post.inbox.refresh = lambda: lazy.copy_all(self.post.mail)
        self.barriers: Barriers | None = None
        self._call = self._arguments()
        edges = len(world.setting.graph.heads)
        # One list more than inboxes have kinds, for messages without numbers.
        lists = np.full((len(world.layout.messages) + 1) * edges, -1, dtype=np.int64)
        self.post.mail = self.post.mail._replace(first_node=lists)

    def _arguments(self) -> tuple[Any, ...]:
        """What a window is called with besides the mail, the barriers and its limit."""
        own = self.world.setting.network.start != "zero"
        kernel = self.kernel
        if kernel is None:
            none = Kernel(windows.no_step, (), (), np.empty((0, 0)), np.empty(0, dtype=bool), "")
            return False, none.step, *none.arguments, none.model, none.charged, own, 0, 1
        (kind,) = self.world.layout.messages.values()
        size = self.world.network.size(int(np.max(kind.width)))
        return True, kernel.step, *kernel.arguments, kernel.model, kernel.charged, own, size, kind.vectors

    def wind_up(self) -> Sequence[int]:
        """See `Windowed.wind_up`: round 1 begins at once, and nobody waits for who is silent from the start."""
        mail, graph = self.post.mail, self.world.setting.graph
        ended = windows.wind_up(mail)
        speaking = np.bincount(graph.tails[~mail.silent[graph.heads]], minlength=graph.agents)
        expected = 1 + speaking.astype(np.int64)
        self.barriers = Barriers(
            expected=expected,
            missing=np.stack([expected, expected], axis=1),
            latest=np.zeros((graph.agents, 2)),
            begun=np.ones(graph.agents, dtype=np.int64),
        )
        return ended

    def next_event(self) -> tuple[float, int] | None:
        """See `Windowed.next_event`."""
        mail = self.post.mail
        if mail.counts[lazy.HEAP] == 0:
            return None
        return float(mail.heap_time[0]), WAKE + int(mail.heap_agent[0])

    def window(self, limit: float, forced: bool) -> Pause:
        """See `Windowed.window`."""
        finish, mail = self.world.finish, self.post.mail
        mail.counts[lazy.ACTIVE], mail.counts[lazy.SHORT] = finish.active, finish.short
        why, agent, now = round_windows.run_rounds(mail, self.barriers, limit, forced, *self._call)
        finish.active, finish.short = int(mail.counts[lazy.ACTIVE]), int(mail.counts[lazy.SHORT])
        if why not in (windows.REACHED, windows.IDLE, windows.FULL):
            self.stopped_at(float(now))
        if self.compiled:
            self.world.activations = int(mail.counts[lazy.ACTIVATIONS])
        return self._handle(why, agent)

    def _handle(self, why: int, index: int) -> Pause:
        """Do what a window stopped for."""
        world, mail = self.world, self.post.mail
        agent = world.agents[max(index, 0)]
        if why == windows.FULL:
            self.post.make_room(1, int(world.setting.graph.degrees.max(initial=0)))
        elif why == windows.AWAKE:
            agent.tick = int(mail.ticks[index])
            self.stepping(lambda: self._step(agent))
            mail = self.post.mail
            mail.silent[index], mail.updates[index] = agent.silent, agent.updates
        elif why == windows.COUNTED:
            agent.tick, agent.updates = int(mail.ticks[index]), int(mail.updates[index])
            world.traffic.vectors = int(mail.counts[lazy.VECTORS])
            if world.observer:
                world.observer.woke(world, agent)
            self.stepping(lambda: world.check_limits(agent))
        elif why == windows.FINISHED:
            world.finish.check()
        elif why == windows.DIVERGED:
            agent.updates = int(mail.updates[index])
            world.check_finite(agent)
        elif why == windows.IDLE:
            return Pause.DONE
        return Pause.WAIT if why == windows.REACHED else Pause.GO_ON

    def _step(self, agent: Agent) -> None:
        """Let an agent end its round in Python."""
        world = self.world
        world.views[agent.index].round = agent.tick + 1
        if world.traits.inbox == "every" and agent.tick > 0:
            world.inbox.pending[agent.index] += self._shown(agent)
        updates = agent.updates
        world.step(agent)
        if agent.updates == updates:
            # It fell silent without a word, which its neighbours are told all the same.
            self._say_nothing(agent, addressed(world.setting.graph, agent.index, []))

    def _shown(self, agent: Agent) -> list[Message]:
        """The messages that an agent's inbox shows for the first time, by neighbour and order of sending."""
        world, messages = self.world, []
        graph, inbox = world.setting.graph, world.inbox
        slots = graph.edges_of(agent.index)
        for slot, sender in zip(range(slots.start, slots.stop), graph.heads[slots].tolist(), strict=True):
            fresh = [kind for kind in inbox.values if inbox.tick[kind][slot] == agent.tick - 1]
            for kind in sorted(fresh, key=lambda kind: inbox.order[kind][slot]):
                vector = inbox.values[kind][slot].copy()
                vector.flags.writeable = False
                sent_at, order = float(inbox.sent_at[kind][slot]), int(inbox.order[kind][slot])
                size = world.network.size(len(vector))
                tick = agent.tick - 1
                messages.append(Message(sender, agent.index, kind, vector, sent_at, order, tick, slot, size))
        return messages

    def send(self, agent: Agent, out: Out) -> None:
        """See `Schedule.send`.

        Raises
        ------
        ValueError
            If a step sends two messages of one kind to one neighbour.
        """
        per_edge = addressed(self.world.setting.graph, agent.index, out.sent)
        self.post.send(agent, out)
        self._say_nothing(agent, per_edge)

    def _say_nothing(self, agent: Agent, per_edge: Mapping[int, Sequence[Sent]]) -> None:
        """End a round for the neighbours to whom its step said nothing."""
        for edge, sents in per_edge.items():
            if not sents:
                self.post.signal(agent, edge, EMPTY, tick=agent.tick, attempt=0)

    def take_in(self, now: float, barrier: int) -> None:
        """See `Windowed.take_in`."""
        round_windows.land_all(self.post.mail, now, barrier)

    @property
    def reason(self) -> str:
        """See `Windowed.reason`."""
        assert self.kernel is not None
        return self.kernel.reason
