"""An audit of a scenario: noise as drawn, replay on worst pairs, a distinguishing game, and what they say together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...agents.errors import InputError
from ...protocols.privacy.mechanisms import mechanism_of, noise_of
from ...protocols.privacy.mechanisms.contract import Use, doubt
from ..compare.statistics import holm
from ..contract.neighbours import Beside, Domain, replaced
from ..contract.noise_seen import gathered
from ..contract.noise_tests import Check, checks
from ..contract.samples_seen import Witness, sampling_test
from ..contract.transcript import Recording
from ..contract.violation import ContractViolation
from ..experiment.plan import Experiment
from ..world.world import World
from .audit_statistics import Array, Bound, choose_test
from .counterexamples import counterexample
from .game import alone_ratios, constant_shifts
from .outcome import Game, Outcome
from .pairs import attacked_domain, bare
from .players import Play, players
from .profile import profile
from .realised import ReplayedPair, attacked, replay_pairs, replayed
from .verdicts import verdict
from .worlds import Subject, subjects

TIERS = ("A", "B", "C")
SEEDS = (None, 1, 2)
"""Luck of the runs whose noise is tested, and of those that have to agree about realised changes; None is the first
run's own."""
ROWS = 4
"""Rows of every agent that are changed, one after the other, to see in which samples they are."""
DRAWS = 100_000
"""Draws of the mechanism alone on either data set; 100 times the trials where these are more."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Options of an audit; raises `InputError` if one of them is not admissible."""

    tiers: tuple[str, ...] = TIERS
    """Tiers to run, some of A, B and C."""
    pairs: int = 8
    """Neighbouring data sets that are replayed for each protocol, >= 1."""
    trials: int = 50
    """Runs on each of two data sets, 0 or at least 2; at 0 tier C draws from the mechanism alone."""
    level: float = 0.01
    """Probability, at most, that any statement of the command is wrong, in (0, 1)."""
    jobs: int = 1
    """Number of processes that make the trials."""

    def __post_init__(self) -> None:
        unknown = [tier for tier in self.tiers if tier not in TIERS]
        if unknown or not self.tiers:
            raise InputError(f"--tier {','.join(self.tiers)}: must be some of {', '.join(TIERS)}, with commas between")
        if self.pairs < 1:
            raise InputError(f"--pairs {self.pairs}: must be at least 1")
        if self.trials < 0 or self.trials == 1:
            raise InputError(f"--trials {self.trials}: must be 0, or at least 2: some choose a threshold, others count")
        if not 0 < self.level < 1:
            raise InputError(f"--level {self.level:g}: must lie between 0 and 1")

    @property
    def share(self) -> float:
        """The level of each tier that is about chance."""
        return self.level / max(1, len({"A", "C"} & set(self.tiers)))


def audit(experiment: Experiment, options: Options, say: Say = lambda sentence: None) -> list[Outcome]:
    """Audit every private protocol of a scenario, in the world of its first run, and `say` what is going on.

    Raises `InputError` if the scenario has no private protocol.
    """
    found = subjects(experiment)
    if not found:
        name = experiment.loaded.scenario.scenario
        raise InputError(f"{name}: has no protocol with noise, so there is no epsilon to audit", field=("protocols",))
    return audit_subjects(found, options, experiment.loaded.base, say)


def audit_subjects(
    found: Sequence[Subject], options: Options, base: Path, say: Say = lambda sentence: None
) -> list[Outcome]:
    """Audit protocols, each in a world of its own, beside the files of a scenario at `base`; `say` what is going on."""
    with players(options.jobs, base) as play:
        own = [_audited(subject, options, play, say) for subject in found]
    outcomes = [outcome for outcome, _ in own]
    _judge_noise(outcomes, options.share)
    level = _judge_games(outcomes, options.share)
    for outcome, seen in own:
        if seen is not None:
            outcome.profile = profile(seen.world, seen.agent, outcome.delta, outcome.games, level)
    return outcomes


