"""The file that ``hushnet new scenario NAME`` writes: a scenario that runs, with every other field as a comment."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from ...agents.errors import InputError
from ...agents.models import LinearModel
from ...agents.suggestions import require
from ..language.described import SECTIONS, Described, described, kinds_in, protocols
from ..language.loading import load
from ..language.yaml_source import read_text
from ..storage.files import json_text, write_text, writing
from .own_table import OwnTable

DEFAULTS = {
    "task": "linear_classification",
    "model": "linear",
    "topology": "angular_similarity",
    "clock": "poisson",
    "latency": "exponential",
    "loss": "bernoulli",
    "availability": "always",
}
"""The kinds that stand in the file where none is asked for."""
PARTS_OF = {"model": "task", "split": "task", "changes": "topology"}
"""Lists of kinds that are a part of a section."""
TO_SPLIT = "digits"
"""The task that stands there where a split is asked for, and no task."""
MINIMISING, BY_GRADIENTS = ("local", "coordinate_descent"), ("solitary", "decentralised_sgd")
"""The protocols that stand in the file where none is asked for, of linear models and of others."""
ON_ANY_GRAPH = ("solitary", "epidemic_learning")
"""Those of a graph that is directed, or changes."""
WIDTH = 118
"""Characters of a line."""

HEAD = """\
# {name}: say here in a line what it asks; `hushnet list scenarios` shows it.
# Fields behind a # have the value that stands there, unless you give another. `hushnet explain task.{task}` says more,
# `hushnet check {file}` says what is wrong, `hushnet run {file}` runs it.
schema: 1
scenario: {name}
seeds: 3
"""

_LINE = re.compile(r"(?P<indent> *)(?:# )?(?P<key>[\w-]+):(?P<rest>.*)")
"""A field of the file, perhaps as a comment."""

TAIL = """\
stop: {time: 20}
record:
  every: 1.0
figures:
  - {y: objective, x: time, by: protocol, interval: 95%}
"""


def write_scenario(
    name: str,
    folder: Path,
    *,
    kinds: Mapping[str, str | None] | None = None,
    among: Sequence[str] = (),
    own: OwnTable | None = None,
    assignments: Sequence[str] = (),
) -> Path:
    """Write a scenario, which its file NAME.yaml is called after, and make sure that it can be read.

    There is a kind for each list of `hushnet.simulator.language.described.SECTIONS` where it is not the usual one,
    kinds of protocols, by default purely local agents and coordinate descent or what the graph admits, perhaps a table
    of the user's that is the task, and assignments ``path=value`` of fields that have a line in the file. Raises
    `InputError` if a name is not admissible, the file is there already, or the kinds do not fit together.
    """
    path = folder / f"{name}.yaml"
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise InputError(
            f"{name!r} cannot name a scenario: letters, digits, -, _ and ., beginning with one of the first two"
        )
    if path.exists():
        raise InputError(f"{path}: is there already; choose another name, or remove it first")
    given = {section: kind for section, kind in (kinds or {}).items() if kind is not None}
    if own is not None:
        given = {"topology": own.topology, **given, "task": "csv"}
    content = scenario_text(name, kinds=given, among=among, own=own)
    for topology in ("ring", "star"):
        if "topology" not in given and _refusal(content) is not None:
            # Agents of this task have no profiles to be like one another in, or a protocol has a centre.
            content = scenario_text(name, kinds={**given, "topology": topology}, among=among)
    if not among and {"topology", "changes"} & given.keys() and _refusal(content) is not None:
        content = scenario_text(name, kinds=given, among=ON_ANY_GRAPH, own=own)
    for assignment in assignments:
        content = _assigned(content, assignment)
    refused = _refusal(content)
    if refused is not None:
        why = str(refused).removeprefix("scenario: ")
        raise InputError(f"{name}: such a scenario cannot be run, so that nothing was written: {why}")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(content, path)
    return path


def _assigned(content: str, assignment: str) -> str:
    """The file's text with one of its fields set, whether it is a comment there, a line, or among others in braces."""
    path, equals, value = assignment.partition("=")
    keys, lines = path.split("."), content.split("\n")
    if not equals or not all(keys):
        raise InputError(f"--set {assignment}: must be PATH=VALUE, such as network.loss=0.2")
    at, below = list[tuple[int, str]](), None
    for number, line in enumerate(lines):
        if (found := _LINE.fullmatch(line)) is None:
            continue
        depth, key = len(found["indent"]), found["key"]
        at = [*((outer, name) for outer, name in at if outer < depth), (depth, key)]
        names = [name for _, name in at]
        if names == keys:
            end = number + 1
            while end < len(lines) and re.match(rf" {{{depth + 1},}}\S", lines[end]):
                end += 1
            return "\n".join([*lines[:number], f"{found['indent']}{key}: {value}", *lines[end:]])
        if names == keys[:-1] and found["rest"].strip().startswith("{"):
            inner = {name: json_text(one, indent=None) for name, one in read_text(found["rest"], "it").data.items()}
            text = ", ".join(f"{name}: {one}" for name, one in {**inner, keys[-1]: value}.items())
            return "\n".join([*lines[:number], f"{found['indent']}{key}: {{{text}}}", *lines[number + 1 :]])
        if names == keys[:-1] and not found["rest"].strip() and not line.lstrip().startswith("#"):
            below = number + 1, depth + 2
    if below is not None:
        number, indent = below
        return "\n".join([*lines[:number], f"{' ' * indent}{keys[-1]}: {value}", *lines[number:]])
    if not any(re.match(rf"(# )?{re.escape(keys[0])}:", line) for line in lines):
        *outer, last = (f"{'  ' * depth}{key}:" for depth, key in enumerate(keys))
        return "\n".join([*lines[:-1], *outer, f"{last} {value}", ""])
    raise InputError(f"--set {assignment}: the file has no line for {path}; write it there by hand")


