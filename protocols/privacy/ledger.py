"""Ledger of the releases of all agents, which refuses those that an agent's budget does not allow.

The ledger counts charges; it composes nothing while the event loop runs. Budget is *reserved* before noise is drawn and
*committed* at the first send, because whoever listens on the wire receives even a lost message. Charging is a filter
with fixed noise (Rogers, Roth, Ullman, Vadhan 2016): a release that would exceed the budget is refused before it
happens.
"""

# pandas comes without types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .accounting import Charge, Composition, evaluate
from .budget import Budget
from .mechanisms import Release, mechanism_of
from .mechanisms.uses import Uses
from .meter import Meter

if TYPE_CHECKING:
    import pandas as pd

UNLIMITED = int(np.iinfo(np.int64).max)
"""More releases than anybody makes."""
COUNTED = 10**6
"""Releases that are counted one by one to see how many a budget allows; one that allows so many counts as unlimited."""

WITHOUT_SAMPLING: str = Charge._field_defaults["adjacency"]
"""The adjacency of charges whose cost does not depend on it."""

Which = Literal["claimed", "basic_composition", "advanced_composition", "gaussian", "verified"]

Entry = tuple[Charge, str | None]
"""What is counted: a charge, and where the sensitivity comes from."""
Kinds = tuple[tuple[str, str, str], ...]
"""Unit, adjacency, and why nothing is verified, of all that an agent has released: each once, the first one first."""

COLUMNS = [
    "agent",
    "mechanism",
    "multiplier",
    "claimed_multiplier",
    "claimed_epsilon",
    "claimed_delta",
    "sampling",
    "dimension",
    "count",
    "sensitivity_source",
]


