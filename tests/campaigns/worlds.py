"""Random worlds on both engines: every protocol in all its modes, on any clock, network, topology and absence.

``python -m tests.campaigns.worlds [--seed 0] [--cases 2000] [--case 17]``. Each world runs on the event engine, where
onlookers see every event, and on the engine that ``auto`` picks, observed and not. What the
onlookers saw is checked against rules and timelines that are computed anew (`world_rules`, `world_timeline`): nothing
is lost or counted twice, read before it came, done while away, or charged wrongly; both ends of a session see the same
exchange; what a protocol promises to keep is kept; epsilon never falls and stays below its budget; the engines agree.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np

from .campaign import campaign, exit_with
from .world_cases import CASES, PROBING, Case, random_setting
from .world_history import History, Sample, Step, history_of
from .world_messages import Findings
from .world_privacy import Charges, check_privacy
from .world_rounds import Rounds
from .world_rules import Awake, Replay
from .world_sessions import Sessions

EVERY = [{"every": 0.7}, {"every": 2.0}, {"activations": 3}]
"""Record instants."""
PLANNED = re.compile(r"\((steps in batches|planned steps)")
"""What engines say that have planned a run's steps."""
PAIRS = {"gossip": "got", "edge_consensus_admm": "dual"}
"""Blocks of edges whose two ends sum to 0 after every session."""


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """One random world: what ran it, and what is wrong."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    everything = CASES + PROBING
    case = everything[int(numbers.integers(len(everything)))]
    setting = random_setting(case, numbers, folder)
    record = EVERY[int(numbers.integers(len(EVERY)))]
    if loud:
        print(case, setting.clock, setting.network, setting.availability, setting.stop, record, sep="\n")
        print("edges:", list(zip(setting.graph.tails.tolist(), setting.graph.heads.tolist(), strict=True)))
    try:
        return examine(case, setting, record, loud=loud)
    except Exception as error:
        if loud:
            raise
        return "raises", [f"raises: {type(error).__name__} with {case}: {str(error)[:300]}"]


def examine(case: Case, setting: Any, record: dict[str, Any], *, loud: bool = False) -> tuple[str, list[str]]:
    """Run a world on both engines; what kind of run it was, and what is wrong."""
    seen = history_of(case, setting, "event", record=record, observe=True, watch=True)
    if loud:
        for event in seen.events:
            print(event if not isinstance(event, Sample) else ("sample", event.now, event.tallies))
    wrong = checked(seen)
    other = history_of(case, setting, "auto", record=record, observe=False, watch=False)
    wrong += differences(seen, other)
    if not other.engine.startswith("event"):
        observed = history_of(case, setting, "auto", record=record, observe=True, watch=False)
        wrong += differences(seen, observed)
        wrong += checked_ends(observed)
    if loud:
        print(seen.engine, "|", other.engine, "|", seen.error or seen.ended)
    how = "in rounds" if case.in_rounds else "in sessions" if _in_sessions(case) else "on its own"
    return f"{how}, {'twice' if other.engine.startswith('event') else 'both engines'}", wrong


def _in_sessions(case: Case) -> bool:
    return case.protocol.traits_for(case.parameters).exchange == "pairwise"


def replay_of(history: History) -> Replay:
    """The rules of the schedule that a history was made in."""
    kind = Rounds if history.case.in_rounds else Sessions if _in_sessions(history.case) else Awake
    return kind(history)


def checked(history: History) -> list[str]:
    """What is wrong with a run that was fully looked at."""
    replay = replay_of(history)
    replay.run()
    charges = Charges(len(replay.agents))
    return [*replay.findings.sentences, *_charged(replay, charges), *_kept(replay), *checked_ends(history)]


def checked_ends(history: History) -> list[str]:
    """What is wrong with the samples of a run: broken invariants, and what privacy costs."""
    findings = Findings()
    check_privacy(history, findings)
    for entry in history.invariants:
        findings.expect(not entry["broken"], "invariant", str(entry))
    for sample in history.of(Sample):
        for unit in ("links", "bytes"):
            tally = dict(sample.tallies[unit])
            findings.expect(
                tally.pop("sent") == sum(tally.values()), "conservation", f"{unit} at {sample.now}: {tally}"
            )
    return findings.sentences


def _charged(replay: Replay, charges: Charges) -> list[str]:
    """Whether the ledger holds what left, no more and no less."""
    for release, draws, vector in replay.messages.charged:
        charges.add(release, draws, vector)
    last = replay.history.of(Sample)[-1]
    if list(last.releases) == charges.totals or replay.history.error:
        return []
    return [f"ledger: charged {list(last.releases)} and not {charges.totals}"]


def _kept(replay: Replay) -> list[str]:
    """What no network changes: sums over the two ends of an edge without an open session, and the mean of gossip."""
    history, wrong = replay.history, []
    if not isinstance(replay, Sessions) or history.error:
        return []
    blocks = history.of(Sample)[-1].blocks
    if history.case.kind in PAIRS:
        graph, values = history.setting.graph, blocks[f"edge {PAIRS[history.case.kind]}"]
        ends = values.reshape(len(replay.ends), len(values) // max(1, len(replay.ends)))
        apart = np.abs(ends + ends[graph.reverse]).max(axis=1, initial=0.0) > 1e-9 * (1 + np.abs(ends).max(initial=0.0))
        called = {pair for one in replay.open for pair in (one, one[::-1])}
        wrong += [f"symmetry: {end}" for end, off in zip(replay.ends, apart, strict=True) if off and end not in called]
    if history.case.kind == "gossip" and not replay.open:
        begun = [agent for agent in replay.agents if replay.messages.begun[agent]]
        start = np.sum([(agent, (1 + agent) ** 2) for agent in begun], axis=0) if begun else np.zeros(2)
        total = blocks["model"].reshape(-1, 2).sum(axis=0)
        if not np.allclose(total, start, rtol=1e-9):
            wrong.append(f"mean: the models sum to {total}, from {start}")
    return wrong


def differences(one: History, other: History) -> list[str]:
    """Where two engines disagree: steps and what they read, samples, ledgers, and how the run ended."""
    wrong = []
    ends = [(history.ended, history.error, history.now) for history in (one, other)]
    if ends[0] != ends[1]:
        wrong.append(f"engines: {ends[0]} and {ends[1]}")
    mine, theirs = ([step.trace for step in history.of(Step)] for history in (one, other))
    if theirs and mine != theirs:
        place = next((k for k, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), -1)
        wrong.append(f"engines: step {place} of {len(mine)} and {len(theirs)}: {mine[place]} and {theirs[place]}")
    samples = one.of(Sample), other.of(Sample)
    if len(samples[0]) != len(samples[1]):
        wrong.append(f"engines: {len(samples[0])} and {len(samples[1])} samples")
    for first, second in zip(*samples, strict=False):
        # Planned messages without noise, but for an agent's first, are charged at the end.
        counted = "releases" if first.final or not PLANNED.search(other.engine) else "charged"
        for name in ("now", "final", "activations", "updates", "started", "tallies", counted):
            if getattr(first, name) != getattr(second, name):
                wrong.append(f"engines: {name} at {first.now}: {getattr(first, name)} and {getattr(second, name)}")
        for name in first.blocks:
            if not np.array_equal(first.blocks[name], second.blocks[name], equal_nan=True):
                apart = np.abs(first.blocks[name] - second.blocks[name]).max()
                wrong.append(f"engines: block {name} at {first.now} is {apart} apart")
        for name in first.epsilons:
            if not np.array_equal(first.epsilons[name], second.epsilons.get(name), equal_nan=True):
                wrong.append(f"engines: {name} at {first.now}: {first.epsilons[name]}, {second.epsilons.get(name)}")
    if one.ledger != other.ledger:
        wrong.append(f"engines: ledgers {one.ledger} and {other.ledger}")
    return wrong[:4]


if __name__ == "__main__":
    exit_with(campaign("worlds", attempt, cases=2000))
