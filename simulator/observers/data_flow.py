"""Data flow: how many of each agent's releases can have reached an observer through what steps have read.

What an agent sends follows from its own data by releases that it has made until then, and from what its steps have
read. So whoever has heard a message knows at most those releases and what they have carried on: everything else is
post-processing (Dwork, Roth 2014, proposition 2.1). A message sent at a step contains the first releases of an agent,
never a later one without an earlier one, so that a number for every agent says all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .deliveries import AT_START, Deliveries
from .release_record import ReleaseRecord

Counts = NDArray[np.int32]


def releases_heard(deliveries: Deliveries, record: ReleaseRecord, parties: Sequence[NDArray[np.bool_]]) -> list[Counts]:
    """Count the first releases of every agent that can have reached some parties, by the (C,) copies that each heard.

    It is whatever became of the copies. Each party has (n,) counts: zeros where it has heard nothing that may depend on
    an agent's data.
    """
    agents = len(record.everyone)
    hearing = _parties_of(parties)
    known = [np.zeros(agents, dtype=np.int32) for _ in parties]
    state = np.zeros((agents, agents), dtype=np.int32)
    state[np.diag_indices(agents)] = record.at_start
    if deliveries.in_steps:
        _by_steps(deliveries, record, state, hearing, known)
    else:
        _by_arrivals(deliveries, state, hearing, known)
    return known


def _parties_of(parties: Sequence[NDArray[np.bool_]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for party, copies in enumerate(parties):
        for copy in np.flatnonzero(copies).tolist():
            found.setdefault(copy, []).append(party)
    return found


def _by_steps(
    deliveries: Deliveries,
    record: ReleaseRecord,
    state: Counts,
    hearing: dict[int, list[int]],
    known: list[Counts],
) -> None:
    """Follow steps in their order; what a step has sent is let go of once nobody is left who will read or hear it."""
    read, made = deliveries.read_by, deliveries.made_by
    own = record.of_steps(deliveries) + 1 - record.firsts[deliveries.agent]  # releases after each step that draws one
    order = np.argsort(read, kind="stable")
    bounds = np.searchsorted(read[order], np.arange(len(deliveries.agent) + 1))
    wanted = np.flatnonzero(made >= 0)
    left = np.bincount(made[wanted], weights=read[wanted] >= 0, minlength=len(deliveries.agent)).astype(np.int64)
    heard_of: dict[int, set[int]] = {}
    for copy, who in hearing.items():
        heard_of.setdefault(int(made[copy]), set()).update(who)
    starts = state.copy()
    # Whoever hears a start learns that agent's alone.
    for copy, who in hearing.items():
        if made[copy] == AT_START:
            for party in who:
                np.maximum(known[party], starts[deliveries.sender[copy]], out=known[party])
    sent: dict[int, Counts] = {}
    for w, agent in enumerate(deliveries.agent.tolist()):
        mine = state[agent]
        for copy in order[bounds[w] : bounds[w + 1]].tolist():
            maker = int(made[copy])
            np.maximum(mine, starts[deliveries.sender[copy]] if maker == AT_START else sent[maker], out=mine)
            if maker != AT_START:
                left[maker] -= 1
                if not left[maker]:
                    del sent[maker]
        mine[agent] = max(mine[agent], own[w])
        for party in heard_of.get(w, ()):
            np.maximum(known[party], mine, out=known[party])
        if left[w]:
            sent[w] = mine.copy()


def _by_arrivals(deliveries: Deliveries, state: Counts, hearing: dict[int, list[int]], known: list[Counts]) -> None:
    """Follow messages in their order, where an arrival may be answered at once."""
    landed = np.flatnonzero(deliveries.heard)
    _, sent, arrived = deliveries.places
    places = np.concatenate([sent, arrived[landed]])
    copies = np.concatenate([np.arange(len(deliveries.sent)), landed])
    leaving = np.arange(len(places)) < len(deliveries.sent)
    under_way: dict[int, Counts] = {}
    for k in np.argsort(places, kind="stable").tolist():
        copy = int(copies[k])
        if leaving[k]:
            content = state[deliveries.sender[copy]]
            for party in hearing.get(copy, ()):
                np.maximum(known[party], content, out=known[party])
            if deliveries.heard[copy]:
                under_way[copy] = content.copy()
            continue
        mine = state[deliveries.receiver[copy]]
        np.maximum(mine, under_way.pop(copy), out=mine)
