"""The plan of a window: which steps are to be made, what each has heard, and where what it says is going to be.

Rules fill it without a look at any number that a step computes: that is possible where a step's sending follows from
what its protocol declares (`hushnet.protocols.base.Protocol.sends`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....agents.compilation import compiled, part
from ...rules.clock_rules import is_news
from ...rules.delivery import count_open, hold_version
from ...rules.lazy import kinds_of
from ...tables.run import RunTables
from ...tables.session_table import REQUESTING
from ...tables.tallies import FREE_ROWS

KIND, ADDRESSED, VECTORS, WIDTH, SIZE, SAID, PORT_COLUMNS = range(7)
"""Columns of a port, through which steps send: rank of the kind, whether every neighbour gets a vector of its own,
model vectors that a message counts as, its numbers and bytes, and whether the present step says anything there."""
SILENT, UNSAID, UNMADE = 1, 2, 4
"""What is known of a step before it is made, added up: it is the agent's last; it sends nothing; it is not made at all,
for its agent's budget is spent."""
STEPS, READS, TOTAL, EXACT, COUNTS = range(5)
"""Places in `StepPlan.counts`: steps and what they read, steps of the whole run, and at which of these it has to end
(0: at none)."""
_FIELDS = np.dtype(
    [
        ("agent", np.int64),
        ("phase", np.int64),
        ("tick", np.int64),
        ("reactions", np.int64),
        ("updates", np.int64),
        ("number", np.int64),
        ("first", np.int64),
        ("edge", np.int64),
        ("heard", np.int64),
        ("wrote", np.int64),
        ("now", np.float64),
    ],
    align=True,
)
STEP = np.dtype((np.record, _FIELDS))
"""A step: of whom; which half of an exchange it is (0: none); at which tick of the agent's clock, and after how many
halves at that tick; after how many steps of the agent; which one of all it is; where its reads begin; of a half, over
which edge, which version it has heard, and which one it writes (-1: none); and when.

Records, for fields are read by their names where nothing is compiled, too.
"""


class StepPlan(NamedTuple):
    """Steps in their order, and what they send by what is declared; compiled functions take it as one argument.

    Attributes
    ----------
    counts : (COUNTS,) int64
    steps : (W,) STEP
    reads : (K,) int64
        Of each step, kind after kind and edge after edge: the version that it has heard, -1 for none. Then the
        versions that it writes, port after port.
    news : (K,) bool
        Of versions that were heard, whether the agent's step before knew another one; empty unless `seen` is kept.
    closed : (K,) bool
        Of versions that are written, whether nobody is sent them; empty where all edges are open.
    seen : (kinds E,) int64
        By slot, the order of sending of what the agent's last step knew, -1 for none; empty where no protocol asks.
    period, phase : (ports, n) int64
        An agent sends through a port at its steps k = phase, phase + period, ...; never if the period is 0.
    halves : (n, 2) int64
        At which tick an agent has made its last half of an exchange, and how many it has made at that tick.
    most : (n,) int64
        Steps after which an agent falls silent.
    affordable : (n,) int64
        Steps that its budget allows.
    """

    counts: Any
    steps: Any
    reads: Any
    news: Any
    closed: Any
    seen: Any
    period: Any
    phase: Any
    halves: Any
    most: Any
    affordable: Any


def empty_plan(agents: int, ports: int, steps: int, reads: int, slots: int = 0, *, closes: bool = False) -> StepPlan:
    """A plan with room for so many steps, reads and slots; every step sends, and none is the last.

    Edges may be closed if it ``closes``.
    """
    return StepPlan(
        counts=np.zeros(COUNTS, dtype=np.int64),
        steps=np.zeros(steps, dtype=STEP),
        reads=np.zeros(reads, dtype=np.int64),
        news=np.zeros(reads if slots else 0, dtype=np.bool_),
        closed=np.zeros(reads if closes else 0, dtype=np.bool_),
        seen=np.full(slots, -1),
        period=np.ones((ports, agents), dtype=np.int64),
        phase=np.zeros((ports, agents), dtype=np.int64),
        halves=np.tile(np.array([-1, 0]), (agents, 1)),  # before the first tick, none was made
        most=np.full(agents, np.iinfo(np.int64).max),
        affordable=np.full(agents, np.iinfo(np.int64).max),
    )


