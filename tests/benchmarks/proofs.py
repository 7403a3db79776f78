"""What a proof of an own protocol costs, here against another checkout: ``python -m tests.benchmarks.proofs OTHER``.

Three honest protocols of ``tests/privacy/planted`` are run with and without their proof; the difference is the proof.
Both checkouts have a process each, and measure by turns, in processor time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
ROOMS = ("simulator", "agents", "protocols", "scenarios")
NAMES = (
    "descent/gaussian/poisson/replace-one",
    "tutorial/laplace/full/replace-one",
    "relaying/gamma/full/replace-one",
)
MOST = 1.3
"""How many times as long a proof may take here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each protocol; 1 if a proof takes longer than it may."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.proofs", description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        both = [_measuring(checkout, Path(folder) / str(rank)) for rank, checkout in enumerate((given.other, HERE))]
        found: dict[str, list[list[float]]] = {name: [] for name in NAMES}
        for turn in range(given.turns + 1):
            for name in NAMES:
                taken = [_asked(process, name) for process in both]
                if turn:  # what is compiled, imported or kept once is not measured
                    found[name].append(taken)
        for process in both:
            process.communicate()
    print(f"| protocol | {given.other} | here | times |", "| --- | --- | --- | --- |", sep="\n")
    ratios = []
    for name, turns in found.items():
        other, here = (statistics.median(column) for column in zip(*turns, strict=True))
        ratios.append(statistics.median(now / before for before, now in turns))
        print(f"| {name} | {other:.2f} s | {here:.2f} s | {ratios[-1]:.2f} |")
    return int(max(ratios) > MOST)


def _measuring(checkout: Path, folder: Path) -> subprocess.Popen[str]:
    """A process that measures with the package of a checkout, and the protocols of this one."""
    environment = environment_of(checkout, folder)
    command = [sys.executable, "-c", "from tests.benchmarks.proofs import measure; measure()"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=folder)


def environment_of(checkout: Path, folder: Path) -> dict[str, str]:
    """The environment in which the package is that of a checkout, by links in a new folder."""
    package = folder / "hushnet"
    package.mkdir(parents=True)
    for room in ROOMS:
        (package / room).symlink_to(checkout.resolve() / room)
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(HERE)))}


def _asked(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measure() -> None:
    """Print the seconds that the proof of each protocol takes whose name comes in."""
    from hushnet.simulator import run

    from ..privacy.planted import CASES

    variants = {variant.name: variant for case in CASES for variant in case.variants}
    for text in sys.stdin:
        variant, seconds = variants[text.strip()], []
        for contract in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                run(variant.scenario, protocols={"Own": variant.case.protocol}, out=folder, contract=contract)
                seconds.append(time.process_time() - began)
        print(seconds[0] - seconds[1], flush=True)


if __name__ == "__main__":
    sys.exit(main())
