"""Reference pages that are generated: the language of scenarios, what may be named in it, commands, exit codes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer
from pydantic import BaseModel

from ...agents import errors
from ...protocols.privacy.mechanisms import noise_of, noises
from ..cli import app
from ..language.admissible import models
from ..language.described import SECTIONS, Described, described, kinds_in, summary
from ..language.figure_parameters import FIGURE_KINDS, Figure
from ..language.figure_style import FigureStyle
from ..language.scenario import Scenario
from ..metrics import METRICS
from ..shell.listing import line_of
from .markdown import anchor, block, cell, code, link, prose, table

TITLES = {
    "task": "Tasks",
    "model": "Models",
    "split": "Splits",
    "topology": "Topologies",
    "changes": "Changes of the graph",
    "clock": "Clocks",
    "compute": "Times of steps",
    "latency": "Latencies",
    "loss": "Losses on links",
    "availability": "Availability",
    "attack": "Attacks of byzantine agents",
}
"""Titles of the pages about `SECTIONS`."""
SYMBOLS = r"""
Below, {math}`\theta_i` is agent i's model, {math}`s_{ik}` the score that it gives its k-th row and
{math}`{\hat{y}{}}_{ik}` its prediction of the label {math}`y_{ik}`; {math}`m_i` is the number of its rows,
{math}`\varphi` the task's loss, {math}`t` the time, and {math}`H` are the honest agents that have joined: all, where
nobody attacks and nobody comes late. Where features are split over parties, there is one model.
"""
FIELD_HEAD = ("field", "admissible", "default", "meaning")


def pages() -> dict[str, str]:
    """Every generated page of the reference, by its file's name without ending."""
    made = {"scenario": _scenario(), "metrics": _metrics(), "figures": _figures(), "mechanisms": _mechanisms()}
    made |= {section: _section(section) for section in SECTIONS}
    return made | {"commands": _commands(), "errors": _errors()}


def fields_of(model: type[BaseModel]) -> str:
    """A table of the fields of a part of a scenario."""
    return table(FIELD_HEAD, (_row(field) for field in described(model)))


def _row(field: Described) -> tuple[str, ...]:
    bounds = f" in {field.range}" if field.range else ""
    unit = f"; {field.unit}" if field.unit else ""
    example = _example(field)
    meaning = f"{field.meaning} Example: `{example}`" if example else field.meaning
    default = "needed" if field.default is None else code(field.default)
    return code(field.name), f"{field.type}{bounds}{unit}", default, meaning


def _example(field: Described) -> str:
    """A value that may stand there: the one that it comes with, or its default."""
    value = field.example if field.example is not None else field.default
    return "" if value in (None, "none") else f"{field.name}: {value}"


def _scenario() -> str:
    text = [
        "# Scenarios, field by field\n",
        "A scenario is one YAML file. `hushnet check FILE` says what is wrong with it, with file and line; "
        "`hushnet schema` prints a JSON schema for editors.\n",
        fields_of(Scenario),
        "Any field may be overridden on the command line, `--set network.loss=0.2`, and swept, "
        "`sweep: {network.loss: [0, 0.1]}`.\n",
    ]
    for model in _parts(Scenario):
        text += [f"## `{model.__name__.removesuffix('Parameters')}`\n", prose(summary(model)), fields_of(model)]
    return "\n".join(text)


def _parts(model: type[BaseModel], seen: set[type[BaseModel]] | None = None) -> Iterator[type[BaseModel]]:
    """Parts of a scenario that have fields of their own, and no page."""
    seen = set() if seen is None else seen
    kinds = {part for section in SECTIONS for part in kinds_in(section).values()} | {Figure, FigureStyle}
    for info in model.model_fields.values():
        for part in models(info):
            if part not in seen and part not in kinds:
                seen.add(part)
                yield part
                yield from _parts(part, seen)


def _section(section: str) -> str:
    path = ".".join(SECTIONS[section])
    text = [f"# {TITLES[section]}\n", f"What `{path}` in a scenario may be, by its `kind`.\n"]
    kinds = kinds_in(section)
    rows = [(link(code(kind), f"{section}-{kind}"), summary(model)) for kind, model in kinds.items()]
    text.append(table(("kind", "what it is"), rows))
    for kind, model in kinds.items():
        text += [anchor(f"{section}-{kind}"), f"## {kind}\n", prose(_about(model)), fields_of(model)]
    return "\n".join(text)


