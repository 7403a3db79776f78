"""How long a run will take, about, told from how long steps took where they were measured (`step_times`).

What is left out: compiling, exact minima of objectives, tight accounting of privacy, and how agents that wait for
others, or are away, step less often. Rounds are taken to last as long as the slowest of an agent and its neighbours.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...agents.compilation.compiled import form_of
from ...protocols import catalog
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.steps.view_steps import function_in
from ..language.scenario import Scenario
from .step_times import Form, Size, Steps, StepTimes, noise_of, way_of

ALONE = "model_propagation"
"""Whose start stands for that of protocols whose agents only start: it solves every agent's own problem, too."""


def seconds_of(
    scenario: Scenario,
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    agents: int,
    size: Size,
    *,
    wakes: float,
    samples: float,
    times: StepTimes | None = None,
) -> float | None:
    """Seconds of processor time of one run; None where nobody has measured the protocol, or nothing ends the run.

    Parameters
    ----------
    scenario : Scenario
    protocol : type of Protocol
    parameters : ProtocolParameters
    agents : int
    size : Size
    wakes, samples : float
        Wake-ups of all agents until the end, and records.
    times : StepTimes, optional
        By default those that come with the package.
    """
    times = times or StepTimes.shipped()
    known = parameters.kind in catalog.PROTOCOLS and catalog.resolve(parameters.kind) is protocol
    if not known or not math.isfinite(samples):
        return None
    way, least = way_of(protocol, parameters), times.run + samples * times.record(agents, size)
    if not has_steps(protocol):
        start = times.start(Steps(ALONE, "broadcast", "plain", "compiled"), size)
        return None if start is None else least + agents * start
    calm = scenario.network.lossless and bool(form_of(scenario.availability, "unfailing"))
    steps = Steps(parameters.kind, way, noise_of(parameters), expected_form(scenario, protocol), lossy=not calm)
    read = replace(size, rows=protocol.rows_of_step(parameters, size.rows))
    step, start = times.step(steps, read), times.start(steps, size)
    if step is None or start is None:
        return None
    made = wakes
    if way == "rounds" and scenario.stop.time is not None:
        made = min(made, wakes / round_length(scenario, size.degree))
    made = min(made, agents * _own_limit(parameters))
    return least + agents * start + made * step if math.isfinite(made) else None


def has_steps(protocol: type[Protocol]) -> bool:
    """Whether agents of a protocol do anything once they have started."""
    methods = ("wake", "receive", "make_request")
    written = any(getattr(protocol, name) is not getattr(Protocol, name) for name in methods)
    return written or any(function_in(protocol, name) is not None for name in ("step", "request"))


def expected_form(scenario: Scenario, protocol: type[Protocol]) -> Form:
    """How steps will probably run: compiled if the protocol has texts of them, or a compiled step of its own."""
    if scenario.engine == "event" or scenario.debug:
        return "event"
    texts = any(function_in(protocol, name) is not None for name in ("step", "request"))
    return "compiled" if texts else "Python"


def round_length(scenario: Scenario, degree: float) -> float:
    """Expected wake-ups, about, that a round takes: the longest of 1 + degree exponential intervals, and a delay."""
    return 1.0 + math.log1p(degree) + scenario.network.latency.average


def _own_limit(parameters: ProtocolParameters) -> float:
    """After how many steps of its own an agent falls silent, as far as parameters say so."""
    given = (getattr(parameters, "privacy", None), getattr(parameters, "noise", None), parameters)
    found = [getattr(one, "updates", None) for one in given]
    return min((float(number) for number in found if number is not None), default=math.inf)
