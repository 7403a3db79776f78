"""Verdict on a protocol's privacy contract, which `run` checks once and which is stated beside every epsilon.

Passing means that replays found no violation, in small worlds and in one of the scenario's own: a run's task, graph,
parameters and seed, to its end. It holds for that grid point, whatever the seed, and not for others of a sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from ...agents.errors import HushnetError
from ...protocols.base import Protocol, ProtocolParameters
from ..engine.selection import Name
from ..network.setting import Setting
from ..world.watchdog import one_thread
from .engine_checks import check_engines
from .randomness_seen import doubt, seen
from .replay import Broken, Make, Replayed, replay
from .samples_seen import Witness
from .small_worlds import WORLDS, check_replay
from .transcript import TooLarge
from .violation import ContractViolation

Status = Literal["passed", "shipped", "elsewhere", "failed", "unchecked"]

TOGETHER, APART = 1, 6
"""Runs of the own world in which everybody's data are changed, and runs, at most, in which a group's are."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on a protocol's privacy contract."""

    status: Status
    """``shipped`` protocols are replayed by this package's own tests; ``elsewhere`` means that other points of the
    sweep were replayed, and passed."""
    details: str = ""
    """Description of the replay, the failure, or the reason why nothing was checked."""
    warnings: tuple[str, ...] = ()
    """Defects that do not concern privacy."""
    looked_at: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    """`looked_at` and `not_looked_at`: Where it passed, what the replay has examined, and what it has not."""
    unlooked: dict[int, str] = field(default_factory=dict)
    """Agents of the scenario's world about whose data nothing was shown, with the reason: their epsilon is infinite."""
    at: str = ""
    """Grid point and seed of the scenario's world that was replayed."""

    @property
    def text(self) -> str:
        """One line for summary, manifest, notes and report."""
        if self.status == "shipped":
            return "passed (shipped: replayed by hushnet's own tests)"
        if self.status == "elsewhere":
            return f"replayed at {self.at}: not verified here"
        here = f", replayed here ({self.at})" if self.status == "passed" and self.at else ""
        return f"{'not checked' if self.status == 'unchecked' else self.status}: {self.details}{here}"

    @property
    def verified_by(self) -> Literal["construction", "replay"]:
        """Source of a verified epsilon: the construction of a shipped protocol, or the replay."""
        return "construction" if self.status == "shipped" else "replay"

    @property
    def unproved(self) -> str:
        """Reason why no epsilon is verified; empty where it may be."""
        if self.status == "failed":
            return f"the protocol's privacy contract failed: {self.details}"
        if self.status == "unchecked":
            return f"the protocol's privacy contract was not checked: {self.details}"
        if self.status == "elsewhere":
            where = f"{self.at}, not here (--contract-points N replays N points)"
            return f"the protocol's privacy contract was replayed at {where}"
        return ""

    @property
    def evidence(self) -> dict[str, list[str]]:
        """Scope of the replay, stated beside an epsilon: what was examined, and what was not."""
        return {"looked_at": list(self.looked_at), "not_looked_at": list(self.not_looked_at)}

    def as_dict(self) -> dict[str, Any]:
        """The verdict as a mapping for files."""
        return {**_FILED.dump_python(self, mode="json"), "text": self.text}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Verdict:
        """Make a verdict from what `as_dict` gave."""
        return _FILED.validate_python(stored)


_FILED = TypeAdapter(Verdict)

SHIPPED = Verdict(
    "shipped",
    looked_at=("small worlds on several networks, by the package's own tests",),
    not_looked_at=("the own world of this run",),
)


