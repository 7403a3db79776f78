"""Steps and copies of messages of a run, as columns: which step made what was sent, and which step read it first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..language.message_window import FATES
from ..network.churn import churn
from ..rules.copy_paths import copies_among, find, first_reads
from ..storage.files import Frame
from ..tables.allocation import zeros
from ..tables.effects import DEPARTED, FATE_DELIVERED, FATE_OVERTAKEN, WOKE
from ..tables.round_table import durations
from ..tables.run import NOTE
from ..world.world import World

Ranks = NDArray[np.int64]
Times = NDArray[np.float64]
AT_START = -1
"""In place of a step: what was sent at an agent's start."""
NOBODY = -1
"""In place of a step: no step has read it."""
STEPS, ARRIVES = 0.75, 0.5
"""Where an event stands among those of its instant, beside the order of a message: steps after the last message that
was sent before them, arrivals after their own departure."""


@dataclass(frozen=True)
class Deliveries:
    """Steps and copies of messages with content, in order of what happened."""

    in_steps: bool
    """Whether messages leave in steps of their sender's clock or rounds, so that what is read is known; otherwise
    (exchanges in pairs, reactions) every arrival counts as read at once."""
    agent: Ranks
    tick: Ranks
    number: Ranks
    """`agent`, `tick` and `number`: (W,) int64: Of each step: whose, at which tick of its clock, and which of the
    agent's steps it is, from 0."""
    step_time: Times
    read_time: Times
    """`step_time` and `read_time`: (W,) float64: When it ends and sends, and when it begins and reads, which is earlier
    where steps take time."""
    step_order: Ranks
    read_order: Ranks
    """`step_order` and `read_order`: (W,) int64: The order of the last message that was sent before either."""
    sender: Ranks
    receiver: Ranks
    slot: Ranks
    kind: Ranks
    sent_tick: Ranks
    order: Ranks
    """`sender`, `receiver`, `slot`, `kind`, `sent_tick` and `order`: (C,) int64: Of each copy; the slot is the
    receiver's directed edge to the sender, the kind a rank."""
    sent: Times
    arrived: Times
    """`sent` and `arrived`: (C,) float64: Times; infinite for what never arrived."""
    fate: Ranks
    """(C,) int64: Rank among `FATES`."""
    made_by: Ranks
    read_by: Ranks
    """`made_by` and `read_by`: (C,) int64: The step that sent it (`AT_START` for a start), and the first one that read
    it (`NOBODY` for none)."""

    @property
    def heard(self) -> NDArray[np.bool_]:
        """(C,) which copies reached their receiver while it was up."""
        return self.fate <= FATE_OVERTAKEN

    @cached_property
    def places(self) -> tuple[Ranks, Ranks, Ranks]:
        """Places among all events of (W,) reading steps, (C,) departures and (C,) arrivals, -1 for what never arrived.

        Events are in order of time; at one instant, by the order of messages.
        """
        steps, count = len(self.agent), len(self.sent)
        instants = np.concatenate([self.step_time, self.read_time, self.sent, self.arrived])
        arrives = np.where(self.order < 0, self.order, self.order + ARRIVES)
        ranks = np.concatenate([self.step_order + STEPS, self.read_order + STEPS, self.order, arrives])
        places = np.empty(len(instants), dtype=np.int64)
        places[np.lexsort((ranks, instants))] = np.arange(len(instants))
        _, read, sent, arrived = np.split(places, np.cumsum([steps, steps, count]))
        return read, sent, np.where(np.isfinite(self.arrived), arrived, -1)

    def table(self, names: pd.CategoricalDtype, kinds: list[str], releases: Ranks) -> Frame:
        """Return the copies as a table, by names of agents and kinds of messages; 40 bytes a row.

        Columns are ``order``, ``sender``, ``receiver``, ``step`` (the sender's, from 0; -1 for its start), ``kind``,
        ``release`` (drawn by that step, of the (W,) given; -1 for post-processing), ``sent``, ``arrived`` (NaN for what
        did not arrive), ``fate`` and ``read`` (the receiver's step that read it first; -1 for none).
        """
        made, read = self.made_by, self.read_by
        numbers = np.append(self.number, -1).astype(np.int32)  # -1 stands for no step
        return pd.DataFrame(
            {
                "order": self.order.astype(np.int32),
                "sender": pd.Categorical.from_codes(self.sender, dtype=names),
                "receiver": pd.Categorical.from_codes(self.receiver, dtype=names),
                "step": numbers[made],
                "kind": pd.Categorical.from_codes(self.kind, kinds),
                "release": np.append(releases, -1).astype(np.int32)[made],
                "sent": self.sent,
                "arrived": np.where(np.isfinite(self.arrived), self.arrived, math.nan),
                "fate": pd.Categorical.from_codes(self.fate, FATES),
                "read": numbers[read],
            },
            copy=False,
        )


