"""Random worlds as plain data: one seeded generator of descriptions.

A description has ``seed``, ``ids``, ``edges``, ``clock``, ``network``, ``availability``, ``schedule``, ``protocol``,
``stop``, ``limits`` and ``record``. The committed logs were made from these very worlds, so what is drawn here for a
seed and a case must stay as it is; new kinds of worlds belong into a generator of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Description = dict[str, Any]


class Chance:
    """Random choices.

    Parameters
    ----------
    seed, case : int
    """

    def __init__(self, seed: int, case: int) -> None:
        self.rng = np.random.default_rng([seed, case])

    def pick(self, *among: Any) -> Any:
        """One of some things."""
        return among[int(self.rng.integers(len(among)))]

    def odds(self, probability: float) -> bool:
        """Whether something happens that has this probability."""
        return bool(self.rng.random() < probability)

    def between(self, low: float, high: float) -> float:
        """A number of an interval, with few digits."""
        return round(float(self.rng.uniform(low, high)), 3)

    def whole(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        return int(self.rng.integers(low, high + 1))


def world(seed: int, case: int) -> Description:
    """The description of one random world."""
    chance = Chance(seed, case)
    family = chance.pick(*["async"] * 6, *["rounds"] * 9, *["trade"] * 7, *["star"] * 2)
    ties, calm = chance.odds(0.45), chance.odds(0.25)
    agents = chance.whole(3, 6) if family == "star" else chance.whole(2, 7)
    ids = _ids(agents, chance)
    described: Description = {
        "seed": int(chance.rng.integers(2**63)),
        "ids": ids,
        "edges": _edges(agents, chance, star=family == "star" or chance.odds(0.1)),
        "clock": _clock(ids, chance, ties=ties, rounds=family == "rounds"),
        "network": {},
        "availability": _availability(ids, chance, ties=ties, calm=calm, family=family),
        "schedule": _schedule(family, chance, ties=ties),
        "protocol": {},
        "limits": {"reactions": chance.pick(5, 15, 60)} if chance.odds(0.2) else {},
        "record": {"every": chance.pick(0.5, 1.0, 2.3)} if chance.odds(0.7) else {"activations": chance.whole(1, 7)},
    }
    described["protocol"] = _protocol(family, described, chance)
    described["network"] = _network(described, chance, ties=ties, calm=calm)
    described["stop"] = _stop(described, chance, calm=calm)
    if family == "rounds" and chance.odds(0.25):
        described["protocol"]["trigger"] = "round"
        if described["schedule"] == {"kind": "rounds"}:
            described["schedule"] = None
    if chance.odds(0.25):
        _corner(family, described, chance, ties=ties)
    return described


def _corner(family: str, described: Description, chance: Chance, *, ties: bool) -> None:
    """Make a world one in which rare things meet: last words that are late, stalls, replies to the gone, joiners."""
    network, options = described["network"], described["protocol"]
    still = chance.odds(0.5) if ties else False
    slow = {"kind": "constant", "value": 2.0} if still else {"kind": "uniform", "low": 0.0, "high": 3.0}
    lossy = {"kind": "bernoulli", "probability": chance.pick(0.1, 0.3, 0.6)}
    if family == "rounds":
        described["availability"] = {"kind": "always", "joins": None, "leaves": None}
        options["silent"] = {"after": chance.whole(1, 5), "words": chance.odds(0.8), "every": chance.pick(2, 3)}
        described["stop"] = {"time": 14.0}
        options["noise"] = None
        if chance.odds(0.7):
            described["schedule"] = {"kind": "rounds", "patience": chance.pick(0.5, 1.0)}
            network["latency"] = {"kind": "constant", "value": 0.0} if ties and chance.odds(0.5) else slow
        else:
            described["schedule"], network["loss"] = {"kind": "rounds", "resend_after": "never"}, lossy
    elif family == "trade":
        window = {"share": 0.6, "between": chance.pick([4.0, 4.0], [1.0, 8.0])}
        described["availability"] = {"kind": "always", "joins": None, "leaves": window}
        described["schedule"] = {"kind": "exchange", "resend_after": 0.5}
        network["latency"], network["loss"], options["unanswered"] = slow, lossy, "repeat"
        described["stop"] = {"time": 14.0}
        if chance.odds(0.5):
            order = [chance.pick(*described["ids"]) for _ in range(chance.whole(2, 6))]
            described["clock"] = {"kind": "recorded", "order": order, "spacing": chance.pick(0.5, 1.0)}
            described["stop"] = {"time": 40.0, "updates": 50}
        options["noise"] = None
    elif family == "async":
        window = {"share": 0.5, "between": chance.pick([4.0, 4.0], [1.0, 8.0])}
        gone = {"share": 0.5, "between": [6.0, 6.0]} if chance.odds(0.5) else None
        described["availability"] = {"kind": "always", "joins": window, "leaves": gone}
        network["start"], network["bandwidth"] = "known", None
        options["kinds"][0]["to"], options["start"], options["silent"] = "mixed", "all", None
        described["stop"] = {"time": 14.0}
        if ties:
            network["latency"] = {"kind": "constant", "value": 1.0}


def _ids(agents: int, chance: Chance) -> list[int | str]:
    kind = chance.pick("ranks", "ranks", "words", "numbers")
    if kind == "ranks":
        return list(range(agents))
    if kind == "words":
        return [f"peer {chr(97 + (7 * i) % 26)}" for i in range(agents)]
    return [1000 - 13 * i for i in range(agents)]


def _edges(agents: int, chance: Chance, *, star: bool) -> list[list[Any]]:
    pairs = [(i, j) for i in range(agents) for j in range(i + 1, agents)]
    density = chance.pick(0.4, 0.7, 1.0)
    kept = [(i, j) for i, j in pairs if (i == 0 if star else chance.odds(density))]
    return [[i, j, chance.between(0.5, 2.0)] for i, j in kept or pairs[:1]]


def _clock(ids: list[Any], chance: Chance, *, ties: bool, rounds: bool) -> dict[str, Any]:
    agents = len(ids)
    if ties:
        if not rounds and chance.odds(0.2):
            order = [ids[chance.whole(0, agents - 1)] for _ in range(chance.whole(10, 40))]
            return {"kind": "recorded", "order": order, "spacing": 0.5}
        period = chance.pick(0.5, 1.0, 1.0, [chance.pick(0.5, 1.0, 2.0) for _ in range(agents)])
        return {"kind": "periodic", "period": period, "jitter": 0.0, "phase": "common"}
    rates: list[Any] = [
        1.0,
        1.0,
        [chance.between(0.3, 2.5) for _ in range(agents)],
        {"kind": "uniform", "low": 0.4, "high": 2.0},
        {"kind": "stragglers", "share": 0.3, "slow": 0.3, "rate": 1.2},
        {"kind": "lognormal", "mean": 1.0, "sigma": 0.6},
    ]
    if chance.odds(0.7):
        return {"kind": "poisson", "rate": rates[chance.whole(0, len(rates) - 1)]}
    period = chance.pick(0.8, [chance.between(0.5, 1.5) for _ in range(agents)])
    return {"kind": "periodic", "period": period, "jitter": chance.pick(0.0, 0.3), "phase": "random"}


def _network(described: Description, chance: Chance, *, ties: bool, calm: bool) -> dict[str, Any]:
    ids, edges = described["ids"], described["edges"]
    step = 0.5 if ties else 0.123
    links = [[ids[a], ids[b], step * chance.whole(0, 4)] for i, j, _ in edges for a, b in ((i, j), (j, i))]
    listed = links if chance.odds(0.5) else links[::2]
    still: list[Any] = [
        {"kind": "constant", "value": 0.0},
        {"kind": "constant", "value": 0.0},
        {"kind": "constant", "value": chance.pick(0.5, 1.0, 2.0)},
        {"kind": "matrix", "links": listed, "default": 0.5 if len(listed) < len(links) else None},
    ]
    random: list[Any] = [
        {"kind": "constant", "value": chance.pick(0.0, 0.3, 1.7)},
        {"kind": "uniform", "low": 0.0, "high": chance.pick(0.4, 1.5)},
        {"kind": "exponential", "mean": chance.pick(0.2, 1.0, 2.5)},
        {"kind": "lognormal", "mean": 0.6, "sigma": chance.pick(0.5, 1.5)},
        {"kind": "gamma", "mean": chance.pick(0.3, 1.0), "shape": chance.pick(0.5, 2.0)},
        {"kind": "matrix", "links": listed, "default": 0.4 if len(listed) < len(links) else None},
    ]
    among = still if ties and chance.odds(0.8) else random
    losses: list[Any] = [
        {"kind": "bernoulli", "probability": 0.0},
        {"kind": "bernoulli", "probability": chance.pick(0.05, 0.3, 0.6)},
        {"kind": "bernoulli", "probability": chance.pick(0.05, 0.3, 0.6)},
        _bursts(chance),
        _bursts(chance),
    ]
    return {
        "latency": among[chance.whole(0, len(among) - 1)],
        "loss": losses[0] if calm else losses[chance.whole(0, len(losses) - 1)],
        "bandwidth": chance.pick(None, None, None, 64.0, 200.0),
        "header_bytes": chance.pick(0, 0, 16),
        "start": chance.pick("known", "own", "zero"),
    }


def _bursts(chance: Chance) -> dict[str, Any]:
    good, bad = chance.pick((0.0, 1.0), (0.05, 0.8))
    means = {"mean_good": chance.pick(1.0, 3.0), "mean_bad": chance.pick(0.5, 2.0)}
    return {"kind": "gilbert_elliott", **means, "loss_good": good, "loss_bad": bad}


def _availability(ids: list[Any], chance: Chance, *, ties: bool, calm: bool, family: str) -> dict[str, Any]:
    around: dict[str, Any] = {"joins": None, "leaves": None}
    if family != "rounds" and not calm and chance.odds(0.8 if family == "trade" else 0.5):
        first = chance.pick([2.0, 2.0], [3.0, 3.0], [0.0, 0.0]) if ties else [0.5, 6.0]
        last = chance.pick([4.0, 4.0], [2.0, 2.0], [6.0, 6.0], [0.0, 0.0]) if ties else [1.0, 9.0]
        around["joins"] = {"share": chance.pick(0.3, 0.6), "between": first} if chance.odds(0.7) else None
        around["leaves"] = {"share": chance.pick(0.3, 0.6), "between": last} if chance.odds(0.6) else None
    if calm or chance.odds(0.5 if family == "trade" else 0.25):
        return {"kind": "always", **around}
    if ties:
        if chance.odds(0.5):
            return {"kind": "diurnal", "period": chance.pick(2.0, 4.0), "online": 0.5, "spread": 0.0, **around}
        return {"kind": "trace", "up": _trace(ids, chance, 0.5), "others": chance.pick("up", "down"), **around}
    kind = chance.pick("on_off", "on_off", "on_off", "diurnal", "trace")
    if kind == "on_off":
        law = {"distribution": chance.pick("exponential", "lognormal"), "sigma": 1.0}
        online = {"online": chance.pick(0.5, 0.7, 0.9, 1.0), "mean_down": chance.pick(0.3, 1.0, 2.5)}
        return {"kind": "on_off", **online, **law, **around}
    if kind == "diurnal":
        return {"kind": "diurnal", "period": 3.0, "online": 0.6, "spread": chance.pick(0.5, 1.0), **around}
    return {"kind": "trace", "up": _trace(ids, chance, 0.37), "others": chance.pick("up", "down"), **around}


def _trace(ids: list[Any], chance: Chance, step: float) -> list[list[Any]]:
    up = []
    for name in ids:
        if chance.odds(0.2):
            continue
        now = chance.whole(0, 2)
        for _ in range(chance.whole(1, 4)):
            end = now + chance.whole(1, 6)
            up.append([name, now * step, end * step])
            now = end + chance.whole(0, 3)
        if chance.odds(0.7):
            up.append([name, (now + 1) * step, 1000.0])
    return up


def _schedule(family: str, chance: Chance, *, ties: bool) -> dict[str, Any] | None:
    wait = chance.pick(0.5, 1.0, 2.0) if ties else chance.between(0.3, 3.0)
    if family == "rounds":
        asked = chance.pick({}, {"resend_after": wait}, {"resend_after": wait}, {"patience": wait}, {"patience": wait})
        return {"kind": "rounds", **(asked if chance.odds(0.85) else {"resend_after": "never"})}
    if family == "trade":
        both = {"kind": "exchange", "resend_after": wait, "timeout": 2 * wait}
        return chance.pick(
            None, {"kind": "exchange", "resend_after": wait}, both, {"kind": "exchange", "timeout": wait}, both
        )
    return chance.pick(None, {"kind": "async"})


def _protocol(family: str, described: Description, chance: Chance) -> dict[str, Any]:
    agents, uneven = len(described["ids"]), chance.odds(0.2)
    patient = "patience" in (described["schedule"] or {})
    options: dict[str, Any] = {
        "width": [3 + chance.whole(0, 2) for _ in range(agents)] if uneven else chance.pick(3, 3, 5),
        "noise": _noise(chance) if chance.odds(0.3) else None,
        "silent": None,
        "explode": None,
    }
    if chance.odds(0.6 if patient else 0.3):
        options["silent"] = {
            "after": chance.pick(0, 1, 2, 4, 6),
            "words": chance.odds(0.5),
            "every": chance.pick(1, 2, 3),
        }
    if chance.odds(0.04):
        options["explode"] = {"agent": 0, "after": 3, "sent": chance.odds(0.5)}
    if family == "trade":
        return {"name": "trade", **options, **_trade(chance)}
    if family == "star":
        return {
            "name": "star",
            **options,
            "answer": chance.whole(1, 3),
            "inbox": chance.pick("latest", "every"),
            "tells": chance.odds(0.5),
        }
    return {"name": "talk", **options, **_talk(chance, rounds=family == "rounds", uneven=uneven)}


def _noise(chance: Chance) -> dict[str, Any]:
    ways = chance.pick(
        ["new"], ["new", "again"], ["new", "relay", "again"], ["new", "twice"], ["bytes", "new"], ["bytes", "again"]
    )
    return {
        "scale": chance.pick(0.5, 2.0),
        "updates": chance.pick(None, 3, 3, 6),
        "epsilon": chance.pick(None, None, 2.0, 6.0),
        "ways": ways,
        "disclose": chance.odds(0.2),
        "start": chance.odds(0.4),
        "reserve": chance.odds(0.8),
    }


def _trade(chance: Chance) -> dict[str, Any]:
    return {
        "edges": chance.odds(0.5),
        "unanswered": chance.pick(None, None, "repeat", "give_up"),
        "partner": chance.pick("uniform", "uniform", "first", "turn"),
        "offers": chance.odds(0.4),
        "refuse": {"after": chance.whole(0, 3), "every": chance.pick(1, 2), "once": chance.odds(0.5)}
        if chance.odds(0.35)
        else None,
        "vectors": chance.pick(1, 3),
        "short": chance.pick(0, 1),
    }


def _talk(chance: Chance, *, rounds: bool, uneven: bool) -> dict[str, Any]:
    kinds = []
    for name in ("model", "aside", "third")[: chance.pick(1, 1, 2, 3)]:
        short = chance.pick(0, 0, 1)
        kinds.append(
            {
                "name": name,
                "short": short,
                "vectors": chance.pick(1, 1, 2, 0),
                "mirrors": short == 0 and not uneven and chance.odds(0.6),
                "to": chance.pick("all", "all", "all", "turn", "mixed", "odd", "never" if len(kinds) else "all"),
                "times": 2 if not rounds and chance.odds(0.15) else 1,
            }
        )
    reacts = not rounds and chance.odds(0.35)
    echo = None
    if reacts and chance.odds(0.8):
        to = chance.pick("sender", "all")
        echo = {"hops": chance.whole(1, 4 if to == "sender" else 2), "to": to, "silent": chance.pick(None, None, 8)}
    return {
        "kinds": kinds,
        "start": chance.pick("all", "all", "first", "nothing"),
        "inbox": chance.pick("latest", "latest", "latest", "every", "every", "per_round"),
        "trigger": "message" if reacts else "wake",
        "echo": echo,
        "edges": chance.odds(0.3),
    }


def _stop(described: Description, chance: Chance, *, calm: bool) -> dict[str, Any]:
    stop: dict[str, Any] = {"time": chance.pick(8.0, 14.0, 20.0)}
    limit, silent = chance.whole(0, 9), described["protocol"]["silent"]
    if limit == 0:
        stop["activations"] = chance.whole(8, 40)
    elif limit in (1, 2, 3):
        stop["vectors"] = chance.whole(10, 120)
    elif limit in (4, 5):
        stop["updates"] = chance.whole(1, 6)
    everybody = bool(silent) and silent["every"] == 1
    if calm and described["protocol"]["name"] != "trade" and (everybody or described["clock"]["kind"] == "recorded"):
        stop = chance.pick({"updates": 50}, {"activations": 5000})
    elif calm and limit == 6 and not silent and described["protocol"]["name"] == "talk":
        stop = chance.pick({"updates": 4}, {"activations": 25})
    return stop