@part(_nrt=False)
def is_due(plan: StepPlan, port: int, agent: int, updates: int):  # pragma: no cover - compiled
    """True if an agent sends through a port at its next step."""
    period = plan.period[port, agent]
    return period > 0 and updates % period == plan.phase[port, agent]


@part(_nrt=False)
def begin_step(run: RunTables, plan: StepPlan, agent: int, now: float, kinds: int):  # pragma: no cover - compiled
    """Plan a step of an agent, which reads what it knows of some first kinds; where its reads end."""
    counts = plan.counts
    step, place = plan.steps[counts[STEPS]], counts[READS]
    counts[TOTAL] += 1
    step.agent, step.tick, step.updates, step.now = agent, run.agents.ticks[agent], run.agents.updates[agent], now
    step.number, step.first = counts[TOTAL], place
    step.phase, step.reactions, step.edge, step.heard, step.wrote = 0, 0, -1, -1, -1
    edges, first, last = len(run.heads), run.offsets[agent], run.offsets[agent + 1]
    for kind in range(kinds):
        for edge in range(first, last):
            slot = kind * edges + edge
            row = plan.reads[place] = run.held[slot] if len(run.held) else run.slots.known[slot]
            if len(plan.seen):
                order = run.versions.order[row] if row >= 0 else -1
                plan.news[place], plan.seen[slot] = order != plan.seen[slot], order
            place += 1
    return place


@part(_nrt=False)
def edges_of_row(run: RunTables, agent: int, apart: Any, rank: int):  # pragma: no cover - compiled
    """First and last of an agent's directed edges to which a version goes that a step writes: apart, one for each."""
    first, last = run.offsets[agent], run.offsets[agent + 1]
    return (first + rank, first + rank + 1) if apart else (first, last)


@part(_nrt=False)
def mark_closed(run: RunTables, plan: StepPlan, agent: int, place: int, ports: Any):  # pragma: no cover - compiled
    """Mark from a place on which of the versions that a step writes nobody is sent."""
    degree = run.offsets[agent + 1] - run.offsets[agent]
    for port in range(len(ports)):
        apart = ports[port, ADDRESSED] != 0
        for rank in range(degree if apart else 1):
            begin, end = edges_of_row(run, agent, apart, rank)
            plan.closed[place] = count_open(run, begin, end) == 0
            place += 1


@part(_nrt=False)
def add_step(
    run: RunTables, plan: StepPlan, agent: int, now: float, rows: Any, ports: Any
):  # pragma: no cover - compiled
    """Plan a step of an agent, which reads what it knows and writes into some versions; there must be room."""
    place = begin_step(run, plan, agent, now, kinds_of(run))
    if len(plan.closed):
        mark_closed(run, plan, agent, place, ports)
    for k in range(len(rows)):
        plan.reads[place] = rows[k]
        place += 1
    plan.counts[STEPS] += 1
    plan.counts[READS] = place


@part(_nrt=False)
def add_half(
    run: RunTables, plan: StepPlan, phase: int, agent: int, edge: int, heard: int, wrote: int, now: float, kinds: int
):  # pragma: no cover - compiled
    """Plan half of an exchange over an agent's edge, which reads what it knows of some first kinds."""
    place = begin_step(run, plan, agent, now, kinds)
    step, halves = plan.steps[plan.counts[STEPS]], plan.halves[agent]
    if halves[0] != run.agents.ticks[agent]:
        halves[0], halves[1] = run.agents.ticks[agent], 0
    if phase != REQUESTING:
        halves[1] += 1
    # One that calls at the end of a step that takes time may have answered others since its begin.
    reactions = 0 if phase == REQUESTING else halves[1]
    step.phase, step.reactions, step.edge, step.heard, step.wrote = phase, reactions, edge, heard, wrote
    plan.counts[STEPS] += 1
    plan.counts[READS] = place