@dataclass(frozen=True)
class Seen:
    """The scenario's own first run of a protocol, and whom to attack first."""

    world: World
    agent: int


def _audited(subject: Subject, options: Options, play: Play, say: Say) -> tuple[Outcome, Seen | None]:
    """All tiers for one protocol; nothing that needs other protocols."""
    try:
        world, recording = subject.record(subject.task)
        domain = attacked_domain(world, recording)
    except ContractViolation as error:
        outcome = Outcome(subject.key, subject.label, subject.delta, math.nan, math.inf, data=subject.task.name)
        outcome.failures.append(f"the run itself: {error}")
        return outcome, None
    order, inside = attacked(world, subject.delta), world.protected
    claimed = float(world.ledger.epsilon("claimed", subject.delta)[inside].max())
    verified = float(world.ledger.verified(subject.delta)[inside].max())
    outcome = Outcome(subject.key, subject.label, subject.delta, claimed, verified, data=subject.task.name)
    outcome.notes.append(f"run as the scenario runs it, {world.engine}")
    if not order:
        outcome.notes.append("nobody released anything in the scenario's first run")
        return outcome, None
    outcome.counterexample = counterexample(subject, order[0])
    if "A" in options.tiers:
        say(f"{subject.label}: tier A, {len(SEEDS)} runs")
        recordings = [subject.record(subject.task, seed=seed)[1] for seed in SEEDS]
        outcome.checks = checks(gathered(recordings), rng=np.random.default_rng(0))
        outcome.checks += _sampling(subject, recordings, domain)
        used: dict[str, set[Use]] = {}
        for draw in (draw for draws in recording.draws.values() for draw in draws):
            release = draw.release
            use = Use(release.multiplier, release.sampling, draw.exact.shape[-1], release.scale)
            used.setdefault(release.mechanism, set()).add(use)
        doubts = (doubt(noise_of(name), uses) for name, uses in sorted(used.items()))
        outcome.failures += [f"tier A, {one}" for one in doubts if one]
        if not outcome.checks:
            outcome.notes.append("tier A: no noise is drawn through releases")
    replays: list[ReplayedPair] = []
    if {"B", "C"} & set(options.tiers):
        say(f"{subject.label}: tier B, {options.pairs} pairs")
        replays = replay_pairs(subject, order, options.pairs, domain, whole=world.ledger.units(order) != ("record",))
    if "B" in options.tiers:
        outcome.replays = replays
        outcome.failures += [
            f"tier B, agent {subject.task.ids[r.pair.agent]!r}, {r.pair.name}: {r.failure}"
            for r in replays
            if r.failure
        ]
    if "C" in options.tiers:
        outcome.games = _games(subject, recording, replays, options, outcome.notes, play, say)
    return outcome, Seen(world, order[0])


def _sampling(subject: Subject, recordings: Sequence[Recording], domain: Domain) -> list[Check]:
    """Test that records take part in samples no more often than is charged; empty where nothing is sampled."""
    witnesses, task = [Witness(recording) for recording in recordings], subject.task
    count = sum(witness.sampled for witness in witnesses)
    if not count:
        return []
    for witness, seed in zip(witnesses, SEEDS, strict=True):
        beside = Beside(0)
        for number in range(ROWS):
            rows = beside.next(task, range(task.agents))
            other = replaced(task, rows, domain.moderate, None, number=number, side=number % 2, whole=False)
            witness.saw(task, other, subject.led(other, witness.recording, seed=seed), rows)
    p, said = sampling_test(witnesses)
    return [Check("sampling of rows", count, p, said)]


