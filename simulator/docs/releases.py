"""Releases of protocols, as a run shows them: every message of a small world, and what each was released as.

Nothing of this is taken from what a protocol says of itself: its agents run, on the event engine, and a
`hushnet.simulator.contract.transcript.Recording` notes what leaves them and the noise behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.privacy.mechanisms import Release, mechanism_of
from ..contract.transcript import Recording
from ..engine.selection import EventEngine
from ..experiment import Experiment, Run
from ..language.loading import load
from ..network.setting import Setting, Stop
from ..world.world import World

TIME = 6.0
"""How long agents run, in expected wake-ups."""
PRIVATE = ("audit-rows", "audit-columns")
"""Shipped scenarios that have every private protocol."""
MOMENTS = {
    "start": "at the start",
    "step": "in a step",
    "react": "on an arrival",
    "request": "as a request",
    "respond": "as a reply",
    "complete": "when an exchange ends",
}
"""When something left an agent, by the phase of its step."""
DISCLOSED = "no message"
"""What a release is called that left an agent in another way than as a message."""


@dataclass(frozen=True)
class SeenRelease:
    """Messages of a kind that left agents in the same way."""

    moment: str
    """When, in words."""
    kind: str
    """Of the message, or `DISCLOSED`."""
    to: str
    """Whom it went to, in words."""
    numbers: str
    """How many numbers it has."""
    released: str
    """What it was released as, in words."""


@dataclass(frozen=True)
class Observed:
    """Releases that a run was observed to make."""

    rows: tuple[SeenRelease, ...]
    """In the order in which they were seen first."""
    charged: tuple[int, ...]
    """Numbers of releases that agents were charged for, distinct and sorted."""
    steps: int
    """Steps of all agents."""


def observed(experiment: Experiment, run: Run) -> Observed:
    """Observe what the first steps of a run reveal."""
    parameters = run.point.scenario.protocols[run.protocol]
    return observed_in(experiment.setting(run), experiment.loaded.code.protocol(parameters.kind), parameters)


def observed_in(setting: Setting, protocol: type[Protocol], parameters: ProtocolParameters) -> Observed:
    """The same of a protocol in a setting, which ends at `TIME`, whatever it says."""
    recording = Recording()
    world = World(replace(setting, stop=Stop(time=TIME)), protocol, parameters, watch=recording)
    EventEngine().run(world)
    charged: set[int] = {world.ledger.releases(agent) for agent in range(setting.graph.agents)}
    return Observed(tuple(dict.fromkeys(_seen(world, recording))), tuple(sorted(charged)), world.activations)


def private_runs(kind: str) -> list[tuple[Experiment, Run]]:
    """The shipped runs of a protocol that are private and small."""
    runs = [(experiment, run) for experiment in map(Experiment, map(load, PRIVATE)) for run in experiment.runs()]
    return [(experiment, run) for experiment, run in runs if run.point.scenario.protocols[run.protocol].kind == kind]


def _seen(world: World, recording: Recording) -> Iterator[SeenRelease]:
    distributions = {draw.release: len(draw.noisy.reshape(-1)) for draws in recording.draws.values() for draw in draws}
    graph = world.setting.graph
    for step in recording.steps:
        moment = MOMENTS[step.phase]
        for release in step.disclosed:
            numbers = str(distributions.get(release, ""))
            yield SeenRelease(moment, DISCLOSED, "everybody", numbers, released_as(release))
        for sent in step.sent:
            if len(graph.neighbours(step.agent)):
                to = "all neighbours" if sent.to is None else "one neighbour"
                yield SeenRelease(moment, sent.kind, to, str(len(sent.vector)), released_as(sent.release))


def released_as(release: Release) -> str:
    """Describe in words what a release says that it reveals."""
    because = f": {release.reason}" if release.reason else ""
    if release.free:
        return f"public, costs nothing{because}"
    if not mechanism_of(release.mechanism).noisy or release.scale == 0:
        return f"data without noise{because}; epsilon is infinite"
    sampled = f", of a sample of {release.sampling:.3g} of the rows" if release.sampling < 1 else ""
    drawn = "" if release.draws else ", drawn before"
    return (
        f"{release.mechanism} noise{drawn}, for one {release.unit} ({release.adjacency}), "
        f"sensitivity in {release.norm} from {str(release.sensitivity_source).replace('_', ' ')}{sampled}"
    )