def _refusal(content: str) -> InputError | None:
    try:
        load(read_text(content, "it").data)
    except InputError as error:
        return error
    return None


def scenario_text(
    name: str, *, kinds: Mapping[str, str] | None = None, among: Sequence[str] = (), own: OwnTable | None = None
) -> str:
    """The file's text; see `write_scenario`."""
    asked = {section: kind for section, kind in (kinds or {}).items() if kind}
    chosen = {**DEFAULTS, **({"task": TO_SPLIT} if "split" in asked else {}), **asked}
    lines = [HEAD.format(name=name, file=f"{name}.yaml", task=chosen["task"])]
    network: list[str] = []
    for section, kind in chosen.items():
        known = kinds_in(section)
        require(kind, known, f"there is no {section} {kind!r}")
        if section in PARTS_OF:
            continue
        within = SECTIONS[section][0] == "network"
        if section == "loss" and section not in (kinds or {}):
            network += ["  # loss: 0  # in [0, 1); the share of messages that are lost"]
            continue
        given = own.lines if own is not None and section == "task" else fields(known[kind], kind)
        for inner, outer in PARTS_OF.items():
            if section == outer and chosen.get(inner) != DEFAULTS.get(inner):
                given = [
                    *(line for line in given if not re.match(rf"(# )?{inner}:", line)),
                    *_part(inner, chosen[inner]),
                ]
        block = [f"{section}:", *(f"  {line}" for line in given)]
        if section == "attack":
            lines += ["adversaries:", "  share: 0.2", *(f"  {line}" for line in block)]
            continue
        (network if within else lines).extend(f"  {line}" if within else line for line in block)
    lines += ["network:", *network, "protocols:"]
    for kind in among or (MINIMISING if _is_linear(chosen["task"], chosen["model"]) else BY_GRADIENTS):
        known = protocols()
        require(kind, known, f"there is no protocol {kind!r}")
        lines += [f"  {kind}:", *(f"    {line}" for line in fields(known[kind], kind))]
    return "\n".join(lines) + "\n" + TAIL


def _is_linear(task: str, model: str) -> bool:
    """True if agents learn the linear model, by the task's own default unless another model is asked for."""
    default = kinds_in("task")[task].model_fields["model"].get_default(call_default_factory=True)
    return model == DEFAULTS["model"] and isinstance(default, LinearModel)


def _part(section: str, kind: str) -> Iterator[str]:
    """Yield the lines about a part of a section, such as a task's model."""
    known = kinds_in(section)
    require(kind, known, f"there is no {section} {kind!r}")
    yield f"{section}:"
    yield from (f"  {line}" for line in fields(known[kind], kind))


def fields(model: type[BaseModel], kind: str) -> Iterator[str]:
    """The lines of a part: examples of what has to be given, and the rest as comments with defaults."""
    yield f"kind: {kind}"
    unset = {info.alias or name for name, info in model.model_fields.items() if info.get_default() is None}
    for field in described(model):
        if field.name == "kind":
            continue
        # What pages call none is null in YAML, where none is a text.
        default = "null" if field.name in unset else field.default
        given = f"# {field.name}: {default}" if field.default is not None else f"{field.name}: {field.example}"
        yield textwrap.shorten(f"{given}  # {_said(field)}", WIDTH - 6, placeholder=" ...") if _said(field) else given


def _said(field: Described) -> str:
    """Range, unit and the first sentence of what a field means."""
    meaning = " ".join(field.meaning.replace("``", "").split())
    first = re.split(r"(?<=[.;])\s", meaning, maxsplit=1)[0].rstrip(".;")
    bounds = f"in {field.range}" if field.range else ""
    return "; ".join(part for part in (" ".join(filter(None, (bounds, field.unit))), first) if part)