def deliveries_of(world: World) -> Deliveries:
    """Return the steps and copies of a run so far, at a record instant or its end, all of which is noted."""
    notes, graph = world.transport.notes.kept(), world.setting.graph
    steps = notes.take(np.flatnonzero(notes.what == WOKE))
    agent, tick = steps.place.astype(np.int64), steps.tick.astype(np.int64)
    content = np.array([not kind.public for kind in world.layout.messages.values()], dtype=bool)
    told = _told(world, agent, steps.time)
    (slot, kind, sent_tick, order, fate), (sent, arrived) = copies_among(told, notes, content)
    sender, starts = graph.heads[slot], np.searchsorted(order, 0)
    of_told = _steps_before(agent, steps.time, sender[:starts], sent[:starts])
    of_sent = find(agent, tick, graph.agents, sender[starts:], sent_tick[starts:])
    in_steps = world.sessions is None and world.traits.trigger != "message"
    assert not in_steps or (of_sent >= 0).all(), "a message was sent by no step"
    found = Deliveries(
        in_steps=in_steps,
        agent=agent,
        tick=tick,
        number=_numbers(agent, graph.agents),
        step_time=steps.time.copy(),
        read_time=steps.time - steps.delay,
        step_order=steps.order.copy(),
        read_order=np.where(steps.delay > 0, steps.bytes, steps.order),
        sender=sender,
        receiver=graph.tails[slot],
        slot=slot,
        kind=kind,
        sent_tick=sent_tick,
        order=order,
        sent=sent,
        arrived=arrived,
        fate=fate,
        made_by=np.concatenate([of_told, of_sent]),
        read_by=np.full(len(slot), NOBODY),
    )
    found.read_by[:] = _reads(world, found)
    return found


def _told(world: World, agent: Ranks, at: Times) -> Any:
    """Copies that are reliable, like notes: starts at time 0, and what an agent that joins and its neighbours tell.

    Who has stepped by then, see the agents and times of steps, tells its last message, others what a start sends.
    """
    graph = world.setting.graph
    first = np.full(graph.agents, math.inf)
    np.minimum.at(first, agent, at)
    joins, leaves = (np.array(one) for one in churn(world.setting, world.numbers.tolist())[:2])
    time = np.maximum(joins[graph.tails], joins[graph.heads])
    there = (
        graph.opened[graph.reverse] & (time <= world.now) & (time < leaves[graph.tails]) & (time < leaves[graph.heads])
    )
    there &= world.setting.network.start == "known" and bool(world.traffic.start_vectors)
    begun = np.array([kind in world.transport.start_kinds for kind in world.layout.messages], dtype=bool)
    slots, kinds = np.nonzero(there[:, None] & (begun | (first[graph.heads] < time)[:, None]))
    told: Any = zeros(len(slots), NOTE)
    told.place, told.kind, told.time, told.arrived = slots, kinds, time[slots], time[slots]
    told.what, told.order, told.tick, told.fate = DEPARTED, -1, -1, FATE_DELIVERED
    return told


def _numbers(agent: Ranks, agents: int) -> Ranks:
    """(W,) which of its agent's steps each is, from 0."""
    order = np.argsort(agent, kind="stable")
    firsts = np.concatenate([[0], np.cumsum(np.bincount(agent, minlength=agents))])[:-1]
    numbers = np.empty(len(agent), dtype=np.int64)
    numbers[order] = np.arange(len(agent)) - firsts[agent[order]]
    return numbers


def _steps_before(agent: Ranks, at: Times, whose: Ranks, when: Times) -> Ranks:
    """Last step of an agent before a time, for each of some; `AT_START` where there is none."""
    found = np.full(len(whose), AT_START)
    for one in np.unique(whose[when > 0]).tolist():
        own, asked = np.flatnonzero(agent == one), np.flatnonzero((whose == one) & (when > 0))
        last = np.searchsorted(at[own], when[asked]) - 1
        found[asked] = np.where(last >= 0, own[np.maximum(last, 0)], AT_START) if len(own) else AT_START
    return found


