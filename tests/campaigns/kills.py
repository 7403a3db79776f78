"""Kill -9 of ``hushnet run`` at any instant, again and again in one folder, and run again until all is done.

``python -m tests.campaigns.kills [--seed 0] [--cases 200] [--replay 17]``. A case is five kills. Killed is the
parent, a worker or everybody, with ``--jobs`` 1 and 2, at an operation with a file (before, within or after it) of a
number that is drawn, or after a share of the time that the whole sweep takes; sometimes by SIGTERM. Then no run that
was there is lost or written again, none is half written, no process outlives its parent, no lock is in the way, and
the folder has in the end what it has undisturbed, byte by byte.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import psutil

from . import small
from .bench import bench, close
from .campaign import campaign, exit_with
from .forked import FROM_A_FORK, Ended

KILLS = 5
"""Kills of a case."""
LONG = 600.0
"""Seconds after which a process that should end never will, on whatever machine."""
GOAL = 10.0
"""Seconds after which it should have ended on a machine that has nothing else to do."""
SPAWNED = 0.1
"""Share of the cases with workers in which these import everything anew."""

POLITE = 0.15
"""Share of the kills that are SIGTERM."""

tally: Counter[str] = Counter()
longest = [0.0]


class Case:
    """One folder, and those who are killed while they write there."""

    def __init__(self, rng: random.Random, folder: Path, *, loud: bool = False, jobs: int | None = None) -> None:
        self.rng, self.bench, self.loud = rng, bench(), loud
        self.name = rng.choice(["swept", "swept", "swept", "tuned", "own"])
        self.jobs = jobs or rng.choice([1, 1, 2])
        self.method = "spawn" if self.jobs == 2 and rng.random() < SPAWNED else "forkserver"
        self.out = folder / "out"
        self.scenario = small.write(folder, self.name)
        self.expected = self.bench.undisturbed(self.name)
        self.operations, self.seconds = self.bench.length(self.name)
        self.there: dict[Path, bytes] = {}
        self.wrong: list[str] = []

    def run(self) -> None:
        """Kill, look, and go on."""
        killed = 0
        while killed < KILLS and not self.wrong:
            done = self.disturbed(KILLS - killed)
            killed += done
            if not done and killed < KILLS:  # all was there before the kill: some runs have to be made anew
                self.forget()
        if not self.wrong:
            self.finish()

    def disturbed(self, left: int) -> int:
        """Start the command, have somebody killed, and see what is there; how many were killed."""
        rng, operations = self.rng, self.bench.operations
        operations.watch(self.out)
        plan, timed = [], rng.random() < 0.3
        kind = signal.SIGTERM if rng.random() < POLITE else signal.SIGKILL
        who = rng.choice(["parent", "worker", "worker", "all"]) if self.jobs > 1 else "parent"
        if not timed:
            at = 0
            for _ in range(min(left, rng.choice([1, 1, 2, 3])) if who == "worker" else 1):
                at += rng.randint(1, max(1, int(self.operations * rng.choice([0.1, 0.5, 1.0]))))
                how = rng.choice(["before", "halfway", "halfway", "after"])
                operations.kill(at, who, how, kind, lot := rng.randrange(8))
                plan.append((at, who, how, lot))
        pid = self.bench.server.start(
            small.arguments(self.scenario, self.out, self.jobs),
            environment={FROM_A_FORK: self.method} if self.jobs > 1 else {},
        )
        done = 0
        if timed:
            share = rng.random()
            plan.append((f"{share:.3f} of the time", who))
            done = self._after(pid, share, who, kind)
        ended = self.bench.server.end()
        operations.rest()
        done += operations.kills
        self.say(f"{self.name}, --jobs {self.jobs} ({self.method}): {plan}: {done} killed, code {ended.code}")
        tally[f"{who} by {kind.name}"] += done
        self.judge(ended, who, kind, done, {0, -kind} if timed else {-kind})
        processes = operations.processes
        if rng.random() < 0.5:
            self.gone(processes)
        self.look()
        return done

    def _after(self, pid: int, share: float, who: str, kind: int) -> int:
        """Kill after a share of the time that the undisturbed sweep takes, if there is still somebody."""
        end = time.monotonic() + share * self.seconds * (1 if self.jobs == 1 else 2)
        while time.monotonic() < end and _alive(pid):
            time.sleep(0.005)
        others = [other for other in self.bench.operations.processes if other != pid and not _keeps_names(other)]
        chosen = {"parent": [pid], "worker": self.rng.sample(others, min(1, len(others))), "all": [*others, pid]}[who]
        done = 0
        for one in chosen:
            if _alive(one):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, kind)
                    done = 1
        return done

    def judge(self, ended: Ended, who: str, kind: int, done: int, killed: set[int]) -> None:
        """Whether the command ended as it should; with which codes one may that was killed."""
        innocent = "killed its worker 3 times" in ended.said  # hit thrice in one sweep, as a guilty one would be
        if done and who != "worker" and kind == signal.SIGKILL:
            if ended.code not in killed:
                self.wrong.append(f"ends with code {ended.code}: {ended.said[-300:]}")
        elif done and kind == signal.SIGTERM:
            if ended.code not in (0, 128 + kind, -kind) and not (ended.code == 1 and innocent):
                self.wrong.append(f"SIGTERM ends it with code {ended.code}: {ended.said[-300:]}")
        elif ended.code != 0 and not (done and ended.code == 1 and innocent):
            self.wrong.append(f"ends with code {ended.code}: {ended.said[-300:]}")
        if "Traceback" in ended.said + ended.out:
            self.wrong.append(f"shows a traceback: {ended.said[-600:]}")

    def gone(self, processes: list[int]) -> None:
        """Wait until nobody is left."""
        began = time.monotonic()
        left = {pid for pid in processes if _alive(pid)}
        while left and time.monotonic() < began + LONG:
            time.sleep(0.02)
            left = {pid for pid in left if _alive(pid)}
        took = time.monotonic() - began
        longest[0] = max(longest[0], took)
        tally[f"orphans after {GOAL:g} s"] += took > GOAL
        if left:
            self.wrong.append(f"{len(left)} processes are left")

    def look(self) -> None:
        """See that no run is lost, half written or written anew."""
        try:
            now = small.runs(self.out)
        except AssertionError as error:
            self.wrong.append(str(error))
            return
        for path, manifest in self.there.items():
            if path not in now:
                self.wrong.append(f"{path.name} is lost")
            elif now[path] != manifest:
                self.wrong.append(f"{path.name} was written anew")
        self.there = now

    def forget(self) -> None:
        """Remove some runs, as if they had never been made."""
        for path in sorted(self.there):
            if self.rng.random() < 0.7:
                shutil.rmtree(path)
                del self.there[path]

    def finish(self) -> None:
        """Run without being disturbed, and compare."""
        operations = self.bench.operations
        operations.watch(self.out)
        ended = self.bench.server.run(small.arguments(self.scenario, self.out))
        operations.rest()
        if ended.code:
            self.wrong.append(f"the last resume ends with code {ended.code}: {ended.said[-300:]}")
            return
        self.look()
        self.wrong += small.different(self.expected, self.out)

    def say(self, what: str) -> None:
        """Show it, if this is a replay."""
        if self.loud:
            print(what, flush=True)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _keeps_names(pid: int) -> bool:
    """Whether it is Python's own, which no command has to do without: what semaphores are to be removed in the end."""
    try:
        return any("resource_tracker" in word for word in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Five kills in one folder."""
    case = Case(rng, folder, loud=loud)
    case.run()
    return f"{case.name}, --jobs {case.jobs}", [f"{case.name}, --jobs {case.jobs}: {what}" for what in case.wrong]


if __name__ == "__main__":
    try:
        code = campaign("kills", attempt, cases=200, here=True)
        print(f"kills: {dict(tally)}; the last orphan ended after {longest[0]:.1f} s")
    finally:
        close()
    exit_with(code)
