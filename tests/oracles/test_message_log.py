"""The message logs of both engines are the same table, and say what the frozen engine saw."""

import math

import numpy as np
import pandas as pd
import pytest
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

from . import compare, declared, steps
from .worlds import world

NAMES = ["agent", "other", "kind", "start", "end", "fate", "bytes", "tick"]
QUICK, SLOW = range(60), range(60, 500)


def windows(case, description):
    """All agents and times, and some."""
    rng, agents = np.random.default_rng(case), len(description["ids"])
    few = rng.choice(agents, size=min(agents, int(rng.integers(2, 5))), replace=False).tolist()
    low, high = sorted(rng.uniform(0, 8, 2).tolist())
    return [([*range(agents)], [0.0, 100.0]), (few, [low, high + 0.1])]


def parts(cases):
    """Worlds whose logs differ between the engines."""
    found = []
    for case in cases:
        description = world(compare.SEED, case)
        if len(description["ids"]) < 2:
            continue
        for agents, between in windows(case, description):
            given = declared.declared(description), steps.FORMS[case % 2]
            event, batched = (
                steps.message_log(*given, engine, agents, between) for engine in (EventEngine(), BatchedEngine())
            )
            if not event.equals(batched):
                found.append((case, agents, between))
    return found


def test_the_message_logs_of_both_engines_are_equal():
    assert parts(QUICK) == []


@pytest.mark.slow
def test_the_message_logs_of_both_engines_are_equal_in_all_worlds():
    assert parts(SLOW) == []


def told(rows):
    """All messages that an observer was told of, sorted, with the columns `NAMES`."""
    sent, open_copies = [], {}
    for row in rows:
        if row[0] == "sent":
            _, now, sender, receiver, kind, tick, delay, lost, size, _ = row
            sent.append([sender, receiver, kind, now, math.nan if lost else now + delay, "lost", size, tick])
            if not lost:
                sent[-1][5] = "in flight"
                open_copies.setdefault((sender, receiver, kind, tick, now, now + delay), []).append(sent[-1])
        elif row[0] == "arrived":
            _, now, receiver, sender, kind, tick, sent_at, up, newest = row
            copy = open_copies[sender, receiver, kind, tick, sent_at, now].pop(0)
            copy[5] = "dropped" if not up else "delivered" if newest else "overtaken"
    return pd.DataFrame(sent, columns=NAMES).sort_values(NAMES, ignore_index=True)


@pytest.mark.parametrize("case", [case for case in range(25) if len(world(compare.SEED, case)["ids"]) > 1])
def test_the_message_log_says_what_the_frozen_engine_saw(case):
    description = declared.declared(world(compare.SEED, case))
    wanted = told(declared.run(description))
    log = steps.message_log(description, steps.FORMS[case % 2], BatchedEngine(), *windows(case, description)[0])
    found = log[log["what"] == "message"][NAMES]
    place = {str(name): k for k, name in enumerate(description["ids"])}
    found = found.assign(agent=found["agent"].map(place), other=found["other"].map(place))
    found = found.sort_values(list(found.columns), ignore_index=True)
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
