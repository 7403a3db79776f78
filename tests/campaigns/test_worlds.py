"""Random worlds keep the rules, every protocol in every mode; a planted mistake breaks the rule that it should."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.protocols.base import Peer
from hushnet.protocols.privacy.ledger import Ledger
from hushnet.simulator.engine import driver
from hushnet.simulator.engine.batched.batched_driver import BatchedDriver
from hushnet.simulator.engine.event import event_broadcasts as event_broadcasts
from hushnet.simulator.engine.event import event_driver as event_driver
from hushnet.simulator.engine.event import event_sessions as event_sessions
from hushnet.simulator.network.links import lasting
from hushnet.simulator.network.network import Network
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.rules.compute_rules import begin_computing
from hushnet.simulator.rules.delivery import arrive, deliver
from hushnet.simulator.rules.forms import PlainRules
from hushnet.simulator.rules.round_messages import release
from hushnet.simulator.tables.effects import ARRIVAL, ARRIVE, TIMER
from hushnet.simulator.tables.session_table import AGAIN, ANSWER, ASKED
from hushnet.simulator.tables.tallies import DELIVERED, LOST, OVERTAKEN
from hushnet.simulator.world.stop_condition import StopCondition
from hushnet.simulator.world.transport import Transport
from hushnet.simulator.world.world import World

from ..protocols.worlds import AWAY, BAD, setting_of
from . import mixed_worlds, worlds
from .world_cases import CASES, NOISY, PROBING, Case, random_setting

EVERYTHING = [*CASES, *PROBING]


@pytest.mark.parametrize("number", range(len(EVERYTHING)), ids=[f"{c.kind}-{n}" for n, c in enumerate(EVERYTHING)])
def test_a_random_world_keeps_the_rules_on_both_engines(number, tmp_path):
    """Seeded: one world each; ``python -m tests.campaigns.worlds`` runs thousands."""
    case = EVERYTHING[number]
    setting = random_setting(case, np.random.default_rng([14, number]), tmp_path)
    assert worlds.examine(case, setting, worlds.EVERY[number % len(worlds.EVERY)])[1] == []


def test_a_case_of_the_campaign_can_be_replayed(tmp_path, capsys):
    outcomes = [worlds.attempt(random.Random("0-3"), tmp_path, loud) for loud in (False, True)]
    assert outcomes[0] == outcomes[1]
    assert "Case(kind=" in capsys.readouterr().out


# Planted mistakes; each takes pytest's monkeypatch.


def other_rule(patch, name, rule):
    """Let the event engine run another rule of that name, in plain Python."""
    found = PlainRules.__call__
    patch.setattr(PlainRules, "__call__", lambda self, made: rule if made.__name__ == name else found(self, made))


def a_delivery_is_not_counted(patch):
    honest = arrive

    def forgetful(run, *copy):
        honest(run, *copy)
        run.counts[DELIVERED] -= run.counts[DELIVERED] == 20

    other_rule(patch, "arrive", forgetful)


def a_loss_is_counted_twice(patch):
    def twice(self, run, *copy):
        delay = fate(self, run, *copy)
        run.counts[LOST] += delay == math.inf and run.counts[LOST] == 5
        return delay

    fate = event_driver.EventDriver.fate
    patch.setattr(event_driver.EventDriver, "fate", twice)


def messages_arrive_early(patch):
    made = event_driver.RuleEvent

    def early(env, time, rank, *asked):
        return made(env, env.now + (time - env.now) / 2 if rank == ARRIVAL else time, rank, *asked)

    patch.setattr(event_driver, "RuleEvent", early)


def a_delay_is_drawn_otherwise(patch):
    def planted(honest):
        def other(self, sender, to, tick, transmission, now, size):
            return honest(self, sender, to, tick + (tick == 4), transmission, now, size)

        return other

    for name in ("delay_and_loss", "delays_and_losses"):
        patch.setattr(Network, name, planted(getattr(Network, name)))


def the_last_to_arrive_is_read(patch):
    honest = deliver

    def late(run, slot, *copy):
        run.slots.heard_order[slot] = -1
        return honest(run, slot, *copy)

    other_rule(patch, "deliver", late)


def everybody_wakes(patch):
    patch.setattr(event_driver.EventDriver, "is_awake", lambda self, agent: not agent.silent)


def an_agent_oversleeps(patch):
    step = event_driver.EventDriver.step
    patch.setattr(event_driver.EventDriver, "step", lambda self, agent: agent.tick != 6 and step(self, agent))


def nobody_is_told_at_the_start(patch):
    patch.setattr(Transport, "exchange_start", lambda self, agent, *, joining: None)


def everybody_is_there_from_the_start(patch):
    churn = driver.churn

    def early(setting, numbers):
        joins, *others = churn(setting, numbers)
        return [0.0] * len(joins), *others

    patch.setattr(driver, "churn", early)


def a_run_goes_on(patch):
    patch.setattr(StopCondition, "check_vectors", lambda self, vectors: None)


def everybody_is_there(patch):
    patch.setattr(event_driver.EventDriver, "is_up", lambda self, *_: True)


def other_completion(patch, heard):
    """Callers complete with ``heard(vector)`` in place of the vector that they hear; not at all where that is None."""
    meet = World.meet

    def other(self, phase, agent, edge, vector):
        told = heard(vector) if phase == "complete" else vector
        return None if told is None else meet(self, phase, agent, edge, told)

    patch.setattr(World, "meet", other)


def a_caller_does_not_move(patch):
    other_completion(patch, lambda vector: None)


def a_caller_moves_another_way(patch):
    other_completion(patch, lambda vector: 1.001 * vector)


def a_callee_moves_twice(patch):
    change = event_sessions.EventSessions._change

    def again(self, rule, *arguments):
        edge = int(self.tables.counts[AGAIN])
        if rule is self._follow_up and edge >= 0 and self.tables.sessions[edge, ANSWER] >= 0:
            graph = self.world.setting.graph
            callee, caller = int(graph.heads[edge]), int(graph.tails[edge])
            vector = self.transport.vector_of(int(self.tables.sessions[edge, ASKED]), "request", caller)
            self.world.meet("respond", self.world.agents[callee], int(graph.reverse[edge]), vector)
        return change(self, rule, *arguments)

    patch.setattr(event_sessions.EventSessions, "_change", again)


def crossing_requests_are_both_accepted(patch):
    other_rule(patch, "is_outranked", lambda run, tables, edge: False)


def nobody_repeats_a_request(patch):
    other_rule(patch, "is_hopeless", lambda run, tables, edge: True)


def nobody_goes_down(patch):
    other_rule(patch, "on_available", lambda run, tables, agent, up, gone: None)


def a_round_begins_early(patch):
    other_rule(patch, "holds", lambda tables, slot, number: True)


def nothing_is_acknowledged(patch):
    other_rule(patch, "acknowledge", lambda run, tables, record: None)


def nothing_is_repeated(patch):
    def never(run, tables, record):
        release(run, tables, record)

    other_rule(patch, "on_repeat", never)


def a_ledger_forgets(patch):
    commit = Ledger.commit

    def forgetful(self, release, vector=None):
        return self._totals[release.agent] != 2 and commit(self, release, vector)

    patch.setattr(Ledger, "commit", forgetful)


def a_budget_has_no_end(patch):
    patch.setattr(Ledger, "reserve", lambda self, release: True)
    patch.setattr(Peer, "fall_silent_", lambda self: None)


def an_epsilon_falls(patch):
    epsilon = Ledger.epsilon

    def shrinking(self, which, delta):
        self.asked = getattr(self, "asked", 0) + 1
        return epsilon(self, which, delta) / self.asked

    patch.setattr(Ledger, "epsilon", shrinking)


def the_other_engine_counts_otherwise(patch):
    settle = BatchedDriver.settle

    def more(self, *, final):
        settle(self, final=final)
        self.transport.tables.counts[OVERTAKEN] += 1

    patch.setattr(BatchedDriver, "settle", more)


STAMP, GOSSIP, IN_ROUNDS = Case("stamp"), Case("gossip"), Case("stamp in rounds")
PRIVATE = Case("coordinate_descent", {"mu": 0.5, "privacy": NOISY})
LATE = OnOff(kind="on_off", online=0.7, mean_down=2.0, joins=Window(share=0.7, between=[2.0, 6.0]))
PLANTED = [
    (everybody_is_there, STAMP, AWAY, "absence"),
    (everybody_is_there, GOSSIP, AWAY, "absence"),
    (nobody_goes_down, IN_ROUNDS, AWAY, "absence"),
    (a_delivery_is_not_counted, STAMP, AWAY, "conservation"),
    (a_delivery_is_not_counted, IN_ROUNDS, AWAY, "conservation"),
    (a_loss_is_counted_twice, STAMP, AWAY, "conservation"),
    (messages_arrive_early, STAMP, AWAY, "causality"),
    (a_delay_is_drawn_otherwise, GOSSIP, AWAY, "fate"),
    (the_last_to_arrive_is_read, STAMP, AWAY, "reading"),
    (everybody_wakes, STAMP, AWAY, "absence"),
    (everybody_wakes, GOSSIP, AWAY, "absence"),
    (an_agent_oversleeps, STAMP, AWAY, "clock"),
    (nobody_is_told_at_the_start, STAMP, LATE, "reading"),
    (everybody_is_there_from_the_start, STAMP, LATE, "absence"),
    (a_run_goes_on, STAMP, AWAY, "stop"),
    (a_caller_does_not_move, GOSSIP, AWAY, "sessions"),
    (a_caller_does_not_move, Case("edge_consensus_admm"), AWAY, "sessions"),
    (a_caller_moves_another_way, GOSSIP, AWAY, "symmetry"),
    (a_caller_moves_another_way, Case("edge_consensus_admm"), AWAY, "symmetry"),
    (a_callee_moves_twice, GOSSIP, AWAY, "sessions"),
    (crossing_requests_are_both_accepted, GOSSIP, AWAY, "sessions"),
    (nobody_repeats_a_request, GOSSIP, AWAY, "sessions"),
    (a_round_begins_early, IN_ROUNDS, AWAY, "rounds"),
    (nothing_is_acknowledged, IN_ROUNDS, AWAY, "sends"),
    (nothing_is_repeated, IN_ROUNDS, AWAY, "rounds"),
    (a_ledger_forgets, PRIVATE, Always(kind="always"), "ledger"),
    (a_budget_has_no_end, PRIVATE, Always(kind="always"), "epsilon"),
    (an_epsilon_falls, PRIVATE, Always(kind="always"), "epsilon"),
    (the_other_engine_counts_otherwise, PRIVATE, Always(kind="always"), "engines"),
]


def planted_in(case, availability):
    stop = Stop(time=20.0, vectors=180 if case is STAMP else None)
    return worlds.examine(case, setting_of(availability=availability, stop=stop, **BAD), {"every": 0.7})[1]


@pytest.mark.parametrize(("case", "availability"), {(id(c), id(a)): (c, a) for _, c, a, _ in PLANTED}.values())
def test_worlds_without_a_mistake_keep_the_rules(case, availability):
    assert planted_in(case, availability) == []


@pytest.mark.parametrize(("plant", "case", "availability", "rule"), PLANTED, ids=[p.__name__ for p, *_ in PLANTED])
def test_a_planted_mistake_breaks_its_rule(plant, case, availability, rule, monkeypatch):
    plant(monkeypatch)
    found = {sentence.partition(":")[0] for sentence in planted_in(case, availability)}
    assert rule in found


# Worlds that mix everything.


@pytest.mark.parametrize("number", [*range(8), 40])
def test_a_world_that_mixes_everything_is_the_same_on_both_engines_and_counts_right(number, tmp_path):
    """Seeded; ``python -m tests.campaigns.mixed_worlds`` runs hundreds."""
    assert mixed_worlds.attempt(random.Random(f"0-{number}"), tmp_path, loud=False)[1] == []


def other_turn(patch, done, free_again=None):
    """Let a link transfer by another rule: when a copy is done, and when the link is free again."""

    def turn(rate, free, agent, size, now):
        if rate == math.inf:
            return now
        time = done(free[agent], now, lasting(size / rate))
        free[agent] = time if free_again is None else free_again(free[agent], time)
        return time

    other_rule(patch, "take_turn", turn)


def links_take_no_turns(patch):
    other_turn(patch, lambda free, now, lasts: now)


def a_link_is_always_free(patch):
    other_turn(patch, lambda free, now, lasts: now + lasts)


def a_link_is_never_taken(patch):
    other_turn(patch, lambda free, now, lasts: max(free, now) + lasts, lambda before, time: before)


def transfers_take_half_their_time(patch):
    other_turn(patch, lambda free, now, lasts: max(free, now) + lasts / 2)


def copies_that_wait_take_no_time(patch):
    other_turn(patch, lambda free, now, lasts: free if free > now else now + lasts)


def lost_copies_take_no_turn(patch):
    fate = event_driver.EventDriver.fate

    def lossy(self, run, sender, *given):
        free = run.agents.uplink_free[sender]
        delay = fate(self, run, sender, *given)
        if delay == math.inf:
            run.agents.uplink_free[sender] = free
        return delay

    patch.setattr(event_driver.EventDriver, "fate", lossy)


def nobody_waits_at_a_downlink(patch):
    other_rule(patch, "end_of_way", lambda run: ARRIVE)


def all_edges_are_open(patch):
    graph = lambda driver: driver.world.setting.graph  # noqa: E731
    every = lambda driver, agent: np.ones(len(graph(driver).neighbours(agent.index)), dtype=bool)  # noqa: E731
    patch.setattr(event_driver.EventDriver, "opened", every)


def edges_open_a_tick_early(patch):
    early = lambda driver, agent: driver.world.step_tables.open_at(agent.index, agent.tick + 1, driver.env.now)  # noqa: E731
    patch.setattr(event_driver.EventDriver, "opened", early)


def other_beginning(patch, change):
    """Let a step begin by the rule, and change the world and what it takes."""

    def begin(run, agent, now):
        return change(run, agent, now, begin_computing(run, agent, now))

    other_rule(patch, "begin_computing", begin)


def steps_take_no_time(patch):
    other_beginning(patch, lambda run, agent, now, time: 0.0)


def steps_take_half_their_time(patch):
    other_beginning(patch, lambda run, agent, now, time: lasting(time / 2))


def a_trace_begins_anew(patch):
    def first(run, agent, now, time):
        if len(run.computing):
            run.computing.begun[agent] = 0
        return time

    other_beginning(patch, first)


def time_that_was_spent_is_forgotten(patch):
    def forget(run, agent, now, time):
        if len(run.computing):
            run.computing.spent[agent] = 0.0
        return time

    other_beginning(patch, forget)


def a_step_hears_what_came_meanwhile(patch):
    patch.setattr(event_broadcasts.EventBroadcasts, "heard", event_driver.EventDriver.heard)


def who_is_down_at_the_end_of_a_step_forgets_it(patch):
    def compute(self, agent, time, heard):
        yield driver.At(self.env, self.env.now + time, TIMER)
        del self._computing[agent.index]
        if self.is_awake(agent):
            with heard():
                self.wake(agent)

    patch.setattr(event_driver.EventDriver, "_compute", compute)


def who_is_down_at_the_end_of_a_step_makes_it(patch):
    def compute(self, agent, time, heard):
        yield driver.At(self.env, self.env.now + time, TIMER)
        del self._computing[agent.index]
        with heard():
            self.wake(agent)

    patch.setattr(event_driver.EventDriver, "_compute", compute)


def attackers_are_honest(patch):
    patch.setattr(World, "_attacked", lambda self, attackers, me, sent: sent)


@pytest.mark.parametrize(
    ("mistake", "found", "first"),
    [
        (links_take_no_turns, "uplink", 0),
        (a_link_is_always_free, "uplink", 0),
        (a_link_is_never_taken, "uplink", 0),
        (transfers_take_half_their_time, "uplink", 0),
        (copies_that_wait_take_no_time, "uplink", 0),
        (lost_copies_take_no_turn, "uplink", 0),
        (nobody_waits_at_a_downlink, "downlink", 0),
        (a_link_is_always_free, "downlink", 0),
        (transfers_take_half_their_time, "downlink", 0),
        (all_edges_are_open, "closed", 0),
        (edges_open_a_tick_early, "closed", 0),
        (steps_take_no_time, "time of steps", 0),
        (steps_take_half_their_time, "time of steps", 0),
        (a_trace_begins_anew, "engines", 0),
        (time_that_was_spent_is_forgotten, "engines", 0),
        (a_step_hears_what_came_meanwhile, "engines", 39),
        (who_is_down_at_the_end_of_a_step_forgets_it, "engines", 56),
        (who_is_down_at_the_end_of_a_step_makes_it, "engines", 56),
        (attackers_are_honest, "engines", 0),
        (a_loss_is_counted_twice, "conservation", 0),
    ],
)
def test_a_mistake_in_a_world_that_mixes_everything_is_found(mistake, found, first, tmp_path, monkeypatch):
    mistake(monkeypatch)
    worlds_of = range(first, first + 40)
    cases = (mixed_worlds.attempt(random.Random(f"0-{number}"), tmp_path, loud=False)[1] for number in worlds_of)
    assert any(what.startswith(found) for wrong in cases for what in wrong)