def judged(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    setting: Setting,
    make: Make,
    engine: Name = "event",
) -> Verdict:
    """Replay a protocol in small worlds and in its own, in the form in which the scenario's engine runs its steps."""
    with one_thread(), np.errstate(all="ignore"):
        small, warnings = _small(protocol, parameters, setting.limits.seconds, engine)
        if isinstance(small, str):
            return Verdict("failed", f"in a small world, {small}", warnings)
        try:
            own = replay(make, setting, planted=False, together=TOGETHER, apart=APART)
        except (Broken, TooLarge) as error:
            return Verdict("unchecked", str(error), warnings)
        except ContractViolation as violation:
            return Verdict("failed", str(violation), warnings)
    doubted = doubt(_witnesses(small), own.witnesses)
    if doubted:
        return Verdict("failed", doubted, warnings)
    if own.failure and not own.steps:
        # Two runs that fail alike before anybody has finished a step show nothing.
        return Verdict("unchecked", f"nobody finishes a step: {own.failure}", warnings)
    if not own.looked and not own.exposed:
        return Verdict("unchecked", "no neighbouring data set changes the data of any agent", warnings)
    looked, missed = _parts(small, own, setting.task.ids)
    return Verdict("passed", _said(small, own), warnings, looked, missed, own.unlooked)


Small = tuple[dict[str, Replayed] | str, tuple[str, ...]]
"""What the small worlds came to: a violation's sentence, or what was replayed, and what else went wrong."""
_latest: dict[tuple[object, ...], Small] = {}


def _small(protocol: type[Protocol], parameters: ProtocolParameters, seconds: float, engine: Name) -> Small:
    """Replay a protocol in small worlds, once for all worlds in a row in which it is judged."""
    key = (protocol, parameters.model_dump_json(), seconds, engine)
    if key not in _latest:
        _latest.clear()
        _latest[key] = _replayed(protocol, parameters, seconds, engine)
    return _latest[key]


def _replayed(protocol: type[Protocol], parameters: ProtocolParameters, seconds: float, engine: Name) -> Small:
    try:
        if engine != "event":
            check_engines(protocol, parameters, seconds=seconds)
        return check_replay(protocol, parameters, seconds=seconds, engine=engine), ()
    except Broken as error:
        return {}, (f"in a small world, {error}",)
    except ContractViolation as violation:
        return str(violation), ()
    except HushnetError as error:
        return {}, (f"the contract's small worlds cannot be run: {error}",)


def _witnesses(small: dict[str, Replayed]) -> list[Witness]:
    return [witness for world in small.values() for witness in world.witnesses]


def _said(small: dict[str, Replayed], own: Replayed) -> str:
    worlds = [f"{len(small)} small worlds"] if len(small) == len(WORLDS) else []
    if not own.looked:
        alone = "nobody to protect, for every agent with data sends something without noise"
        return ", ".join([*worlds, "own world", f"{own.steps} steps", alone])
    apart = f" at once and in {own.groups} groups" if own.groups else ""
    held = ", what is assumed public held fixed" if own.held else ""
    everybody = f"data of {len(own.looked)} agents changed{apart}{held} ({own.runs} runs of it)"
    drawn, missed = seen(_witnesses(small), own.witnesses)
    unseen = [f"not judged: {one}" for one in missed]
    return ", ".join([*worlds, "own world", f"{own.steps} steps", everybody, *drawn, *unseen])


def _parts(
    small: dict[str, Replayed], own: Replayed, ids: Sequence[int | str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    looked: list[str] = []
    missed: list[str] = []
    for name in WORLDS:
        if name in small and small[name].looked:
            looked.append(f"small world {name!r}: {small[name].runs} runs, {small[name].steps} steps each")
        else:
            missed.append(f"small world {name!r}")
    looked.append(
        f"own world: {own.runs} runs, {own.steps} steps each, data of {len(own.looked)} agents changed by "
        f"{' and by '.join(own.adjacencies)}"
    )
    drawn, unseen = seen(_witnesses(small), own.witnesses)
    looked, missed = [*looked, *drawn], [*missed, *unseen]
    if own.failure:
        missed.append(f"own world, what comes after {own.failure}")
    missed += [f"data of agent {ids[agent]!r}: {reason}" for agent, reason in own.unlooked.items()]
    return tuple(looked), tuple(missed)
