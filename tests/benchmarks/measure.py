"""One case on one engine: floor and engine in alternation, in one process."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from hushnet.agents.errors import InputError
from hushnet.agents.objectives.minima import cached_minimum
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World
from threadpoolctl import threadpool_limits

from ..engine.driving import drive, fast_world
from .cases import CASES, Case, make_setting, observer_of, protocol_of
from .floor import Floor
from .naive import NaiveWorld

SLOW_WAKE_UPS = 40_000
"""The reference and the naive engine stop about here in large worlds: their time per wake-up does not change."""
RECORDINGS = 100
RECORDED_UPDATES = 400.0
"""Updates an agent of the runs that recordings are measured in."""
RECORDED_PAIRS = 3
"""Pairs of such runs in each repetition: what recordings add is a small difference of two times."""
Maker = Callable[..., World]
"""Makes a world from a setting, a protocol and its parameters."""
METRICS = ("objective", "accuracy", "traffic")


@dataclass(frozen=True)
class Run:
    """One run of an engine.

    Parameters
    ----------
    start, seconds : float
        To build the world and start its agents, and from there to the end.
    wake_ups, messages : int
        Steps of all agents, and messages sent over links.
    """

    start: float
    seconds: float
    wake_ups: int
    messages: int


@dataclass(frozen=True)
class Measurement:
    """All repetitions of one case on one engine; without any, `skipped` says why.

    Parameters
    ----------
    floors : list of float
        Microseconds per wake-up of the floor that ran just before each run.
    recorded_updates : float
        Updates an agent of the runs that recordings are measured in.
    recording : list of (float, float)
        Seconds of a run of that length without recordings, and what `RECORDINGS` of them add.
    peak : int
        Bytes of the whole process: interpreter, libraries, data, floor and engine.
    """

    case: str
    engine: str
    skipped: str = ""
    updates: float = 0.0
    runs: list[Run] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)
    recorded_updates: float = 0.0
    recording: list[tuple[float, float]] = field(default_factory=list)
    peak: int = 0

    @property
    def microseconds(self) -> float:
        """Median time of a wake-up."""
        return statistics.median(1e6 * run.seconds / run.wake_ups for run in self.runs)

    @property
    def ratios(self) -> list[float]:
        """Each run against the floor that was measured just before it."""
        return [1e6 * run.seconds / run.wake_ups / floor for run, floor in zip(self.runs, self.floors, strict=True)]

    @property
    def recording_shares(self) -> list[float]:
        """What the recordings add, as a share of the time without any."""
        return [added / seconds for seconds, added in self.recording]

    @property
    def message_rate(self) -> float:
        """Median of the messages a second over links."""
        return statistics.median(run.messages / run.seconds for run in self.runs)

    @property
    def start(self) -> float:
        """Median seconds before the first wake-up."""
        return statistics.median(run.start for run in self.runs)


class Stopwatch:
    """A recorder that notes when a run starts and ends, and may hand on to a real one.

    Parameters
    ----------
    inner : Recorder, optional
    """

    def __init__(self, inner: Recorder | None = None) -> None:
        self.inner = inner
        self.began = self.ended = 0.0

    def sample(self, world: World, *, final: bool) -> None:
        """See `hushnet.simulator.world.watchers.Sampler`; the first sample comes when all agents have started."""
        self.began = self.began or time.process_time()
        if self.inner:
            self.inner.sample(world, final=final)
        if final:
            self.ended = time.process_time()


def measure(
    name: str,
    engine: str,
    *,
    updates: float,
    repetitions: int,
    recorded_updates: float = RECORDED_UPDATES,
    toy: bool = False,
) -> Measurement:
    """Measure a case on an engine, or say why it cannot run there.

    Parameters
    ----------
    name, engine : str
        From `CASES` and `ENGINES`.
    updates : float
        Wake-ups of an agent, on average; fewer in large worlds on the two slow engines.
    repetitions : int
    recorded_updates : float
        The same for the runs that recordings are measured in.
    toy : bool
        At toy size, to see that it runs.
    """
    case = CASES[name].toy if toy else CASES[name]
    if engine == "naive" and case.family != "broadcast":
        return Measurement(name, engine, skipped="the naive engine knows coordinate descent only")
    if engine == "naive" and case.trouble.absences is not None:
        return Measurement(name, engine, skipped="the naive engine knows no absences")
    maker = {"batched": fast_world, "event": World, "naive": None}[engine]
    if engine != "batched":
        most = max(1.0, SLOW_WAKE_UPS / case.agents)
        updates, recorded_updates = min(updates, most), min(recorded_updates, most)
    try:
        with threadpool_limits(limits=1):
            _warm_up(maker, case)
            return _measure(maker, case, engine, updates, repetitions, recorded_updates)
    except InputError as error:
        return Measurement(name, engine, skipped=str(error))


def _warm_up(world: Maker | None, case: Case) -> None:
    """Compile everything that the measurement will use."""
    setting = make_setting(case.toy, 2.0)
    Floor(setting, case.family, 10).run()
    run_once(world, setting, case)
    if case.recorded and world:
        run_once(world, setting, case, recorder=_recorder(world, setting, case))


def _measure(
    world: Maker | None, case: Case, engine: str, updates: float, repetitions: int, recorded_updates: float
) -> Measurement:
    setting = make_setting(case, updates)
    floor = Floor(setting, case.family, round(updates * case.agents))
    result = Measurement(case.name, engine, updates=updates, recorded_updates=recorded_updates)
    for _ in range(repetitions):
        with undisturbed():
            seconds, made = floor.run()
        with undisturbed():
            run = run_once(world, setting, case)
        result.floors.append(1e6 * seconds / made)
        result.runs.append(run)
        if case.recorded and world:
            longer = replace(setting, stop=Stop(time=recorded_updates))
            result.recording.extend(_measure_recording(world, case, longer) for _ in range(RECORDED_PAIRS))
    # Linux counts in KiB. A new process inherits the peak of the one that started it, which has only imported.
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return replace(result, peak=peak)


def _measure_recording(world: Maker, case: Case, setting: Setting) -> tuple[float, float]:
    """Seconds of a run without recordings, and what `RECORDINGS` of them add to it."""
    recorder = _recorder(world, setting, case)
    with undisturbed():
        plain = run_once(world, setting, case)
    with undisturbed():
        recorded = run_once(world, setting, case, recorder=recorder)
    return plain.seconds, recorded.seconds - plain.seconds


def run_once(world: Maker | None, setting: Setting, case: Case, *, recorder: Recorder | None = None) -> Run:
    """Build a world (the naive one without a class) and run it, with `RECORDINGS` recordings if there is a recorder."""
    observer = observer_of(case, setting)
    built = time.process_time()
    if world is None:
        naive = NaiveWorld(setting)
        began = time.process_time()
        naive.run()
        return Run(began - built, time.process_time() - began, naive.wake_ups, naive.messages)
    watch = Stopwatch(recorder)
    assert setting.stop.time is not None
    every = setting.stop.time / RECORDINGS if recorder else None
    onlookers = {"recorder": watch, "observer": observer}
    made = world(setting, *protocol_of(case.family, case.trouble.patience), **onlookers, every=every)
    drive(made)
    return Run(watch.began - built, watch.ended - watch.began, made.activations, made.traffic.links.sent)


def _recorder(world: Maker, setting: Setting, case: Case) -> Recorder:
    """A recorder whose exact minimum is already known: finding it is not recording."""
    objective = world(setting, *protocol_of(case.family)).protocol.objective()
    if objective is not None:
        cached_minimum(objective, None)
    return Recorder(METRICS, objective=objective)


@contextmanager
def undisturbed() -> Iterator[None]:
    """No collection of garbage inside the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
