"""Cases, the scenario of each, and what ``run`` alone says of them: no `check_contract`, no audit."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, get_args
from unittest.mock import patch

from hushnet.agents.errors import HushnetError
from hushnet.protocols.base import Protocol
from hushnet.protocols.privacy.mechanisms import Noise
from hushnet.protocols.privacy.mechanisms import mechanism_registry as registry
from hushnet.simulator import run

Kind = Literal[
    "tolerance",
    "samples",
    "noise",
    "world",
    "exempt",
    "shared_parts",
    "adjacency",
    "objective",
    "worst_cases",
    "shared_object",
    "mechanism",
    "honest",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOISES = ("laplace", "gaussian", "gamma")
SAMPLINGS = ("full", "poisson", "fixed")
ADJACENCIES = ("replace-one", "add-or-remove-one")
PRIVACY: dict[str, Any] = {"multiplier": 3.0, "updates": 6, "clip": 0.5}


@dataclass(frozen=True)
class Case:
    """A whole protocol, and under which noise, sampling and adjacency it is tried.

    Parameters
    ----------
    name : str
    kind : str
    protocol : type of Protocol
    what : str
        What is false in it, or how it is private.
    mechanisms, samplings, adjacencies : tuple of str
        Every combination is tried, but for fixed-size samples without a count to divide by.
    privacy, fields, scenario : mapping
        Beside the usual ones: of ``privacy``, of the protocol, and of the scenario, by path.
    harmed : tuple of str and value, optional
        The grid point that the mistake is in; anywhere by default.
    registered : mapping of str to Noise
        Mechanisms of a user, by name.
    stated : str
        What has to stand among what is assumed public, where the protocol declares by a field that it is.
    beyond : str
        Why it is not always caught.
    """

    name: str
    kind: Kind
    protocol: type[Protocol]
    what: str
    mechanisms: tuple[str, ...] = NOISES
    samplings: tuple[str, ...] = ("full",)
    adjacencies: tuple[str, ...] = ("replace-one",)
    privacy: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)
    harmed: tuple[str, Any] | None = None
    registered: Mapping[str, Noise] = field(default_factory=dict)
    stated: str = ""
    beyond: str = ""

    @property
    def variants(self) -> list[Variant]:
        """All that it is tried under."""
        all_terms = product(self.mechanisms, self.samplings, self.adjacencies)
        return [Variant(self, *terms) for terms in all_terms if terms[1:] != ("fixed", "add-or-remove-one")]


@dataclass(frozen=True)
class Variant:
    """A case under one mechanism, sampling and adjacency."""

    case: Case
    mechanism: str
    sampling: str
    adjacency: str

    @property
    def name(self) -> str:
        """Such as ``tenth/gaussian/full/replace-one``."""
        return "/".join((self.case.name, self.mechanism, self.sampling, self.adjacency))

    @property
    def scenario(self) -> dict[str, Any]:
        """The world of the case: a ring of eight agents, messages late and lost, agents absent."""
        privacy = {**PRIVACY, **self.case.privacy, "mechanism": self.mechanism}
        own = {"sampling": self.sampling, "adjacency": self.adjacency}
        known = self.case.protocol.Parameters.model_fields
        fields = {name: value for name, value in own.items() if name in known} | dict(self.case.fields)
        given = {name: value for name, value in privacy.items() if value is not None}
        task = {"kind": "linear_classification", "agents": 8, "dimension": 3, "samples": [6, 12]}
        scenario: dict[str, Any] = {
            "schema": 1,
            "scenario": "planted",
            "task": {**task, "points": "ball", "loss": "logistic"},
            "topology": {"kind": "ring"},
            "network": {"latency": {"kind": "exponential", "mean": 0.3}, "loss": 0.1},
            "availability": {"kind": "on_off", "online": 0.8, "mean_down": 2},
            "protocols": {"own": {"kind": "Own", "privacy": given, **fields}},
            "engine": "event",
            "stop": {"time": 12},
            "record": {"every": 12.0, "metrics": ["epsilon"]},
            "seeds": 1,
        }
        for path, value in self.case.scenario.items():
            *parents, last = path.split(".")
            inside = scenario
            for name in parents:
                inside = inside[name]
            inside[last] = value
        return scenario


@dataclass(frozen=True)
class Outcome:
    """What ``run`` said of a variant."""

    variant: Variant
    verified: float
    """The epsilon that is shown as verified where the mistake is; infinite where nothing is, or the run is refused."""
    said: str
    seconds: float
    stated: bool = False
    """Whether what is declared as public stands beside the epsilon, in the words that `Case.stated` asks for."""

    @property
    def caught(self) -> bool:
        """Whether nothing is verified, or not without what was declared."""
        return math.isinf(self.verified) or self.stated


def ask(variant: Variant) -> Outcome:
    """Run a variant as a user does, and read what the summary shows."""
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder, patch.dict(registry._known, variant.case.registered):
            result = run(variant.scenario, protocols={"Own": variant.case.protocol}, out=folder)
            rows = result.summary()
            said = "; ".join(dict.fromkeys(_said(manifest) for manifest in result.manifests))
            wanted, lists = variant.case.stated, [one["privacy"]["assumed_public"] for one in result.manifests]
            stated = bool(wanted) and all(wanted in public for public in lists)
    except HushnetError as error:
        return Outcome(variant, math.inf, f"refused: {error}", time.perf_counter() - began)
    if variant.case.harmed is not None:
        column, value = variant.case.harmed
        rows = rows[rows[column].astype(str) == str(value)]
    verified = rows["epsilon_verified"].max(skipna=False) if len(rows) else math.nan
    return Outcome(variant, float(verified), said, time.perf_counter() - began, stated)


def _said(manifest: Mapping[str, Any]) -> str:
    privacy = manifest["privacy"] or {}
    because = "; ".join(privacy.get("because") or ())
    return " | ".join(filter(None, [str((manifest.get("contract") or {}).get("text", "")), because]))
