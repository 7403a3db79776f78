"""Scenarios that are composed: every part is drawn from what the language's schema admits, small, and named in others.

A mutant of a shipped scenario differs from it in a place or two; here any task, graph, clock, network, absence,
protocol, record, sweep, tuning and figure meets any other.
"""

from __future__ import annotations

import copy
import math
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hushnet.simulator.language import inheritance
from hushnet.simulator.language.loading import shipped
from hushnet.simulator.language.schema import scenario_schema
from hushnet.simulator.language.yaml_source import read_file
from hushnet.simulator.metrics import METRICS, recordable
from hushnet.simulator.metrics.costs import COSTS, TO_TARGET

Draw = Callable[[random.Random], Any]

NUMBERS = (0, 1, 2, 3, 0.05, 0.3, 0.5, 1.5, 5.0, 20)
"""What numbers are drawn from, as far as their bounds admit it."""
OPTIONAL = 0.15
"""Share of the optional fields that are given."""
TASKS = ("linear_classification", "mean_estimation", "synthetic_ratings", "epsilon_like", "gisette_like", "csv")
"""Tasks that need no data sets."""
MOST_AGENTS = 7
PLACE = re.compile(r"^\S+?: (?:[^\s:]+: )?([a-z_]+[\w.\[\]]*)(?: = .*?)?:")
"""Where a refusal says that something stands."""