@part(_nrt=False)
def fits(plan: StepPlan, reads: int):  # pragma: no cover - compiled
    """True if a step with this number of reads and writes fits into the plan."""
    return plan.counts[STEPS] < len(plan.steps) and plan.counts[READS] + reads <= len(plan.reads)


@part(_nrt=False)
def has_to_end(plan: StepPlan):  # pragma: no cover - compiled
    """True if the run ends with the step that was planned last."""
    return plan.counts[TOTAL] == plan.counts[EXACT]


@compiled(_nrt=False)
def find_levels(plan: StepPlan, degrees: Any, kinds: int, marks: Any, levels: Any):  # pragma: no cover - compiled
    """Find the level of each step: one more than that of the agent's step before and of all whose versions it reads.

    There are (n,) degrees, so many kinds of messages, and zero marks, room for the levels of (n,) agents and of (R,)
    versions; the (W,) levels are filled.
    """
    steps, reads, total = plan.steps, plan.reads, plan.counts[STEPS]
    of_agent, of_row = marks
    for w in range(total):
        agent, place = steps[w].agent, steps[w].first
        heard = place + kinds * degrees[agent]
        end = steps[w + 1].first if w + 1 < total else plan.counts[READS]
        level = of_agent[agent]
        for k in range(place, heard):
            if reads[k] >= 0:
                level = max(level, of_row[reads[k]])
        if steps[w].heard >= 0:
            level = max(level, of_row[steps[w].heard])
        level += 1
        if steps[w].wrote >= 0:
            of_row[steps[w].wrote] = level
        of_agent[agent] = levels[w] = level
        for k in range(heard, end):
            of_row[reads[k]] = level


@compiled(_nrt=False)
def take_rows_back(run: RunTables):  # pragma: no cover - compiled
    """Find the versions that nothing refers to any more, once all steps that read them are made."""
    free = 0
    for row in range(len(run.versions) - 1, -1, -1):
        if run.versions.references[row] == 0:
            run.versions.free[free] = row
            free += 1
    run.counts[FREE_ROWS] = free


@part(_nrt=False)
def charge_news(run: RunTables, pool: Any, agent: int, row: int, width: int):  # pragma: no cover - compiled
    """Charge an agent for a version without noise, and keep it to compare later ones with, unless it is no news."""
    if not is_news(run, pool, agent, row, width):
        return False
    run.agents.charged[agent] += 1
    hold_version(run, run.agents.paid, agent, row)
    return True


@compiled(_nrt=False)
def charge_plain(
    run: RunTables, pool: Any, plan: StepPlan, ports: Any, kinds: int, plain: Any
):  # pragma: no cover - compiled
    """Charge the ``plain`` ones of the planned steps, in their order, for what they have said without noise.

    All messages of a step are one release, which is charged at most once; the same bytes again are free.
    """
    for w in range(plan.counts[STEPS]):
        step = plan.steps[w]
        agent = step.agent
        degree = run.offsets[agent + 1] - run.offsets[agent]
        if not plain[w] or degree == 0:
            continue
        if step.phase:
            if step.wrote >= 0:
                charge_news(run, pool, agent, step.wrote, ports[step.phase - 1, WIDTH])
            continue
        place, due = step.first + kinds * degree, True
        for port in range(len(ports)):
            said = is_due(plan, port, agent, step.updates)
            for _ in range(degree if ports[port, ADDRESSED] else 1):
                row, sent = plan.reads[place], said and (len(plan.closed) == 0 or not plan.closed[place])
                place += 1
                due = due and not (sent and charge_news(run, pool, agent, row, ports[port, WIDTH]))
