"""Random worlds in which things meet that seldom do in `worlds`: rounds that lose nothing, and changes at one instant.

A world of `worlds` is kept but for what makes it rare. `world_of` numbers both: cases from `FIRST` on are rare ones.
"""

from __future__ import annotations

from .worlds import Chance, Description, world

SEED, FIRST = 1, 10_000


def world_of(case: int) -> Description:
    """The description of a world, rare or not, by its number."""
    return world(SEED, case) if case < FIRST else rare(case - FIRST)


def rare(case: int) -> Description:
    """The description of a rare world: by turns calm rounds, broadcasts, and exchanges with changes at one instant."""
    chance = Chance(SEED + 1, case)
    wanted, make = ((_in_rounds, _calm), (_by_broadcast, _at_one_instant), (_in_pairs, _at_one_instant))[case % 3]
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
