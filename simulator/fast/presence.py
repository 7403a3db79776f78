"""When agents are up, as arrays that are drawn as far ahead as a compiled window needs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...agents.availability import Timeline
from ..tables.mail import Mail

AHEAD = 16.0
"""Time units that are drawn ahead."""
OFTEN = 1024
"""Changes of an agent between two looks at what they take."""


class Presence:
    """The up and down times of all agents, from the very timelines that the reference engine follows.

    Parameters
    ----------
    timelines : sequence of Timeline
    mail : Mail
        Its ``was_up`` and ``gone_from`` are filled in.
    look : callable
        Called now and then while changes are drawn, for there may be very many.

    Attributes
    ----------
    drawn : float
        Everything up to this time is known.
    """

    def __init__(self, timelines: Sequence[Timeline], mail: Mail, look: Callable[[], None]) -> None:
        self.timelines, self.look = list(timelines), look
        self.pending: list[list[float]] = [[] for _ in self.timelines]
        self.open = set(range(len(self.timelines)))
        self.state = [next(timeline)[1] for timeline in self.timelines]
        mail.was_up[:] = self.state
        self.drawn = -1.0

    def draw(self, until: float, mail: Mail) -> Mail:
        """Know all changes up to a time; the mail with them."""
        if until <= self.drawn or not self.open:
            return mail
        self.drawn = until + AHEAD
        for agent in sorted(self.open):
            times = self.pending[agent]
            while not times or times[-1] <= self.drawn:
                change = next(self.timelines[agent], None)
                if change is None:
                    self.open.discard(agent)
                    if not self.state[agent]:
                        mail.gone_from[agent] = times[-1] if times else 0.0
                    break
                time, up = change
                if up == self.state[agent]:
                    if time > self.drawn:
                        break
                    continue
                self.state[agent] = up
                times.append(time)
                if len(times) % OFTEN == 0:
                    self.look()
        if not self.open:
            self.drawn = math.inf
        return self._laid_out(mail)

    def forget(self, before: float, mail: Mail) -> Mail:
        """Drop changes before a time that nobody will ask about any more."""
        for agent, times in enumerate(self.pending):
            past = 0
            while past < len(times) and times[past] < before:
                past += 1
            # The last change of an agent tells from when on it is down for good.
            if past and agent in self.open:
                past = min(past, len(times) - 1)
            if past % 2:
                mail.was_up[agent] = not mail.was_up[agent]
            del times[:past]
        return self._laid_out(mail)

    def _laid_out(self, mail: Mail) -> Mail:
        most = max((len(times) for times in self.pending), default=0)
        changes = np.full((len(self.pending), most), math.inf)
        for agent, times in enumerate(self.pending):
            changes[agent, : len(times)] = times
        return mail._replace(changes=changes)
