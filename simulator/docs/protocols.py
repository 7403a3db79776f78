"""A page for each shipped protocol: equations, what it sends, what it reveals and keeps, its fields, where it runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ...agents.errors import InputError
from ...agents.input_files import read_bytes
from ...protocols import catalog
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.invariants import Invariant
from ..experiment import Experiment, Run
from ..language.described import described, summary
from ..language.loading import load, shipped
from ..language.yaml_source import read_text
from ..reproduction.systems import present
from ..shell.new_scenario import scenario_text
from ..world.world import World
from .markdown import code, link, prose, table
from .reference import fields_of
from .releases import DISCLOSED, Observed, SeenRelease, observed, private_runs

BY_COLUMNS = """\
task:
  kind: gisette_like
  rows: 40
  test_rows: 10
  dimension: 12
  split: {by: columns, parts: [4, 4, 4]}
topology: {kind: star}
"""
"""Where protocols live that split features over their agents."""
REACTS = {
    "wake": "the agent's own clock",
    "round": "a complete round of its neighbours' messages",
    "message": "the agent's own clock, and every message that arrives",
}
KEPT = {
    "latest": "the newest message of each neighbour, in the order of sending",
    "per_round": "one message of each neighbour and round",
    "every": "every message until its next step",
}


LEARNS = {
    "any": "any, by gradients",
    "convex": "linear ones and softmax regression",
    "linear": "linear ones",
}
"""Models that protocols learn."""


def pages(drawn: Mapping[str, list[Path]]) -> dict[str, str]:
    """The overview, and a page for each protocol by its kind, with a picture of those that scenarios have."""
    kinds = {name: catalog.resolve(name) for name in catalog.names()}
    rows = [
        (link(code(name), f"protocol-{name}"), _title(kind), ", ".join(_systems(name))) for name, kind in kinds.items()
    ]
    overview = [
        "# Protocols\n",
        "Every protocol is a `kind` under `protocols:`; variants are fields. Systems are those of the papers.\n",
        table(("kind", "what it is", "systems"), rows),
        "```{toctree}\n:hidden:\n\n" + "\n".join(f"protocol-{name}" for name in kinds) + "\n```\n",
    ]
    made = {f"protocol-{name}": page(name, kind, drawn) for name, kind in kinds.items()}
    return {"protocols": "\n".join(overview)} | made


def _title(kind: type[Protocol]) -> str:
    parameters = kind.Parameters
    return summary(parameters if parameters is not ProtocolParameters else kind)


def _systems(name: str) -> list[str]:
    return [system.number for system in present() if name in system.kinds]


def page(name: str, kind: type[Protocol], drawn: Mapping[str, list[Path]]) -> str:
    """The page of a protocol, with the pictures that scenarios have of it."""
    experiment, run = example(name)
    world = experiment.world(run)
    text = [
        f"(protocol-{name})=",
        f"# {name}\n",
        prose(_title(kind)),
        "## Equations and source\n",
        prose(sys.modules[kind.__module__].__doc__ or ""),
        "## When it steps, and what it sends\n",
        _steps(world),
        "## What it reveals\n",
        _reveals(world, experiment, run),
        "## What it keeps on any network\n",
        _keeps(world),
        "## Fields\n",
        fields_of(kind.Parameters),
        "## Where it runs\n",
        _runs(name, drawn),
    ]
    return "\n".join(text)


def example(name: str) -> tuple[Experiment, Run]:
    """A small experiment with a protocol, and its first run."""
    columns = catalog.resolve(name).learns_from == "columns"
    content = scenario_text("example", kinds={"topology": "ring"}, among=[name])
    if columns:
        content = re.sub(
            r"(?s)^task:.*?^topology:.*?(?=^clock:)",
            BY_COLUMNS,
            content,
            flags=re.MULTILINE,
        )
    try:
        loaded = load(read_text(content, name).data)
    except InputError:  # a protocol with a centre
        content = scenario_text("example", kinds={"topology": "star"}, among=[name])
        loaded = load(read_text(content, name).data)
    experiment = Experiment(loaded)
    return experiment, next(experiment.runs())


def _steps(world: World) -> str:
    traits, layout = world.protocol.traits, world.protocol.layout()
    exchange = "opens a session with one neighbour" if traits.exchange == "pairwise" else "tells all neighbours"
    lines = [f"A step is started by {REACTS[traits.trigger]}, and {exchange}; an inbox keeps {KEPT[traits.inbox]}."]
    if not layout.messages:
        return "Its agents send nothing while it runs.\n"
    rows = [
        (
            code(kind),
            str(message.vectors),
            str(message.width),
            f"its block `{message.mirrors}`" if message.mirrors else "what the step computes",
        )
        for kind, message in layout.messages.items()
    ]
    head = ("message", "vectors", f"numbers, at p = {world.setting.task.dimension}", "what it shows")
    return "\n".join([*lines, "", table(head, rows)])


def _reveals(world: World, experiment: Experiment, run: Run) -> str:
    """Text about what a run without noise, and the private runs of the shipped scenarios, were observed to reveal."""
    kind = experiment.loaded.scenario.protocols[run.protocol].kind
    lines = [
        "Observed in small runs, of which every message was noted.\n",
        *_told("With its defaults", observed(experiment, run)),
    ]
    shown: set[tuple[SeenRelease, ...]] = set()
    for private, each in private_runs(kind):
        found = observed(private, each)
        if found.rows not in shown:
            name = private.loaded.scenario.scenario
            lines += _told(f"`{each.protocol}` of {link(name, f'scenario-{name}')}", found)
        shown.add(found.rows)
    if world.protocol.traits.central:
        lines.append("Starts are computed in one place, from what all agents disclose; results say so.\n")
    public = list(world.protocol.assumed_public)
    if public:
        lines += ["Treated as public, though computed from data:", "", *(f"- {each}" for each in public)]
    return "\n".join(lines) + "\n"


def _told(title: str, found: Observed) -> list[str]:
    """Table of what was observed, and the number of releases that agents were charged for."""
    counts = " to ".join(map(str, sorted({min(found.charged), max(found.charged)})))
    counted = f"In {found.steps} steps of all agents, each was charged for {counts} release{'s' * (counts != '1')}."
    if not found.rows:
        return [f"{title}: nothing left an agent. {counted}\n"]
    head = ("when", "message", "numbers", "to", "released as")
    rows = (
        (row.moment, row.kind if row.kind == DISCLOSED else code(row.kind), row.numbers, row.to, row.released)
        for row in found.rows
    )
    return [f"{title}:\n", table(head, rows), f"{counted}\n"]


def _keeps(world: World) -> str:
    declared = world.protocol.invariants()
    if isinstance(declared, tuple):
        rows = ((each.name, each.where.value, each.source) for each in declared if isinstance(each, Invariant))
        return table(("what stays", "where", "source"), rows)
    return prose(str(getattr(declared, "why", "") or summary(type(declared))))


def _runs(name: str, drawn: Mapping[str, list[Path]]) -> str:
    used = [key for key, path in shipped().items() if re.search(rf"\bkind: {name}\b", read_bytes(path).decode())]
    systems = _systems(name)
    lines = [f"Systems {', '.join(systems)} of the papers.\n"] if systems else []
    lines.append(
        "Shipped scenarios: " + (", ".join(link(code(key), f"scenario-{key}") for key in used) or "none") + ".\n"
    )
    of_the_shelf = f"shelf-{name.replace('_', '-')}"
    first = sorted(used, key=lambda key: key != of_the_shelf)
    shown = next((drawn[key][0] for key in first if drawn.get(key)), None)
    if shown is not None:
        lines.append(f"```{{figure}} pictures/{shown.name}\n:alt: {shown.stem}\n\n`{shown.stem}`\n```\n")
    kind = catalog.resolve(name)
    lines.insert(0, f"Models: {LEARNS[kind.learns]}.\n")
    fields = [field.name for field in described(kind.Parameters)]
    lines.append(f"`hushnet new scenario mine --protocol {name}` writes a scenario with its {len(fields)} fields.\n")
    return "\n".join(lines)