def _games(
    subject: Subject,
    recording: Recording,
    replays: Sequence[ReplayedPair],
    options: Options,
    notes: list[str],
    play: Play,
    say: Say,
) -> list[Game]:
    """The games about the pair that was best told apart in the replays, which are other runs than are counted."""
    best = max(replays, key=lambda one: one.power, default=None)
    if best is None or not best.power > 0:
        notes.append("tier C: there is no pair whose replay moves a noisy value")
        return []
    releases = [draw.release for draw in recording.draws[best.pair.agent]]
    sampled = any(release.sampling < 1 for release in releases)
    if sampled and getattr(subject.parameters, "sampling", "uniform") != "uniform":
        notes.append("tier C: rows of Poisson samples have no likelihood from a few runs")
        return []
    if sampled:
        best = replayed(subject, bare(best.pair)) or best
    merged = all(mechanism_of(release.mechanism).gaussian for release in releases) and not sampled
    bound: Bound = "gdp" if merged else "clopper-pearson"
    found = []
    shifts = constant_shifts(subject, best.pair, SEEDS)
    if shifts is None:
        notes.append("tier C: realised changes depend on what was released, so that only runs say something (--trials)")
    else:
        rng = np.random.default_rng(1)
        ratios = alone_ratios(shifts, max(DRAWS, 100 * options.trials), rng=rng)
        found.append(_game("mechanism alone", best, ratios, best.verified, subject.delta, bound))
    if options.trials:
        say(f"{subject.label}: tier C, 2 x {options.trials} runs")
        ranks = [(rank, changed) for changed in (False, True) for rank in range(options.trials)]
        played = list(play(subject, best.pair, ranks))
        both = np.array([trial.ratio for trial in played]).reshape(2, options.trials)
        proved = max(trial.verified for trial in played)
        found.append(_game("runs", best, (both[0], both[1]), proved, subject.delta, bound))
    return found


def _game(
    kind: str, best: ReplayedPair, ratios: tuple[Array, Array], verified: float, delta: float, bound: Bound
) -> Game:
    test = choose_test(*ratios, delta=delta, bound=bound)
    return Game(kind, best.pair.name, best.pair.agent, ratios[0], ratios[1], test, best.claimed, verified, delta)


def _judge_noise(outcomes: Sequence[Outcome], level: float) -> None:
    """Add a failure for each test of noise rejected at the level, with Holm's correction over the entire command."""
    every = [(outcome, check) for outcome in outcomes for check in outcome.checks]
    if not every:
        return
    adjusted = holm([check.p for _, check in every])
    for (outcome, check), p in zip(every, adjusted.tolist(), strict=True):
        if p <= level:
            outcome.failures.append(f"tier A, {check.name}: {check.said} ({check.count} numbers, p = {check.p:.2g})")


def _judge_games(outcomes: Sequence[Outcome], level: float) -> float:
    """Bounds, verdicts and violations, all of the command's together; the level of a single bound.

    Half of the level is for the bounds that are printed, in equal shares; the other half for what is tested, by Holm's
    procedure: that epsilon is within what is claimed, and within what is verified.
    """
    every = [(outcome, game) for outcome in outcomes for game in outcome.games]
    each, names = level / 2 / max(1, len(every)), ("claimed", "verified")
    tested = [game.test.p_value(getattr(game, name), game.delta) for name in names for _, game in every]
    rejected = holm(tested) <= level / 2 if tested else np.zeros(0, dtype=bool)
    above = dict(zip(names, rejected.reshape(2, -1), strict=True))
    for outcome in outcomes:
        outcome.audited = math.inf if outcome.counterexample else 0.0
    for rank, (outcome, game) in enumerate(every):
        lower = game.at_least(each)
        if above["claimed"][rank]:
            lower = max(lower, game.claimed * (1 + 1e-9))
        outcome.audited = max(outcome.audited, lower)
        if above["verified"][rank]:
            outcome.failures.append(
                f"tier C, {game.kind}: epsilon is at least {max(lower, game.verified):.4g} at delta {game.delta:g}, "
                f"above the verified {game.verified:.4g}"
            )
    for outcome in outcomes:
        refuted = bool(outcome.counterexample) or any(
            hit for (owner, _), hit in zip(every, above["claimed"], strict=True) if owner is outcome
        )
        outcome.word = verdict(outcome.claimed, outcome.verified, lower=math.inf if refuted else 0.0)
    return each
