"""Processor time of commands that only read, against that of importing what they are made of.

    python -m tests.benchmarks.startup

The least of several runs each, in turn; byte code is written before, as it is where hushnet is installed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

REPEATS = 5
IMPORTS = "import numpy, ruamel.yaml, typer; from pydantic import BaseModel; type('One', (BaseModel,), {})"
"""With one model: pydantic imports itself when it is used."""
COMMAND = "import sys; from hushnet.simulator.cli import main; sys.exit(main(sys.argv[1:]))"
PROGRAMS = {
    "imports": ["-c", IMPORTS],
    "list": ["-c", COMMAND, "list"],
    "schema": ["-c", COMMAND, "schema"],
    "check quickstart": ["-c", COMMAND, "check", "quickstart"],
}
MOST = {"list": 2.0, "schema": 2.8, "check quickstart": 2.8}
"""Times the imports that a command may take."""


def seconds(arguments: list[str], folder: str) -> float:
    """Processor time of one program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, and print a line each."""
    least = dict.fromkeys(PROGRAMS, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(REPEATS + 1):
            for name, arguments in PROGRAMS.items():
                least[name] = min(least[name], seconds(arguments, folder))
    for name, taken in least.items():
        ratio = taken / least["imports"]
        wanted = f", at most {MOST[name]:g}: {'yes' if ratio <= MOST[name] else 'NO'}" if name in MOST else ""
        print(f"{name:<18}{taken:.2f} s, {ratio:.1f} times the imports{wanted}")


if __name__ == "__main__":
    main()