def composed(rng: random.Random, folder: Path) -> dict[str, Any]:
    """Draw a scenario; files that it names are written into a folder."""
    files(folder)
    parts = scenario_schema()["properties"]
    columns = rng.random() < 0.2
    scenario: dict[str, Any] = {
        "schema": 1,
        "scenario": "composed",
        "task": task(rng, columns),
        "topology": {"kind": "star"} if columns else part(parts["topology"], rng, allow_isolated=True),
        "protocols": protocols(rng, columns),
        "stop": {"time": rng.choice([2.0, 3.0, 6.0])},
        "seeds": rng.choice([1, 1, 2]),
        "engine": rng.choice(["event"] * 10 + ["auto", "batched"]),
    }
    for name, share in (("clock", 0.4), ("network", 0.5), ("availability", 0.35), ("record", 0.8), ("style", 0.1)):
        if rng.random() < share:
            scenario[name] = part(parts[name], rng)
    if rng.random() < 0.1:
        scenario["validation"] = 0.3
    record = scenario.get("record", {})
    metrics = sorted({rng.choice([*METRICS]) for _ in range(3)})
    scenario["record"] = (
        {"every": 1.0}
        | {key: value for key, value in record.items() if key not in ("metrics", "objective_of")}
        | ({"metrics": metrics} if rng.random() < 0.6 else {})
    )
    keys = list(scenario["protocols"])
    if rng.random() < 0.2:
        scenario["record"]["objective_of"] = rng.choice(keys)
    if rng.random() < 0.3:
        scenario["sweep"] = sweep(rng, keys)
    if rng.random() < 0.2:
        scenario["target"] = part(parts["target"], rng)
    if rng.random() < 0.1:
        scenario["tune"] = {"over": {f"{rng.choice(keys)}.mu": [0.1, 0.5]}, "seeds": 1}
    drawn = figure_names(scenario)
    scenario["figures"] = [figure(rng, drawn) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    return scenario


def mended(data: dict[str, Any], complaint: str) -> dict[str, Any]:
    """The scenario without the part that the first sentence of a refusal is about, which then has its default."""
    data = copy.deepcopy(data)
    found = PLACE.search(complaint)
    if found is None:
        return data
    first, *rest = re.findall(r"[^.\[\]]+", found[1])
    if data.get("sweep") and any(path == found[1] or path.startswith(f"{found[1]}.") for path in data["sweep"]):
        first = "sweep"
    if first == "figures" and rest:
        del data["figures"][int(rest[0])]
    elif first == "protocols" and rest and len(data["protocols"]) > 1:
        del data["protocols"][rest[0]]
    elif first == "record":
        data["record"].pop(rest[0] if rest and rest[0] in data["record"] else "objective_of", None)
    elif first in ("task", "topology", "protocols"):
        alone = "feature_sharing" if "split" in data["task"] and data["task"]["split"]["by"] == "columns" else "local"
        data[first] = {"task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [4, 6]},
                       "topology": {"kind": "complete"}, "protocols": {"p0": {"kind": alone}}}[first]  # fmt: skip
    else:
        data.pop(first, None)
    return data


def task(rng: random.Random, columns: bool) -> dict[str, Any]:
    """A small task; a gisette_like one splits columns, or is the only one that can."""
    agents = rng.randint(2, MOST_AGENTS)
    if columns:
        return {"kind": "gisette_like", "rows": 30, "test_rows": 6, "dimension": 6, "factors": 2,
                "split": {"by": "columns", "parts": [2, 2, 2]}}  # fmt: skip
    sizes = {
        "linear_classification": {"agents": agents, "dimension": rng.choice([2, 3]), "samples": [4, 6]},
        "mean_estimation": {"agents": agents, "samples": 4},
        "synthetic_ratings": {"users": agents, "items": 8, "ratings": [4, 6], "features": 2, "rank": 2,
                              "als_iterations": 2},
        "epsilon_like": {"agents": agents, "samples": 6, "dimension": 3},
        "gisette_like": {"rows": 40, "test_rows": 8, "dimension": 4, "factors": 2,
                         "split": {"by": "rows", "agents": agents}},
        "csv": {"path": "rows.csv", "label": "label", "agent": "owner"},
    }  # fmt: skip
    kind = rng.choice(TASKS)
    made = {"kind": kind, **sizes[kind]}
    own = definition(scenario_schema()["properties"]["task"], kind)["properties"]
    free = [
        name
        for name in own
        if name not in made and name not in ("path", "split", "features", "categorical", "delimiter")
    ]
    for name in free:
        if rng.random() < OPTIONAL:
            made[name] = 3 if name == "test_samples" else part(own[name], rng)
    return made


def protocols(rng: random.Random, columns: bool) -> dict[str, Any]:
    """One to four protocols: as a shipped scenario has them, or bare, and a field or two of any value."""
    kinds = sorted(entries())
    split = [kind for kind in kinds if "feature" in kind]
    usual = [kind for kind in kinds if kind not in split]
    found = {}
    for number in range(rng.choice([1, 2, 2, 3, 4])):
        kind = rng.choice(split if columns else usual)
        entry = copy.deepcopy(rng.choice(entries()[kind]))
        own = next(
            one for one in definitions().values() if one.get("properties", {}).get("kind", {}).get("const") == kind
        )
        for name, schema in own["properties"].items():
            if name not in ("kind", "like", "label", "tuned", "privacy", "noise", "loss_weight") and rng.random() < 0.1:
                entry[name] = part(schema, rng)
        entry.pop("label", None)
        if rng.random() < 0.1:
            entry["label"] = rng.choice(["a", "b", "a label that is far too long to stand beside another one " * 2])
        found[f"p{number}"] = entry
    return found


@cache
def entries() -> dict[str, list[dict[str, Any]]]:
    """Protocols as shipped scenarios have them, by kind, and each kind alone."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in shipped().values():
        for entry in inheritance.inherit(read_file(path).data["protocols"]).entries.values():
            own = {name: value for name, value in entry.items() if not isinstance(value, list)}
            found.setdefault(own["kind"], [{"kind": own["kind"]}]).append(own)
    for entry in (one for several in found.values() for one in several):
        if "loss_weight" in entry:  # which is for thousands of rows
            entry["loss_weight"] = 0.1
    return found


def sweep(rng: random.Random, keys: list[str]) -> dict[str, Any]:
    """One or two axes."""
    axes = {
        "network.loss": [0.0, 0.3],
        "network.latency": [0.1, {"kind": "exponential", "mean": 0.3}],
        "task.samples": [3, 5],
        "clock.rate": [0.5, 1.0],
        "stop.time": [1.0, 2.0],
        f"protocols.{rng.choice(keys)}.mu": [0.1, 0.5],
        f"protocols.{rng.choice(keys)}.schedule": ["async", "rounds"],
    }
    return {path: axes[path] for path in rng.sample(sorted(axes), rng.choice([1, 1, 2]))}


def figure_names(scenario: dict[str, Any]) -> dict[str, list[Any]]:
    """What a figure may name."""
    swept = list(scenario.get("sweep", {}))
    metrics = scenario["record"].get("metrics", ["objective", "accuracy", "mse"])
    traced = [name for asked in metrics for name in recordable().get(asked, (asked,))]
    axes = [*COSTS, "updates", "epochs", "samples", "degree", "protocol", "epsilon_verified", *swept, *swept]
    return {
        "y": [*traced * 12, *TO_TARGET, "age", "degree", "model"],
        "x": axes,
        "rows": swept or ["network.loss"],
        "baseline": list(scenario["protocols"]),
        "protocols": list(scenario["protocols"]),
        "facet": ["protocol", *swept],
        "statistic": ["mean", "worst", "value", "q10", "median", "sent", "samples 4", "nothing"],
    }


def figure(rng: random.Random, names: dict[str, list[Any]]) -> dict[str, Any]:
    """A figure of any kind, of what the scenario has more often than not."""
    made: dict[str, Any] = {"y": rng.choice(names["y"])}
    own = definitions()["Figure"]["properties"]
    for field, share in (
        ("kind", 0.6),
        ("x", 0.6),
        ("baseline", 0.2),
        ("facet", 0.15),
        ("statistic", 0.15),
        ("rows", 0.1),
    ):
        if rng.random() < share:
            made[field] = rng.choice(names[field]) if field in names else part(own[field], rng)
    for field in ("interval", "log", "wins", "target", "seed", "between", "title", "x_label", "y_label", "style"):
        if rng.random() < 0.07:
            made[field] = part(own[field], rng)
    if rng.random() < 0.1:
        made["protocols"] = [rng.choice(names["protocols"])]
    return made


@cache
def definitions() -> dict[str, Any]:
    """The parts of the schema."""
    return scenario_schema()["$defs"]


def definition(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    """The schema of one kind."""
    return next(
        one for one in map(resolved, schema.get("oneOf") or schema["anyOf"])
        if one.get("properties", {}).get("kind", {}).get("const") == kind
    )  # fmt: skip


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """What a reference stands for."""
    return definitions()[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def part(schema: dict[str, Any], rng: random.Random, **given: Any) -> Any:
    """Draw a value that a part of the schema admits; bounds of single numbers are kept, what joins several is not."""
    schema = resolved(schema)
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices and "properties" not in schema and schema.get("type") not in ("number", "integer"):
        return part(rng.choice(choices), rng, **given)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return {**_fields(schema, rng), **given}
    if kind in ("number", "integer"):
        return _number(schema, rng, whole=kind == "integer")
    if kind == "array":
        least = schema.get("minItems", 1)
        most = schema.get("maxItems", least + 1)
        return [part(schema.get("items", {}), rng) for _ in range(rng.randint(least, most))]
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "null":
        return None
    return rng.choice(schema.get("examples", ["a"]))


FILES = {
    "Matrix": {"path": "delays.csv"},
    "Trace": {"path": "up.csv", "others": "up"},
    "EdgeList": {"path": "edges.csv"},
    "Recorded": {"path": "order.csv"},
    "RecordParameters": {"every": 1.0},
}
"""Fields of parts of which schemas do not say which of several to give, and of kinds that read files."""


def _fields(schema: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    own = FILES.get(schema.get("title", ""), {})
    wanted = schema.get("required", ())
    found = {
        name: part(one, rng)
        for name, one in schema.get("properties", {}).items()
        if name in wanted or (name not in (*own, "activations", "order") and rng.random() < OPTIONAL)
    }
    return {**found, **own}


def _number(schema: dict[str, Any], rng: random.Random, *, whole: bool) -> float:
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above, below = schema.get("exclusiveMinimum", -math.inf), schema.get("exclusiveMaximum", math.inf)
    fits = [
        number for number in (*NUMBERS, *schema.get("examples", ()))
        if low <= number <= high and above < number < below and (not whole or number == int(number))
    ]  # fmt: skip
    return rng.choice(fits or [schema.get("default", low)])


def files(folder: Path) -> None:
    """A table of rows, edges, delays and absences of up to `MOST_AGENTS` agents."""
    agents = range(4)
    rows = [f"{owner},{0.1 * (owner + k)},{0.2 * k - 0.3},{k % 2}" for owner in agents for k in range(6)]
    ring = [f"{one},{(one + 1) % 4},1.0" for one in agents]
    tables = {
        "rows.csv": ["owner,first,second,label", *rows],
        "edges.csv": ["source,target,weight", *ring],
        "delays.csv": ["sender,receiver,delay", *(f"{a},{b},0.2" for a in range(8) for b in range(8) if a != b)],
        "order.csv": [str(rank % 4) for rank in range(40)],
        "up.csv": ["agent,up_from,up_to", "0,0,5", "1,1,4"],
    }
    for name, lines in tables.items():
        (folder / name).write_text("\n".join(lines) + "\n")
