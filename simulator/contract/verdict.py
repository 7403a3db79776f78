"""What the privacy contract of a protocol came to: done once by `run`, and said beside every epsilon.

Passing means that a replay found nothing in small worlds and in one of the scenario's own: a run's task, graph,
parameters and seed, to its end. It stands for that grid point, whatever the seed, and not for others of a sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from ...agents.errors import HushnetError
from ...protocols.base import Protocol, ProtocolParameters
from ..engine.selection import Name
from ..network.setting import Setting
from .replay import Broken, Make, Replayed, replay
from .small_worlds import WORLDS, check_replay
from .transcript import TooLarge
from .violation import ContractViolation

Status = Literal["passed", "shipped", "elsewhere", "failed", "unchecked"]

TOGETHER, ALONE = 2, 5
"""Runs of the own world in which everybody's data are changed, and agents at least whose data are changed alone."""


@dataclass(frozen=True)
class Verdict:
    """What is known about a protocol's privacy contract.

    Parameters
    ----------
    status : {"passed", "shipped", "elsewhere", "failed", "unchecked"}
        ``shipped`` protocols are replayed by this package's own tests; ``elsewhere`` means that other points of the
        sweep were replayed, and passed.
    details : str
        What was replayed, what failed, or why nothing was checked.
    warnings : tuple of str
        What else does not work, and is no matter of privacy.
    at : str
        Which of the scenario's own worlds was replayed: what is swept, and the seed.
    """

    status: Status
    details: str = ""
    warnings: tuple[str, ...] = ()
    at: str = ""

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
        """How an epsilon is verified where it is: by what a shipped protocol is made of, or by the replay."""
        return "construction" if self.status == "shipped" else "replay"

    @property
    def unproved(self) -> str:
        """Why no epsilon is verified; empty where it may be."""
        if self.status == "failed":
            return f"the protocol's privacy contract failed: {self.details}"
        if self.status == "unchecked":
            return f"the protocol's privacy contract was not checked: {self.details}"
        if self.status == "elsewhere":
            return f"the protocol's privacy contract was replayed at {self.at}, not here (--proofs N replays N points)"
        return ""

    def as_dict(self) -> dict[str, Any]:
        """The verdict as a mapping for files."""
        return {**asdict(self), "warnings": list(self.warnings), "text": self.text}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Verdict:
        """Make a verdict from what `as_dict` gave."""
        return cls(stored["status"], stored["details"], tuple(stored["warnings"]), stored.get("at", ""))


SHIPPED = Verdict("shipped")


def judged(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    setting: Setting,
    make: Make,
    engine: Name = "event",
) -> Verdict:
    """Replay a protocol in small worlds and in its own, in the form in which the scenario runs its steps.

    Parameters
    ----------
    protocol : type of Protocol
    parameters : ProtocolParameters
    setting : Setting
        Of the own world.
    make : callable
        Makes it.
    engine : {"auto", "event", "batched"}
        That the scenario asks for.
    """
    with threadpool_limits(1), np.errstate(all="ignore"):
        small, warnings = _small(
            lambda: check_replay(protocol, parameters, seconds=setting.limits.seconds, engine=engine)
        )
        if isinstance(small, str):
            return Verdict("failed", f"in a small world, {small}", warnings)
        try:
            own = replay(make, setting, planted=False, together=TOGETHER, alone=ALONE)
        except (Broken, TooLarge) as error:
            return Verdict("unchecked", str(error), warnings)
        except ContractViolation as violation:
            return Verdict("failed", str(violation), warnings)
    if own.failure and not own.steps:
        # Two runs that fail alike before anybody has finished a step show nothing.
        return Verdict("unchecked", f"nobody finishes a step: {own.failure}", warnings)
    return Verdict("passed", _said(small, own), warnings)


def _small(check: Callable[[], dict[str, Replayed]]) -> tuple[dict[str, Replayed] | str, tuple[str, ...]]:
    """What the small worlds came to: a violation's sentence, or what was replayed, and what else went wrong."""
    try:
        return check(), ()
    except Broken as error:
        return {}, (f"in a small world, {error}",)
    except ContractViolation as violation:
        return str(violation), ()
    except HushnetError as error:
        return {}, (f"the contract's small worlds cannot be run: {error}",)


def _said(small: dict[str, Replayed], own: Replayed) -> str:
    worlds = [f"{len(small)} small worlds"] if len(small) == len(WORLDS) else []
    if not own.changed:
        alone = "nobody to protect, for every agent with data sends something without noise"
        return ", ".join([*worlds, "own world", f"{own.steps} steps", alone])
    everybody = f"{own.agents} agents alone and {own.changed} at once" if own.agents else f"{own.changed} agents"
    held = ", what is assumed public held fixed" if own.held else ""
    return ", ".join([*worlds, "own world", f"{own.steps} steps", f"{everybody}{held} ({own.runs} runs of it)"])
