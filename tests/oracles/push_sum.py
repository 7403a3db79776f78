"""Push-sum dual averaging with its step as a method, and no step function: a judge of that."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.dual_averaging import gradient_at, total_weight
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.algorithms.subgradient_noise import drawn_rows


class PushSumByWake(PushSumDualAveraging):
    """Takes in, steps, gives and tells by a method; every message has a release of its own."""

    decides = asks_for_budget = True

    def step(self, me):
        """See `Protocol.step`."""
        totals, given, taken = me.heard, me.given, me.taken
        mass = me.mass
        answered = (totals[:, -1] > taken[:, -1]) | (given[:, -1] == 0.0)
        mass += (totals - taken).sum(axis=0)
        taken[:] = totals
        release = repeated = me.public("totals that were told before")
        if answered.any() or not len(answered):
            release = self.release(me)
            if not me.reserve(release):
                me.fall_silent()
                return
            self._step(me, release)
            share = mass / (1 + len(answered))
            given[answered] += share
            mass -= np.count_nonzero(answered) * share
        for neighbour, total, new in zip(me.neighbours.tolist(), given, answered, strict=True):
            me.send("given", total, release if new else repeated, to=neighbour)
        limit = self.averaging.limit
        if limit is not None and me.progress[1] >= limit:
            me.fall_silent()

    def _step(self, me, release):
        mass, since = me.mass, float(me.progress[0])
        if me.now == since:
            return
        total = total_weight(me, me.now)
        weight = total - total_weight(me, since)
        gain = weight * gradient_at(me, mass[:-1] / mass[-1], weight, total, me.now, drawn_rows(me))
        mass[:-1] += gain
        me.put_in[:-1] += gain
        me.progress = me.now, me.progress[1] + 1.0
