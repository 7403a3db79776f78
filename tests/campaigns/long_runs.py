"""Long runs: an experiment of thousands of runs, and a run of 100 million events; memory and descriptors stay flat.

``python -m tests.campaigns.long_runs [--only sweep|events] [--runs 10000] [--jobs 1] [--events 100000000] [--seed 0]``

The sweep is the command ``hushnet run`` in a process of its own. It is watched from outside until it has ended, its
dataset, summary and figure included; then the commands that read such a folder are. The long run writes down by itself
what it has at every record instant. Memory is what is resident; what counts is how it grows from a fifth of the runs
(events) on, however long they take.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

PLACES, INSTANTS = 26, 50
SWEEP = """\
schema: 1
scenario: long-sweep
task: {{kind: linear_classification, agents: 3, dimension: 2, samples: [4, 6], test_samples: 3}}
topology: {{kind: complete}}
protocols: {{a: {{kind: local}}, b: {{kind: solitary, steps: 1}}}}
stop: {{time: 2}}
record: {{every: 1.0, metrics: [accuracy, traffic]}}
engine: event
seeds: {seeds}
sweep: {{clock.rate: {{from: 1.0, to: 1.5, step: 0.02}}}}
figures:
  - {{y: accuracy, x: time, facet: protocol}}
"""
EVENTS = """\
schema: 1
scenario: long-run
task: {{kind: mean_estimation, agents: 10}}
topology: {{kind: ring, reach: 1}}
network: {{latency: {{kind: exponential, mean: 0.2}}, loss: 0.05}}
clock: {{kind: poisson, rate: 10.0}}
protocols: {{mp: {{kind: model_propagation, alpha: 0.5}}}}
stop: {{time: {time}}}
record: {{every: {every}, metrics: [traffic]}}
engine: batched
seeds: [{seed}]
"""
EVENTS_A_UNIT = 120
"""Wake-ups and copies on links of that world in a unit of time."""
CHILD = """\
import sys
from pathlib import Path
from hushnet.simulator.experiment import Experiment, perform
from hushnet.simulator.language.loading import load
import psutil

own = psutil.Process()

def show(world):
    events = world.events
    print(events, own.memory_info().rss, own.num_fds(), flush=True)

if failures := perform(Experiment(load(Path(sys.argv[1])), Path(sys.argv[2])), on_sample=show):
    raise failures[0]
