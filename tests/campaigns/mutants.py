"""Mutants of shipped scenarios, by grammar and by bytes, through ``check``; accepted ones, made small, through ``run``.

``python -m tests.campaigns.mutants [--seed 0] [--cases 1000] [--first 0] [--replay 17]``. A failure is a traceback, a
hang, an answer without bounds, much memory, an error that nobody foresaw, and what ``check`` calls valid and ``run``
refuses although it needed no data or graph to know (`tests.campaigns.grounds`).
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hushnet.agents.errors import HushnetError
from hushnet.simulator.figures import figure_files as files
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.language.yaml_source import read_file
from hushnet.simulator.limits.memory import check_machine
from hushnet.simulator.storage.files import json_text, yaml_text

from .campaign import campaign, command, exit_with
from .grounds import needs_what_was_drawn, noted
from .hostile import mutate

RUN = 0.2
"""Share of the mutants that are of a small scenario, and are run if they are accepted."""
HANDED = 0.85
"""Share of the others that are handed over as data; as text they take five times as long."""
DRAWN_OUT = 0.05
"""Share of the runs whose figures are written."""

SECONDS = 120
"""Processor time that a command has for all runs of an accepted scenario."""
LIMITS = ["--set", "limits.seconds=10", "--set", "limits.memory=1 GiB"]
"""Of a run. A scenario may ask for much, and then takes what it asks for; what it is granted has to be kept to, memory
to within a factor of two, as estimates are."""

SMALL: dict[str, dict[str, Any]] = {
    "linear_classification": {"agents": 5, "dimension": 3, "samples": [4, 6], "test_samples": 3},
    "mean_estimation": {"agents": 5, "samples": 4},
    "synthetic_ratings": {"users": 6, "items": 8, "ratings": [4, 6], "features": 2, "rank": 2, "als_iterations": 2},
    "epsilon_like": {"agents": 5, "loss": "logistic", "samples": 10, "dimension": 4, "test_samples": 2},
    "gisette_like": {"rows": 40, "test_rows": 10, "dimension": 6, "factors": 2},
}


@cache
def scenarios() -> list[dict[str, Any]]:
    """The shipped scenarios as plain data."""
    return [read_file(path).data for path in shipped().values()]


def small(data: dict[str, Any]) -> dict[str, Any]:
    """A scenario that takes a moment: few agents, short runs, one seed; files that are not there are stand-ins."""
    kinds = {"a9a": "gisette_like", "gisette": "gisette_like", "epsilon": "epsilon_like", "adult": "epsilon_like",
             "movielens": "synthetic_ratings"}  # fmt: skip
    task: dict[str, Any] = {
        key: value for key, value in data["task"].items() if key not in ("path", "size_ratio", "shuffle", "rows")
    }
    task["kind"] = kinds.get(task["kind"], task["kind"])
    made = copy.deepcopy(SMALL.get(task["kind"], {}))
    if isinstance(task.get("split"), dict):
        split = task["split"]
        made["split"] = (
            {"by": "columns", "parts": [2, 2, 2]} if split.get("by") == "columns" else {"by": "rows", "agents": 6}
        )
    elif "split" in task:
        task.pop("split")
    allowed = {"loss", "regularisation", "points", "label_noise", "feature_scaling", "spread", "variance"}
    if task["kind"] == "epsilon_like":  # many tasks are read from files; it stands for them
        allowed -= {"regularisation", "loss"}
    task = {key: value for key, value in task.items() if key in allowed} | {"kind": task["kind"], **made}
    for name in ("sweep", "tune", "quick"):
        data.pop(name, None)
    axes = ("time", "activations", "vectors", "updates", "protocol", "epsilon_verified")
    data["figures"] = [
        figure
        for figure in data.get("figures", [])
        if not {"rows", "at", "target"} & set(figure)
        and figure.get("kind") != "sweep"
        and figure.get("x", "time") in axes
        and figure.get("facet", "protocol") == "protocol"
    ]
    for protocol in data["protocols"].values():
        if "loss_weight" in protocol:  # which is for thousands of rows
            protocol["loss_weight"] = 1.0
    data["topology"] = {**data["topology"], "allow_isolated": True, "allow_disconnected": True}
    if data["topology"]["kind"] == "knn":
        data["topology"]["k"] = 2
    return {**data, "task": task, "stop": {"time": 3.0}, "seeds": 1, "engine": "event"}


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Mutate a scenario, check it, and run it if it is valid and small."""
    data = copy.deepcopy(rng.choice(scenarios()))
    to_run = rng.random() < RUN
    if to_run:
        data = small(data)
    said = [mutate(data, rng, scenarios()) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    if not to_run and rng.random() < HANDED:
        if loud:
            print(json_text(data))
        code, wrong = handed(data)
        return ("refused" if code else "valid"), [f"{'; '.join(said)}: check {failure}" for failure in wrong]
    text = (yaml_text if rng.random() < 0.5 else json_text)(data).encode("utf-8", "surrogatepass")
    if not to_run and rng.random() < 0.5:
        content = bytearray(text)
        for _ in range(rng.choice([1, 3, 10])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        text, said = bytes(content), ["bytes"]
    path = folder / "mutant.yaml"
    path.write_bytes(text)
    code, answer, wrong = command(["check", str(path)])
    what = "; ".join(said)
    if loud:
        print(text.decode("utf-8", "replace"), f"{what}: check: {code} {answer}", sep="\n")
    wrong = [f"{what}: check {failure}" for failure in wrong]
    if code or not to_run or wrong:
        return "refused" if code else "valid", wrong
    limits = [] if "limits" in data else LIMITS
    with nullcontext() if rng.random() < DRAWN_OUT else no_ink(), noted() as errors:
        arguments = ["run", str(path), "--out", str(folder / "out"), "--quiet", *limits]
        code, answer, failures = command(arguments, seconds=SECONDS)
    if loud:
        print(f"{what}: run: {code} {answer}")
    wrong += [f"{what}: run {failure}" for failure in failures]
    if code == 2 and not (errors and all(map(needs_what_was_drawn, errors))):
        wrong.append(f"{what}: valid in check, and refused by run: {answer.splitlines()[-1][:300]}")
    return {0: "run", 2: "refused by run"}.get(code, f"run with code {code}"), wrong


def handed(data: dict[str, Any]) -> tuple[int, list[str]]:
    """What ``check`` does with a scenario, without its text and the shell, which take most of the time."""

    def check(arguments: list[str]) -> int:
        try:
            loaded = load(data)
            check_machine(loaded)
        except HushnetError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        return 0

    code, _, wrong = command([], main=check)
    return code, wrong


@contextmanager
def no_ink() -> Iterator[None]:
    """Figures are computed and laid out, and not written: most of the time of a short run."""
    before = files.draw
    files.draw = lambda *_: SimpleNamespace(savefig=lambda *_, **__: None)  # pyright: ignore
    try:
        yield
    finally:
        files.draw = before


if __name__ == "__main__":
    exit_with(campaign("mutants", attempt, cases=1000))