def _reads(world: World, all_of: Deliveries) -> Ranks:
    """(C,) step that reads each copy first."""
    if world.in_rounds is None:
        return _reads_of_newest(world, all_of)
    if world.in_rounds.patience is None:
        read = find(all_of.agent, all_of.tick, len(world.started), all_of.receiver, all_of.sent_tick + 1)
        useful = all_of.fate == FATE_DELIVERED
        return np.where(useful, read, NOBODY)
    silent = world.transport.tables.agents.silent != 0
    _, patience = durations(world.setting, world.layout, world.network, world.in_rounds)
    return _reads_with_patience(all_of, patience, world.setting.graph, silent)


def _reads_of_newest(world: World, all_of: Deliveries) -> Ranks:
    """(C,) step that reads each copy, where an agent has the newest of each neighbour, or every one until it steps."""
    graph, kinds = world.setting.graph, len(world.layout.messages)
    every = world.traits.inbox == "every" or not all_of.in_steps
    return first_reads(
        all_of.slot * kinds + all_of.kind,
        all_of.receiver,
        all_of.order,
        all_of.arrived,
        all_of.heard if every else all_of.fate == FATE_DELIVERED,
        0 if every else kinds * len(graph.heads),
        all_of.agent,
        all_of.read_time,
        all_of.read_order,
        graph.agents,
    )


@dataclass(frozen=True)
class _Round:
    """Round of a neighbour that is held as a whole: the copies, and when the last of them arrived.

    What arrives at the instant of its sending comes after the end of a patience at that instant, others before it.
    """

    copies: Ranks
    place: int
    time: float
    at_once: bool


def _reads_with_patience(all_of: Deliveries, patience: float, graph: Any, silent: NDArray[np.bool_]) -> Ranks:
    """(C,) step that reads each copy, where agents go on with the newest round that is whole after some patience.

    A round that begins in time shows exactly the neighbours' round before it, another one the newest that is there. The
    last round of an agent that has fallen silent, as (n,) ``silent`` says, stands for all later ones.
    """
    held, newest = _held_rounds(all_of, len(graph.heads))
    ended = silent[graph.heads].tolist()
    last = [number if end else math.inf for number, end in zip(newest, ended, strict=True)]
    places, _, _ = all_of.places
    read, shown = np.full(len(all_of.sent), NOBODY), [-1] * len(held)  # round 0 are starts
    before = np.zeros(graph.agents)

    def is_before(kept: _Round, due: float) -> bool:
        return kept.time < due or (kept.time == due and not kept.at_once)

    def is_in_time(slot: int, number: int, due: float) -> bool:
        known = max(shown[slot], 0)
        after = number > last[slot] and (last[slot] <= known or last[slot] in held[slot])
        return number <= known or after or (number in held[slot] and is_before(held[slot][number], due))

    for w, agent in enumerate(all_of.agent.tolist()):
        number, edges, due = int(all_of.tick[w]), graph.edges_of(agent), float(before[agent]) + patience
        in_time = all(is_in_time(slot, number, due) for slot in range(edges.start, edges.stop))
        for slot in range(edges.start, edges.stop):
            there = [one for one, kept in held[slot].items() if kept.place < places[w]]
            show = max((one for one in there if not in_time or one <= number), default=-1)
            if show > shown[slot]:
                read[held[slot][show].copies], shown[slot] = w, show
                held[slot] = {one: kept for one, kept in held[slot].items() if one > show}
        before[agent] = all_of.step_time[w]
    return read


def _held_rounds(all_of: Deliveries, slots: int) -> tuple[list[dict[int, _Round]], list[int]]:
    """Rounds that are held over each directed edge, and the last one that was sent."""
    sent: list[dict[int, list[int]]] = [{} for _ in range(slots)]
    for copy, (slot, tick) in enumerate(zip(all_of.slot.tolist(), all_of.sent_tick.tolist(), strict=True)):
        sent[slot].setdefault(tick + 1, []).append(copy)
    held: list[dict[int, _Round]] = [{} for _ in range(slots)]
    _, _, places = all_of.places
    for slot, rounds in enumerate(sent):
        for number, copies in rounds.items():
            taken = np.array([copy for copy in copies if all_of.fate[copy] == FATE_DELIVERED], dtype=np.int64)
            if len(taken) and len(np.unique(all_of.kind[taken])) == len(np.unique(all_of.kind[copies])):
                last = taken[np.argmax(places[taken])]
                time, at_once = float(all_of.arrived[last]), bool(all_of.sent[last] == all_of.arrived[last])
                held[slot][number] = _Round(taken, int(places[last]), time, at_once)
    return held, [max(rounds, default=0) for rounds in sent]