def _about(model: type) -> str:
    """A docstring up to its sections."""
    return inspect.cleandoc(model.__doc__ or "").partition("\n\nParameters\n---")[0]


def _metrics() -> str:
    rows = (
        (
            code(name),
            metric.words,
            {"more": "more", "less": "less", None: ""}[metric.better],
            ", ".join(metric.statistics),
            ", ".join(map(code, filter(None, (name, metric.group)))),
        )
        for name, metric in METRICS.items()
    )
    return "\n".join(
        [
            "# Metrics\n",
            "What a run records, and what figures, targets and comparisons may ask for. A number of your own is a "
            "function of a [snapshot](api-registering-kinds.md), named as `./mine.py:function`; `@own_metric(label, "
            "unit=..., better=...)` above it says how it is shown. A `Metric` there, which may judge tunings and have "
            "a value for each agent, is named likewise.\n",
            table(("metric", "what it is", "better", "statistics", "recorded by `record.metrics`"), rows),
            SYMBOLS,
            *(_metric(name) for name in METRICS),
        ]
    )


def _metric(name: str) -> str:
    metric = METRICS[name]
    return f"{anchor(f'metric-{name}')}\n## {name}\n\n{cell(line_of(metric))}\n\n{metric.definition}\n"


def _figures() -> str:
    return "\n".join(
        [
            "# Figures\n",
            "An entry under `figures:` has a `kind`; without one it is a curve.\n",
            table(
                ("kind", "what it shows", "x"),
                ((code(name), kind.about, ", ".join(map(str, kind.x))) for name, kind in FIGURE_KINDS.items()),
            ),
            "## Fields of a figure\n",
            fields_of(Figure),
            "## Style\n",
            prose(_about(FigureStyle)),
            fields_of(FigureStyle),
        ]
    )


def _mechanisms() -> str:
    text = ["# Mechanisms of noise\n", "What `mechanism` may be where a protocol perturbs what it sends.\n"]
    for name in noises():
        text += [f"## {name}\n", prose(_about(type(noise_of(name))))]
    return "\n".join(text)


def _commands() -> str:
    group: Any = typer.main.get_command(app)
    text = ["# Commands\n", prose(group.help or ""), "The numbers that they end with are [exit codes](errors.md).\n"]
    for name, command in _leaves(group, "hushnet"):
        text += [f"{anchor('command-' + name.replace(' ', '-'))}\n## {name}\n", prose(command.help or "")]
        rows = []
        for parameter in command.params:
            if parameter.name == "help":
                continue
            names = ", ".join(code(option) for option in [*parameter.opts, *parameter.secondary_opts])
            shown = names if parameter.param_type_name == "option" else code(parameter.metavar or parameter.name)
            value = (parameter.metavar or "") if parameter.param_type_name == "option" else ""
            rows.append((shown, code(value), getattr(parameter, "help", "") or ""))
        text.append(table(("argument or option", "value", "meaning"), rows) if rows else "It has no options.\n")
    return "\n".join(text)


def _leaves(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        inner = f"{path} {name}"
        if hasattr(command, "commands"):
            yield from _leaves(command, inner)
        else:
            yield inner, command


def _errors() -> str:
    found = [errors.HushnetError, *_below(errors.HushnetError)]
    rows = ((code(error.__name__), str(error.exit_code), summary(error)) for error in found)
    return "\n".join(
        [
            "# Errors and exit codes\n",
            "Whatever goes wrong is said in one sentence: where, what was given, what is admissible.\n",
            table(("error", "exit code", "what it is"), rows),
            prose(inspect.cleandoc(errors.__doc__ or "").rpartition("\n\n")[2]),
            "A command that succeeds ends with 0; SIGTERM ends it with 143, in a state that goes on.\n",
            "## As a tree\n",
            block(inspect.cleandoc(errors.__doc__ or "").partition("::\n")[2].partition("\n\nWhatever")[0].strip("\n")),
        ]
    )


def _below(error: type[errors.HushnetError]) -> Iterator[type[errors.HushnetError]]:
    for inner in error.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield inner
            yield from _below(inner)
