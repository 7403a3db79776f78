"""Push-sum dual averaging with its step as a method, and no step function: a judge of that."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.dual_averaging import gradient_at, total_weight
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.algorithms.subgradient_noise import drawn_rows


class PushSumByWake(PushSumDualAveraging):
    """Takes in, steps, gives and tells by `wake`; every message has a release of its own."""

    def wake(self, view, out):
        """See `Protocol.wake`."""
        totals, given, taken = view.received("given"), view.edge["given"], view.edge["taken"]
        state, mass = view.state, view.state["mass"]
        answered = (totals[:, -1] > taken[:, -1]) | (given[:, -1] == 0.0)
        mass += (totals - taken).sum(axis=0)
        taken[:] = totals
        release = repeated = out.public("totals that were told before")
        if answered.any() or not len(answered):
            release = self.release(view)
            if not out.reserve(release):
                out.fall_silent()
                return
            self._step(view, release)
            share = mass / (1 + len(answered))
            given[answered] += share
            mass -= np.count_nonzero(answered) * share
        for neighbour, total, new in zip(view.neighbours.tolist(), given, answered, strict=True):
            out.send("given", total, release if new else repeated, to=neighbour)
        limit = self.averaging.limit
        if limit is not None and state["progress"][1] >= limit:
            out.fall_silent()

    def _step(self, view, release):
        state, mass, since = view.state, view.state["mass"], float(view.state["progress"][0])
        if view.now == since:
            return
        me = self.steps.record(view, release)
        total = total_weight(me, view.now)
        weight = total - total_weight(me, since)
        gain = weight * gradient_at(me, mass[:-1] / mass[-1], weight, total, view.now, drawn_rows(me))
        mass[:-1] += gain
        state["put_in"][:-1] += gain
        state["progress"][:] = view.now, state["progress"][1] + 1.0