class Ledger:
    """Charges of all agents, counted per agent.

    Parameters
    ----------
    agents : int
        Number of agents, ``>= 1``.
    budget : Budget, optional
        What each agent may spend on its claimed parameters; unlimited by default. ``by: verified`` is enforced through
        ``updates``; without it, by the exact curve if all releases are Gaussian and else by the three-way minimum,
        which never overspends.
    updates : int, optional
        Most charged releases that an agent may make, ``>= 1``: the length of its plan.
    claimed_by : {"basic_composition", "advanced_composition", "gaussian", "verified"}
        How `epsilon` composes the claimed parameters.
    assumed_public : tuple of str
        Inputs computed from private data but treated as public.
    strict : bool
        Whether such inputs make every verified epsilon infinite.
    unproved : str
        Why nothing that the protocol says about its releases can be relied on, which makes every verified epsilon
        infinite; empty if nothing speaks against it.
    unlooked : mapping of int to str
        Agents about whom alone nothing was shown, and why, which makes their verified epsilon infinite.

    Attributes
    ----------
    settle : callable or None
        Charges what an engine has still to charge; called before anything is read.
    journal : list of Release or None
        Releases in the order in which they were charged, where somebody asks for it before the run.
    """

    settle: Callable[[], None] | None = None
    journal: list[Release] | None = None

    def __init__(
        self,
        agents: int,
        *,
        budget: Budget | None = None,
        updates: int | None = None,
        claimed_by: Composition = "advanced_composition",
        assumed_public: tuple[str, ...] = (),
        strict: bool = False,
        unproved: str = "",
        unlooked: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self.agents = agents
        self.unproved = unproved
        self.unlooked = {agent: reason for agent, reason in unlooked.items() if agent < agents}
        self.assumed_public = assumed_public
        self.strict = strict
        self._claimed_by: Composition = claimed_by
        self._updates = math.inf if updates is None else updates
        counted_in_advance = budget is None or (budget.by == "verified" and updates is not None)
        self._meters = None if budget is None or counted_in_advance else [Meter(budget) for _ in range(agents)]
        self._budgeted = budget is not None
        self._limited = self._budgeted or self._updates < math.inf
        self._counts: list[dict[Entry, int]] = [{} for _ in range(agents)]
        self._kinds: list[Kinds] = [()] * agents
        self._different: dict[Kinds, Kinds] = {}  # each is held once for all agents
        self._totals = [0] * agents
        self._reserved = [0] * agents
        self._pending: dict[Release, Charge] = {}
        self._committed: weakref.WeakKeyDictionary[Release, int] = weakref.WeakKeyDictionary()
        self._sent: dict[tuple[int, str, str], bytes] = {}
        self._free: weakref.WeakKeyDictionary[Release, bytes] = weakref.WeakKeyDictionary()
        self._uses = Uses()
        self._epsilons: dict[tuple[Which, float], tuple[list[int], NDArray[np.float64]]] = {}

    def reserve(self, release: Release) -> bool:
        """Set budget aside for a release that is about to be made; call it before noise is drawn.

        Returns False if the release would exceed its agent's budget: it must not be made. A reservation stands until
        the release is committed or cancelled; public, reserved and committed releases ask for nothing.
        """
        if not self._limited or release.free or release in self._pending or release in self._committed:
            return True
        agent = release.agent
        if self._totals[agent] + self._reserved[agent] >= self._updates:
            return False
        charge = charge_of(release)
        if self._budgeted and math.isinf(charge.claimed_epsilon):
            return False
        if self._meters is not None and not self._meters[agent].take(charge):
            return False
        self._reserved[agent] += 1
        self._pending[release] = charge
        return True

    def holds(self, release: Release) -> bool:
        """True if a release was reserved or charged, so that it needs no further budget."""
        return release in self._pending or release in self._committed

    def commit(self, release: Release, vector: NDArray[np.float64] | None = None) -> bool:
        """Charge a release at its first send, and return whether it was charged; it is even if it was never reserved.

        Sending a committed release again, in whatever form, is post-processing and free; noise that was drawn for it
        more than once is charged for every draw. Unless noise was drawn for them, the same bytes of a (p,) vector as
        the agent's last charged one of this mechanism and unit are free; the release then still has to be paid for if
        other bytes follow under it.
        """
        if release.free:
            return False
        committed = self._committed.get(release, 0)
        owed = max(1, release.draws) - committed
        if owed <= 0:
            return False
        agent = release.agent
        if vector is not None:
            key = (agent, release.mechanism, release.unit)
            digest = blake2b(vector.tobytes(), digest_size=16).digest()
            again = digest == self._sent.get(key) or (bool(self._free) and digest == self._free.get(release))
            if again and not release.draws:
                self.cancel(release)
                self._free[release] = digest
                return False
            self._sent[key] = digest
        charge, unreserved = self._pending.pop(release, None), owed
        if charge is None:
            charge = charge_of(release)
        else:
            self._reserved[agent] -= 1
            unreserved -= 1
        if self._meters is not None and unreserved:
            self._meters[agent].add(charge, unreserved)
        counts = self._counts[agent]
        entry = _entry(charge, release.sensitivity_source)
        self._note(release)
        if release.noisy:
            self._uses.note(release, 0 if vector is None else vector.shape[-1])
        counts[entry] = counts.get(entry, 0) + owed
        self._totals[agent] += owed
        if self.journal is not None:
            self.journal += [release] * owed
        self._committed[release] = committed + owed
        return True

    def add(self, release: Release, times: int) -> None:
        """Charge several releases like this one, which planned steps have sent without reserving them."""
        counts, entry = self._counts[release.agent], _entry(charge_of(release), release.sensitivity_source)
        self._note(release)
        if release.noisy:
            self._uses.note(release)
        counts[entry] = counts.get(entry, 0) + times
        self._totals[release.agent] += times

    @property
    def limited(self) -> bool:
        """True if a release may be refused, because updates or budget are limited."""
        return self._limited

    def affordable(self, agent: int, charges: Sequence[Charge], known: dict[Any, int]) -> int:
        """Number of releases, `UNLIMITED` at most, that an agent could still reserve, with these charges in turn.

        The last one is repeated. Results for agents with the same charges and the same state are known, and this one is
        added.
        """
        spent = None if self._meters is None else self._meters[agent].state
        key = (tuple(charges), self._totals[agent] + self._reserved[agent], spent)
        if key not in known:
            known[key] = self._affordable(agent, charges)
        return known[key]

    def _affordable(self, agent: int, charges: Sequence[Charge]) -> int:
        room = min(self._updates - self._totals[agent] - self._reserved[agent], UNLIMITED)
        meter = None if self._meters is None else copy(self._meters[agent])
        for count in range(int(min(room, max(len(charges), COUNTED if meter else 0)))):
            charge = charges[min(count, len(charges) - 1)]
            if (self._budgeted and math.isinf(charge.claimed_epsilon)) or (meter and not meter.take(charge)):
                return count
        return int(max(room, 0))

    def cancel(self, release: Release) -> None:
        """Give back what was reserved for a release that is not going to be sent; without effect otherwise."""
        charge = self._pending.pop(release, None)
        if charge is None:
            return
        self._reserved[release.agent] -= 1
        if self._meters is not None:
            self._meters[release.agent].add(charge, -1)

    def _note(self, release: Release) -> None:
        """Remember what a release is about, and why nothing can be verified about it if that is so."""
        reason = release.reason if release.multiplier == 0 else ""
        kind, kinds = (release.unit, release.adjacency, reason), self._kinds[release.agent]
        if kind not in kinds:
            kinds = (*kinds, kind)
            self._kinds[release.agent] = self._different.setdefault(kinds, kinds)

    def units(self, agents: Iterable[int]) -> tuple[str, ...]:
        """Units that some agents' releases protect (``record``, ``party``), each once."""
        return _distinct(unit for unit, _, _ in self._kinds_of(agents))

    def adjacencies(self, agents: Iterable[int]) -> tuple[str, ...]:
        """Adjacencies of data sets that some agents' releases hold for, each once."""
        return _distinct(adjacency for _, adjacency, _ in self._kinds_of(agents))

    def unverified(self, agents: Iterable[int]) -> tuple[str, ...]:
        """Reasons why some agents' verified epsilon is infinite; empty if there are none."""
        public = self.strict and self.assumed_public
        inputs = [f"strict, and treated as public: {', '.join(self.assumed_public)}"] if public else []
        agents = list(agents)
        self._settled()
        names = sorted({charge.mechanism for agent in agents for charge, _ in self._counts[agent]})
        doubts = [self._uses.doubt(name) for name in names]
        missed = [f"nothing was shown about its data: {self.unlooked[a]}" for a in agents if a in self.unlooked]
        reasons = (reason for _, _, reason in self._kinds_of(agents))
        return _distinct([self.unproved, *inputs, *doubts, *reasons, *missed])

    def _kinds_of(self, agents: Iterable[int]) -> list[tuple[str, str, str]]:
        self._settled()
        return [kind for agent in agents for kind in self._kinds[agent]]

    def _settled(self) -> None:
        if self.settle is not None:
            self.settle()

    @property
    def _refuses(self) -> bool:
        """True if nothing is verified, because inputs are treated as public or the protocol's releases are unproved."""
        return bool(self.unproved or (self.strict and self.assumed_public))

    def releases(self, agent: int) -> int:
        """Number of releases that an agent was charged for."""
        self._settled()
        return self._totals[agent]

    def histogram(self, agent: int) -> Counter[Charge]:
        """Count how often an agent was charged each charge."""
        self._settled()
        return self._histogram(agent)

    def _histogram(self, agent: int) -> Counter[Charge]:
        counts: Counter[Charge] = Counter()
        for (charge, _), count in self._counts[agent].items():
            counts[charge] += count
        return counts

    def epsilon(self, which: Which, delta: float) -> NDArray[np.float64]:
        """(n,) epsilon of every agent at ``delta`` in [0, 1), in [0, inf].

        ``claimed`` composes the claimed parameters, the others what can be proved; ``verified`` is the smallest of
        those. Each distinct histogram is composed once.
        """
        if which not in get_args(Which):
            raise ValueError(f"epsilon is one of {', '.join(get_args(Which))}, not {which}.")
        self._settled()
        if which != "claimed" and self._refuses:
            return np.full(self.agents, math.inf)
        seen, values = self._epsilons.get((which, delta), ([0] * self.agents, np.zeros(self.agents)))
        known: dict[tuple[tuple[Charge, int], ...], float] = {}
        for agent, total in enumerate(self._totals):
            if total == seen[agent]:
                continue
            histogram = self._histogram(agent)
            key = tuple(sorted(histogram.items()))
            if key not in known:
                known[key] = evaluate(which, histogram, delta, self._claimed_by)
            values[agent] = known[key]
        self._epsilons[which, delta] = (self._totals.copy(), values)
        values = values.copy()
        if which != "claimed":
            values[list(self.unlooked)] = math.inf
            doubted = self._uses.doubted()
            for agent, counts in enumerate(self._counts if doubted else ()):
                if any(charge.mechanism in doubted for charge, _ in counts):
                    values[agent] = math.inf
        return values

    def verified(self, delta: float) -> NDArray[np.float64]:
        """The (n,) smallest epsilons that can be proved; inf where nothing can."""
        return self.epsilon("verified", delta)

    def to_frame(self) -> pd.DataFrame:
        """One row per agent and charge."""
        import pandas as pd

        self._settled()
        rows: list[dict[str, Any]] = []
        for agent, counts in enumerate(self._counts):
            for (charge, source), count in sorted(counts.items(), key=lambda item: (item[0][0], item[0][1] or "")):
                rows.append({**charge._asdict(), "agent": agent, "count": count, "sensitivity_source": source})
        return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def charge_of(release: Release) -> Charge:
    """The part of a release that its cost depends on."""
    return _charge(
        release.mechanism,
        release.multiplier,
        release.sampling,
        release.claimed_multiplier,
        release.claimed_epsilon,
        release.claimed_delta,
        release.adjacency if release.sampling < 1 else WITHOUT_SAMPLING,
        release.dimension if mechanism_of(release.mechanism).per_dimension else 0,
    )


@lru_cache(maxsize=2**12)
def _charge(*fields: Any) -> Charge:
    """A charge, made and checked once for all releases that cost the same."""
    return Charge(*fields)


@lru_cache(maxsize=2**12)
def _entry(charge: Charge, source: str | None) -> Entry:
    """Return the entry that a charge is counted under, one object for all agents."""
    return charge, source


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(words) if word)
