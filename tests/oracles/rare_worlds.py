"""Random worlds in which things meet that seldom do in `worlds`.

These are rounds that lose nothing, or whose agents are gone for good, changes at one instant, runs that end by what
agents have done, chains of reactions, repeats that overtake, hubs, agents that flicker, and agents without a clock.

A world of `worlds` is kept but for what makes it rare. `world_of` numbers both: cases from `FIRST` on are rare ones.
"""

from __future__ import annotations

from typing import Any

from .worlds import Chance, Description, world

SEED, FIRST, LATER, LAST = 1, 10_000, 10_000, 20_000
"""Seed of the generator, and the numbers of the first rare world and, among these, of the first of later kinds."""


def world_of(case: int) -> Description:
    """The description of a world, rare or not, by its number."""
    return world(SEED, case) if case < FIRST else rare(case - FIRST)


def rare(case: int) -> Description:
    """The description of a rare world: by turns calm rounds, broadcasts, and exchanges with changes at one instant.

    From `LATER` on, by turns rounds whose agents are gone, broadcasts until all have done enough, and reactions; from
    `LAST` on repeated exchanges, a hub, agents that flicker, agents that leave rounds short, runs until all have
    finished, reactions of agents without a clock, and too many reactions at an instant.
    """
    chance = Chance(SEED + 1, case)
    first = (_in_rounds, _calm), (_by_broadcast, _at_one_instant), (_in_pairs, _at_one_instant)
    later = (_in_rounds, _left), (_by_broadcast, _until_done), (_by_reactions, _limited)
    last = (
        (_in_pairs, _repeated),
        (_in_rounds, _around_a_hub),
        (_by_broadcast, _flickering),
        (_in_rounds, _left_short),
        (_by_broadcast, _until_finished),
        (_by_reactions, _without_clocks),
        (_by_reactions, _at_once),
    )
    kinds = first if case < LATER else later if case < LAST else last
    wanted, make = kinds[case % len(kinds)]
    tried = (world(SEED, 100_000 + 100 * case + k) for k in range(100))
    described = next(one for one in tried if wanted(one))
    make(described, chance)
    return described


def _in_rounds(described: Description) -> bool:
    return (described["schedule"] or {}).get("kind") == "rounds" or described["protocol"].get("trigger") == "round"


def _by_broadcast(described: Description) -> bool:
    return described["protocol"]["name"] == "talk" and not _in_rounds(described)


def _in_pairs(described: Description) -> bool:
    return described["protocol"]["name"] == "trade"


def _calm(described: Description, chance: Chance) -> None:
    """Nobody is absent or impatient and nothing is lost, so that rounds follow from clocks and delays alone."""
    described["network"]["loss"] = {"kind": "bernoulli", "probability": 0.0}
    described["availability"] = {"kind": "always", "joins": None, "leaves": None}
    described["schedule"] = {"kind": "rounds"}
    described["protocol"]["noise"] = None
    if chance.odds(0.6):
        described["protocol"]["silent"] = {"after": chance.whole(0, 4), "words": True, "every": chance.pick(1, 2, 3)}
    if chance.odds(0.5):
        described["clock"] = {"kind": "periodic", "period": chance.pick(0.5, 1.0), "jitter": 0.0, "phase": "common"}
        described["network"]["latency"] = {"kind": "constant", "value": chance.pick(0.0, 0.5, 1.0, 2.0)}
    described["stop"] = chance.pick({"time": 14.0}, {"updates": 50}, {"time": 14.0, "updates": 6})


