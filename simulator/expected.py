"""How many events a run has, counted from its scenario's numbers alone: what cannot end within its limit is refused.

What is counted are wake-ups of clocks, and the copies that a protocol says it sends at each of them
(`hushnet.protocols.base.Protocol.least_sent`). Timers, repeats and acknowledgements come on top, so this is a lower
bound; sessions, and protocols of which nothing is known, are counted by their wake-ups or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..agents.availability import Always
from ..agents.errors import OutOfResources
from ..agents.graph import Graph
from ..protocols.base import Protocol, ProtocolParameters
from .choice import rounds_of
from .clocks import ClockParameters, LognormalRates, Periodic, Poisson, Recorded, StragglerRates, UniformRates
from .language.loading import LoadedScenario
from .memory import check_machine
from .randomness import QUANTUM
from .scenario import Scenario

SURE = 6.0
"""Deviations that luck is granted: Poisson sums fall so far below their mean with a probability below e^-18."""


class Degrees(NamedTuple):
    """What is known of the neighbours that agents have."""

    total: float = 0.0
    """Sum over all agents, at least."""
    least: int = 0
    most: int = 0

    @classmethod
    def of(cls, graph: Graph) -> Degrees:
        """Those of a graph."""
        return cls(float(graph.degrees.sum()), int(graph.degrees.min()), int(graph.degrees.max()))


class Wakes(NamedTuple):
    """Wake-ups of all clocks until some time."""

    expected: float
    """At least, in expectation."""
    each: float
    """The same of every single agent."""
    luck: float
    """By how much there may be fewer of them."""


def least_events(
    scenario: Scenario,
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    agents: int,
    degrees: Degrees = Degrees(),  # noqa: B008 - immutable
    *,
    sure: float = SURE,
) -> float:
    """Events that a run has at least; 0 where nothing is known.

    Parameters
    ----------
    scenario : Scenario
    protocol : type of Protocol
    parameters : ProtocolParameters
    agents : int
    degrees : Degrees
        By default nobody is known to have a neighbour.
    sure : float
        Deviations that luck is granted; 0 for what is expected.
    """
    sent = protocol.least_sent(parameters) if "least_sent" in vars(protocol) else None
    stop, present = scenario.stop, scenario.availability
    known = isinstance(present, Always) and not (present.joins or present.leaves)
    if sent is None or not known or agents < 2 or scenario.topology.allow_isolated or stop.vectors is not None:
        return 0.0
    in_rounds = rounds_of(protocol.traits_for(parameters), parameters) is not None
    found = [math.inf]
    if stop.time is not None:
        wakes = wakes_until(scenario.clock, stop.time, agents)
        copies = sent * wakes.each * degrees.total
        lucky = wakes.luck + math.sqrt(sent * copies * degrees.most)
        found.append(0.0 if in_rounds else wakes.expected + copies - sure * lucky)
    most = wakes_until(scenario.clock, math.inf, agents).expected
    if stop.activations is not None:
        found.append(min(stop.activations, most) * (sent * degrees.least + (not in_rounds)))
    if stop.updates is not None:
        found.append(min(stop.updates * agents, most) * (sent * degrees.total / agents + (not in_rounds)))
    return max(min(found), 0.0)


def wakes_until(clock: ClockParameters, time: float, agents: int) -> Wakes:
    """Wake-ups of all clocks before a time, of drawn and recorded rates the least."""
    match clock:
        case Poisson(rate=list(rates)):
            intervals, known = [1 / rate + QUANTUM for rate in rates], len(rates)
        case Poisson(rate=float() | int() as rate):
            intervals, known = [1 / rate + QUANTUM], agents
        case Poisson(rate=UniformRates() | LognormalRates() | StragglerRates() as law):
            slowest = min(law.quantile(0.0), law.quantile(math.nextafter(1.0, 0.0)))
            intervals, known = [1 / slowest + QUANTUM if slowest > 0 else math.inf], agents
        case Periodic(period=period, jitter=jitter):
            periods = period if isinstance(period, list) else [period]
            counts = [max(time / (one * (1 + jitter) + QUANTUM) - 1, 0.0) for one in periods]
            return Wakes(sum(counts) * agents / len(counts), min(counts), 0.0)
        case Recorded(order=list(order), spacing=spacing):
            return Wakes(min(len(order), max(time / spacing - 1, 0.0)), 0.0, 0.0)
        case _:
            return Wakes(0.0, 0.0, 0.0)
    expected = sum(time / interval for interval in intervals) * known / len(intervals)
    return Wakes(expected, time / max(intervals), math.sqrt(expected))


def check_limits(loaded: LoadedScenario) -> None:
    """Refuse what no run of a scenario can keep to, as far as that is known without data, graph and files.

    Raises
    ------
    OutOfResources
        With the numbers.
    """
    for point in (*loaded.trials, *loaded.points):
        check_machine(point.scenario, loaded.code.protocol)
        named = point.scenario.protocols.items()
        classes = [(key, loaded.code.protocol(parameters.kind)) for key, parameters in named]
        check_events(point.scenario, classes, point.scenario.task.outline().agents)


def check_events(
    scenario: Scenario, classes: Sequence[tuple[str, type[Protocol]]], agents: int | None, graph: Graph | None = None
) -> None:
    """Refuse runs that surely have more events than they may have.

    Parameters
    ----------
    scenario : Scenario
    classes : sequence of (str, type of Protocol)
        Keys of its protocols, with their classes.
    agents : int, optional
        None where nobody knows without the data; nothing is refused then.
    graph : Graph, optional
        Without it, no message is counted.

    Raises
    ------
    OutOfResources
        With the numbers.
    """
    degrees = Degrees() if graph is None else Degrees.of(graph)
    for key, protocol in classes:
        least = 0.0 if agents is None else least_events(scenario, protocol, scenario.protocols[key], agents, degrees)
        if least > scenario.limits.events:
            raise OutOfResources(
                f"{scenario.scenario}: protocol {key}: has at least {least:,.0f} events (wake-ups and messages), and "
                f"limits.events admits {scenario.limits.events:,}; raise it, or stop earlier"
            )