"""

MOST_GROWTH = 24 * 2**20
"""Bytes of memory, from a fifth of the way to its end: 3 kB for each of 8,000 runs."""
MOST_FILES = 8
"""Descriptors that may come and go at any time: those of tables that are synced together."""
MOST_MEMORY = 500 * 10**6
"""Bytes of memory of a process that runs, or reads, 10,000 runs."""
READERS = (("plot",), ("compare",), ("report",), ("bundle",))


@dataclass(frozen=True)
class Sample:
    """What a process had at a time.

    Parameters
    ----------
    done : int
        Runs or events.
    memory : int
        Bytes.
    files : int
        Open descriptors.
    """

    done: int
    memory: int
    files: int


def watched(command: Sequence[str], folder: Path, *, every: float = 0.2) -> tuple[list[Sample], int, str]:
    """Run a command and look at its process until it ends; samples by finished runs, exit code, what it said."""
    samples: list[Sample] = []
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        seen = psutil.Process(process.pid)
        while process.poll() is None:
            done = len(os.listdir(folder)) if folder.exists() else 0
            try:
                samples.append(Sample(done, seen.memory_info().rss, seen.num_fds()))
            except psutil.Error:
                break
            time.sleep(every)
        code = process.wait()
        said.seek(0)
        return samples, code, said.read().decode(errors="replace")


def judged(name: str, samples: Sequence[Sample], whole: int) -> list[str]:
    """What is wrong with how memory and descriptors went while so much was done."""
    early = [sample for sample in samples if 0.1 * whole <= sample.done <= 0.2 * whole]
    late = [sample for sample in samples if 0.2 * whole < sample.done <= whole]
    if not early or not late:
        return [f"{name}: was too short to be watched, {len(samples)} samples"]
    growth = max(sample.memory for sample in late) - max(sample.memory for sample in early)
    files = max(sample.files for sample in late) - min(sample.files for sample in early)
    least, most = min(sample.memory for sample in early), max(sample.memory for sample in late)
    print(
        f"{name}: {len(samples)} samples; {megabytes(least)} to {megabytes(most)} after a tenth of {whole:,}, growth "
        f"from a fifth on {megabytes(growth)}; at most {max(sample.files for sample in late)} descriptors",
        flush=True,
    )
    wrong = [f"{name}: memory grows by {megabytes(growth)}"] if growth > MOST_GROWTH else []
    return wrong + ([f"{name}: {files} more descriptors"] if files > MOST_FILES else [])


def megabytes(number: int) -> str:
    """Bytes in words."""
    return f"{number / 2**20:.0f} MiB"


def sweep(folder: Path, *, runs: int, jobs: int, seed: int, readers: Sequence[Sequence[str]] = READERS) -> list[str]:
    """An experiment of so many runs, rounded up to whole seeds, and the commands that read it; what was wrong."""
    seeds = -(-runs // (2 * PLACES))
    scenario, out = folder / "sweep.yaml", folder / "sweep"
    scenario.write_text(SWEEP.format(seeds=list(range(seed, seed + seeds))))
    hushnet = [sys.executable, "-m", "hushnet.simulator.cli"]
    arguments = ["run", str(scenario), "--out", str(out), "--quiet", "--jobs", str(jobs)]
    samples, code, said = watched([*hushnet, *arguments], out)
    wrong = [f"run ends with {code}: {said[-300:]}"] if code else []
    wrong += judged(f"{2 * PLACES * seeds:,} runs, {jobs} jobs", samples, 2 * PLACES * seeds)
    wrong += _peak("run, with dataset, summary and figure", samples)
    for reader in readers:
        more = ["--out", str(folder / f"{reader[0]}.out")] if reader[0] in ("report", "bundle") else []
        samples, code, said = watched([*hushnet, *reader, str(out), *more], out)
        wrong += [f"{reader[0]} ends with {code}: {said[-300:]}"] if code else []
        wrong += _peak(reader[0], samples)
    return wrong


def events(folder: Path, *, number: int, seed: int) -> list[str]:
    """One run of about so many events on the compiled engine; what was wrong."""
    scenario = folder / "events.yaml"
    end = max(number // EVENTS_A_UNIT, INSTANTS)
    scenario.write_text(EVENTS.format(time=end, every=end / INSTANTS, seed=seed))
    command = [sys.executable, "-c", CHILD, str(scenario), str(folder / "events")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    samples = [Sample(*map(int, line.split())) for line in done.stdout.splitlines()]
    wrong = [f"the long run ends with {done.returncode}: {done.stderr[-300:]}"] if done.returncode else []
    made = samples[-1].done if samples else 0
    wrong += [f"the long run has {made:,} of {number:,} events"] if made < number else []
    return wrong + judged(f"{made:,} events", samples, made)


def _peak(name: str, samples: Sequence[Sample]) -> list[str]:
    peak = max((sample.memory for sample in samples), default=0)
    print(f"{name}: at most {megabytes(peak)}", flush=True)
    return [f"{name}: needs {megabytes(peak)}"] if peak > MOST_MEMORY else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run both, and print the account; exit code 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.long_runs")
    parser.add_argument("--only", choices=("sweep", "events"))
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--events", type=int, default=10**8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to write; the system's temporary folder by default")
    options = parser.parse_args(arguments)
    wrong: list[list[str]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        if options.only != "events":
            wrong.append(sweep(Path(made), runs=options.runs, jobs=options.jobs, seed=options.seed))
        if options.only != "sweep":
            wrong.append(events(Path(made), number=options.events, seed=options.seed))
    for line in (line for lines in wrong for line in lines):
        print(line)
    failures = sum(map(bool, wrong))
    print(f"long_runs: seed {options.seed}, {len(wrong)} attempts, {failures} failures", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