def _at_one_instant(described: Description, chance: Chance) -> None:
    """Agents wake, come, go and are reached at multiples of one half."""
    described["clock"] = {
        "kind": "periodic",
        "period": [chance.pick(0.5, 1.0, 1.5) for _ in described["ids"]],
        "jitter": 0.0,
        "phase": "common",
    }
    described["network"]["latency"] = {"kind": "constant", "value": chance.pick(0.0, 0.5, 1.0, 2.0)}
    described["network"]["bandwidth"] = None
    first, last = chance.pick([1.0, 1.0], [2.0, 2.0], [3.0, 3.0]), chance.pick([4.0, 4.0], [5.0, 5.0], [6.0, 6.0])
    around = {
        "joins": {"share": 0.5, "between": first} if chance.odds(0.6) else None,
        "leaves": {"share": 0.5, "between": last} if chance.odds(0.6) else None,
    }
    kind = chance.pick("always", "diurnal", "trace")
    if kind == "diurnal":
        described["availability"] = {"kind": kind, "period": 2.0, "online": 0.5, "spread": 0.0, **around}
    elif kind == "trace":
        up = [
            [name, 0.5 * start, 0.5 * (start + chance.whole(1, 6))] for name in described["ids"] for start in (1, 8, 15)
        ]
        described["availability"] = {"kind": kind, "up": up, "others": "up", **around}
    else:
        described["availability"] = {"kind": kind, **around}
    if chance.odds(0.5) and _by_broadcast(described):
        described["protocol"]["silent"] = {"after": chance.whole(0, 4), "words": True, "every": chance.pick(1, 2, 3)}
    if _in_pairs(described):
        wait = chance.pick(1.0, 2.0)
        described["schedule"] = {"kind": "exchange", "resend_after": wait, "timeout": 2 * wait}
    described["protocol"]["noise"] = None
    described["stop"] = chance.pick({"time": 10.0}, {"time": 10.0, "updates": 6}, {"updates": 8, "time": 40.0})


def _by_reactions(described: Description) -> bool:
    return described["protocol"].get("echo") is not None


def _left(described: Description, chance: Chance) -> None:
    """Agents are absent, some for good, while others wait for their rounds."""
    still = chance.odds(0.5)
    step = 0.5 if still else 0.37
    up: list[list[Any]] = []
    for name in described["ids"]:
        begin = chance.whole(0, 2) * step
        for _ in range(chance.whole(0, 3)):
            end = begin + chance.whole(2, 8) * step
            up.append([name, begin, end])
            begin = end + chance.whole(1, 4) * step
        if chance.odds(0.6):
            up.append([name, begin, 1000.0])
    described["availability"] = {"kind": "trace", "up": up, "others": "up", "joins": None, "leaves": None}
    wait = chance.pick(0.5, 1.0)
    described["schedule"] = {"kind": "rounds", **chance.pick({}, {"resend_after": wait}, {"patience": wait})}
    described["network"]["latency"] = (
        {"kind": "constant", "value": chance.pick(0.0, 0.5, 2.0)}
        if still
        else {"kind": "uniform", "low": 0.0, "high": 3.0}
    )
    described["network"]["loss"] = {"kind": "bernoulli", "probability": chance.pick(0.0, 0.3, 0.6)}
    described["protocol"]["noise"] = None
    if chance.odds(0.6):
        described["protocol"]["silent"] = {"after": chance.whole(0, 4), "words": True, "every": chance.pick(1, 2, 3)}
    described["stop"] = chance.pick({"time": 14.0}, {"time": 14.0, "vectors": chance.whole(10, 60)})


def _until_done(described: Description, chance: Chance) -> None:
    """A run ends when all agents have made their updates, or can make no more."""
    described["availability"] = {
        "kind": "always",
        "joins": {"share": 0.5, "between": [1.0, 1.0]} if chance.odds(0.3) else None,
        "leaves": {"share": 0.5, "between": chance.pick([3.0, 3.0], [1.0, 6.0])} if chance.odds(0.7) else None,
    }
    agents, ids = len(described["ids"]), described["ids"]
    described["clock"] = chance.pick(
        {
            "kind": "periodic",
            "period": [chance.pick(0.5, 1.0, 1.5) for _ in ids],
            "jitter": 0.0,
            "phase": "common",
        },
        {"kind": "poisson", "rate": [chance.between(0.5, 2.5) for _ in ids]},
        {
            "kind": "recorded",
            "order": [ids[chance.whole(0, agents - 1)] for _ in range(6 * agents)],
            "spacing": 0.5,
        },
    )
    described["protocol"]["noise"] = described["protocol"]["echo"] = None
    described["protocol"]["trigger"] = "wake"
    described["protocol"]["silent"] = (
        {"after": chance.whole(1, 6), "words": True, "every": chance.pick(1, 2)} if chance.odds(0.4) else None
    )
    updates = chance.whole(2, 5)
    described["stop"] = chance.pick({"updates": updates}, {"updates": updates}, {"updates": updates, "time": 9.0})


