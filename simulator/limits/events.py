"""How many events a run has, counted from its scenario's numbers alone: what cannot end within its limit is refused.

What is counted are wake-ups of clocks, and the copies that a protocol says it sends at each of them
(`hushnet.protocols.base.Protocol.least_sent`), at least one for each call in pairs where messages arrive at once.
Rounds are counted where delays are bounded and nothing is lost. Timers, repeats and acknowledgements come on top, so
this is a lower bound; what agents do that may fall silent is not counted at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...agents.errors import OutOfResources
from ...agents.graph import Graph
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.schedule_selection import rounds_of
from ..language.loading import LoadedScenario
from ..language.scenario import Scenario
from ..network.graphs import Topology
from ..network.network import NetworkParameters
from ..network.randomness import QUANTUM
from .memory import check_machine

SURE = 6.0
"""Standard deviations that chance is granted: Poisson sums fall so far below with a probability under e^-18."""


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

    @classmethod
    def expected(cls, topology: Topology, agents: int) -> Degrees:
        """Those that every graph of a topology has at least."""
        least = topology.least_degree(agents)
        return cls(float(least * agents), least, agents - 1)


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
        Standard deviations that chance is granted; 0 for what is expected.
    """
    sent = protocol.least_sent(parameters) if "least_sent" in vars(protocol) else None
    stop, present = scenario.stop, scenario.availability
    known = present.nobody_absent
    if sent is None or not known or agents < 2 or stop.vectors is not None:
        return 0.0
    if degrees.least == 0 and scenario.topology.allow_isolated:
        return 0.0
    traits = protocol.traits_for(parameters)
    rounds = rounds_of(traits, parameters)
    in_rounds = rounds is not None
    calls = int(traits.exchange == "pairwise" and degrees.least > 0 and at_once(scenario.network))
    found = [math.inf]
    if stop.time is not None:
        wakes = scenario.clock.wakes(stop.time, agents)
        copies = sent * wakes.each * degrees.total
        lucky = (1 + calls) * wakes.spread + math.sqrt(sent * copies * degrees.most)
        whole = rounds_until(scenario, stop.time, agents, sure) if rounds is not None else 0.0
        calling = (1 + calls) * wakes.expected
        found.append(sent * whole * degrees.total if in_rounds else calling + copies - sure * lucky)
    most = scenario.clock.wakes(math.inf, agents).expected
    if stop.activations is not None:
        found.append(min(stop.activations, most) * (sent * degrees.least + (not in_rounds) + calls))
    if stop.updates is not None:
        found.append(min(stop.updates * agents, most) * (sent * degrees.total / agents + (not in_rounds) + calls))
    return max(min(found), 0.0)


def at_once(network: NetworkParameters) -> bool:
    """Whether every message arrives, and at the time at which it was sent."""
    return network.lossless and network.bandwidth is None and longest_delay(network) == 0


def longest_delay(network: NetworkParameters) -> float:
    """The longest delay of any message; infinite where nobody knows without files or sizes, or it is not bounded."""
    return network.latency.longest if network.bandwidth is None else math.inf


def rounds_until(scenario: Scenario, time: float, agents: int, sure: float = SURE) -> float:
    """Rounds that every agent begins before a time, at least; 0 where messages are lost or delays not bounded.

    Nobody is later with a round than the sum, over all rounds before, of the longest interval of any agent and the
    longest delay.
    """
    delay = longest_delay(scenario.network) + 2 * QUANTUM
    if not (scenario.network.lossless and math.isfinite(delay)):
        return 0.0
    longest = scenario.clock.longest_interval(agents)
    if longest is None:
        return 0.0
    mean, spread = longest[0] + delay, longest[1]
    # The largest k with k mean + sure spread sqrt(k) <= time, but for one.
    root = (math.sqrt((sure * spread) ** 2 + 4 * mean * time) - sure * spread) / (2 * mean)
    return max(math.floor(root**2) - 1, 0)


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
        Without it, every graph of the topology is thought of.

    Raises
    ------
    OutOfResources
        With the numbers.
    """
    if graph is not None:
        degrees = Degrees.of(graph)
    else:
        degrees = Degrees.expected(scenario.topology, agents) if agents is not None else Degrees()
    for key, protocol in classes:
        least = 0.0 if agents is None else least_events(scenario, protocol, scenario.protocols[key], agents, degrees)
        if least > scenario.limits.events:
            raise OutOfResources(
                f"{scenario.scenario}: protocol {key}: has at least {least:,.0f} events (wake-ups and messages), and "
                f"limits.events admits {scenario.limits.events:,}; raise it, or stop earlier"
            )
