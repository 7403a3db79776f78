"""Windows of lossless rounds, compiled: a barrier opens with the last message that it waits for, without any event.

What agents wait for, and what is under way between them, `hushnet.simulator.engine.batched.lossless_rounds` says.
"""

from __future__ import annotations

import math
from typing import Any

from ....agents.compilation import compiled
from ...rules.clocks import count_step, used_up
from ...rules.delivery import draw_copies
from ...tables.run import RunTables
from ...tables.tallies import BARRIER, HEAP, ORDER, UNFINISHED, WAKES
from .lossless_rounds import LosslessRounds, close_round, open_step, say_nothing, send_said_messages
from .plan import UNMADE, UNSAID, StepPlan, has_to_end
from .wake_heap import take_top
from .windows import (
    COUNTED,
    ENDS,
    FULL,
    IDLE,
    LOOK,
    REACHED,
    clock_over,
    has_room,
    is_counted,
    plan_step,
    send_said,
)


@compiled(_nrt=False)
def run_rounds(
    run: RunTables,
    rounds: LosslessRounds,
    limit: float,
    forced: bool,
    header: int,
    plan: StepPlan,
    ports: Any,
    rows: Any,
):  # pragma: no cover - compiled
    """Run ends of rounds strictly before ``limit``, the first one anyway if ``forced``; why it stopped, agent, time.

    While a step is being made, its agent stays on top of the heap.
    """
    counts = run.counts
    while True:
        if counts[UNFINISHED]:
            agent, now = run.wakes.agent[0], run.wakes.time[0]
            counts[UNFINISHED] = 0
            take_top(run)
            close_round(run, rounds, agent, now)
            if run.agents.silent[agent]:
                why = clock_over(run, agent)
                if why != REACHED:
                    return why, agent, now
        if counts[HEAP] == 0:
            return IDLE, -1, math.inf
        now, agent = run.wakes.time[0], run.wakes.agent[0]
        if now >= limit and not forced:
            return REACHED, agent, now
        if used_up(run):
            return LOOK, agent, now
        degree = run.offsets[agent + 1] - run.offsets[agent]
        late = len(rounds.late_arrival) - rounds.late[0]
        if not has_room(run, plan, agent, ports) or late < degree * max(1, len(ports)):
            return FULL, agent, now
        forced = False
        run.agents.ticks[agent] += 1
        counts[WAKES] += 1
        counts[BARRIER], counts[UNFINISHED] = counts[ORDER], 1
        open_step(run, rounds, agent, now)
        said = plan_step(run, plan, agent, now, ports, rows)
        if said & UNMADE == 0 and has_to_end(plan):
            return ENDS, agent, now
        if said & UNMADE == 0:
            send_said(run, rounds, agent, ports, rows, draw_copies, send_said_messages)
        if said & UNSAID:
            say_nothing(run, rounds, agent, now, header)
        if is_counted(said) and count_step(run, agent):
            return COUNTED, agent, now