def _limited(described: Description, chance: Chance) -> None:
    """Reactions follow reactions, until there are too many."""
    described["protocol"]["echo"] = {"hops": chance.whole(2, 4), "to": "all", "silent": None}
    described["protocol"]["noise"] = None
    described["network"]["latency"] = {"kind": "constant", "value": chance.pick(0.0, 0.0, 0.5)}
    described["network"]["loss"] = {"kind": "bernoulli", "probability": chance.pick(0.0, 0.3)}
    described["limits"] = {"reactions": chance.whole(3, 60)}
    described["stop"] = {"time": 6.0}


def _repeated(described: Description, chance: Chance) -> None:
    """Requests and replies are repeated while earlier ones are still under way, and overtake each other."""
    described["availability"] = {"kind": "always", "joins": None, "leaves": None}
    described["schedule"] = {"kind": "exchange", "resend_after": chance.pick(0.3, 0.5)}
    described["network"]["latency"] = {"kind": "uniform", "low": 0.0, "high": 3.0}
    described["network"]["loss"] = {"kind": "bernoulli", "probability": chance.pick(0.0, 0.3)}
    described["protocol"].update(noise=None, explode=None)
    described["stop"] = {"time": 14.0}


def _around_a_hub(described: Description, chance: Chance) -> None:
    """Quick neighbours of a hub fall silent while it waits for slow ones, in rounds that lose nothing."""
    leaves = chance.whole(4, 6)
    described["ids"] = list(range(leaves + 1))
    described["edges"] = [[0, leaf, 1.0] for leaf in range(1, leaves + 1)]
    _calm(described, chance)
    rates = [2.0, *(chance.pick(0.2, 0.3, 5.0) for _ in range(leaves))]
    described["clock"] = {"kind": "poisson", "rate": rates}
    described["network"]["latency"] = {"kind": "constant", "value": chance.pick(0.0, 0.3)}
    described["protocol"].update(width=3, explode=None)
    described["protocol"]["silent"] = {"after": chance.whole(1, 3), "words": True, "every": chance.pick(2, 3)}
    described["stop"] = {"time": 30.0}


def _flickering(described: Description, chance: Chance) -> None:
    """Agents come and go so often that their changes are drawn in several goes."""
    around = {"joins": None, "leaves": None}
    period = chance.pick(0.002, 0.003)
    described["availability"] = {"kind": "diurnal", "period": period, "online": 0.5, "spread": 1.0, **around}
    described["protocol"].update(noise=None, echo=None, trigger="wake")
    described["stop"] = {"time": 6.0}


def _left_short(described: Description, chance: Chance) -> None:
    """`_left`, where a run ends once those that are left have made their updates."""
    _left(described, chance)
    described["schedule"] = {"kind": "rounds", "patience": chance.pick(0.5, 1.0)}
    described["protocol"]["silent"] = None
    described["stop"] = {"updates": chance.whole(2, 5), "time": 60.0}


def _until_finished(described: Description, chance: Chance) -> None:
    """A run ends when no agent can make another step."""
    _until_done(described, chance)
    described["protocol"]["silent"] = {"after": chance.whole(1, 6), "words": True, "every": 1}
    described["stop"] = {"activations": 5000}


def _without_clocks(described: Description, chance: Chance) -> None:
    """Some agents, of those that join late too, never wake, and hear messages that others answer."""
    ids = described["ids"]
    order = [chance.pick(*ids[: max(1, len(ids) // 2)]) for _ in range(20)]
    described["clock"] = {"kind": "recorded", "order": order, "spacing": 0.5}
    window = {"share": 0.6, "between": chance.pick([1.0, 1.0], [0.5, 4.0])}
    described["availability"] = {"kind": "always", "joins": window, "leaves": None}
    described["protocol"]["noise"] = None
    described["network"]["latency"] = {"kind": "constant", "value": chance.pick(0.0, 0.5)}
    described["stop"] = {"time": 9.0}


def _at_once(described: Description, chance: Chance) -> None:
    """`_limited` by the reactions at one instant."""
    _limited(described, chance)
    described["network"]["latency"] = {"kind": "constant", "value": 0.0}
    described["limits"] = {"at_once": chance.whole(2, 20)}
