"""Composed scenarios through ``check``; accepted ones through ``run``.

``python -m tests.campaigns.composed [--seed 0] [--cases 2000] [--first 0] [--replay 17]``. A case composes
one, leaves out what ``check`` refuses until it calls the rest valid, and runs that. A failure is what is one of mutants
(`tests.campaigns.mutants`), and any refusal that comes after a run has been made.
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path

from hushnet.simulator.storage.files import yaml_text

from .campaign import campaign, command, exit_with
from .compositions import composed, mended
from .grounds import needs_what_was_drawn, noted
from .mutants import DRAWN_OUT, LIMITS, SECONDS, no_ink

TRIES = 12
"""Parts that are left out at most; of a hundred compositions three are refused still."""


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Compose a scenario that is valid, and run it."""
    path = folder / "composed.yaml"
    data = composed(rng, folder)
    for _ in range(TRIES):
        path.write_text(yaml_text(data))
        code, answer, wrong = command(["check", str(path)])
        if wrong:
            return "wrong in check", [f"check {failure}" for failure in wrong]
        if not code:
            break
        data = mended(data, answer.splitlines()[0])
    else:
        return "none valid", []
    if loud:
        print(path.read_text())
    out = folder / "out"
    with nullcontext() if rng.random() < DRAWN_OUT else no_ink(), noted() as errors:
        code, answer, failures = command(["run", str(path), "--out", str(out), "--quiet", *LIMITS], seconds=SECONDS)
    if loud:
        print(f"run: {code} {answer}")
    wrong = [f"run {failure}" for failure in failures]
    last = answer.splitlines()[-1][:300] if answer else ""
    if code == 2:
        made = (out / "index.json").exists()
        read = data["task"]["kind"] == "csv" or ".csv" in last  # a file has been looked into, as for its agents
        if made or not (read or (errors and all(map(needs_what_was_drawn, errors)))):
            wrong.append(f"valid in check, and refused by run{' after its runs' if made else ''}: {last}")
    return {0: "run", 2: "refused by run"}.get(code, f"run with code {code}"), wrong


if __name__ == "__main__":
    exit_with(campaign("composed", attempt, cases=2000))
