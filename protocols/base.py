"""The plug-in contract: what a protocol declares, what a step may see, and the only way out.

A protocol lays out its state in blocks: vectors per agent (own model, duals), vectors per directed edge owned by the
edge's tail (copies, edge duals), and message kinds with widths. A step of agent i may read and write i's blocks and
i's outgoing-edge blocks, and read i's data, i's inbox and public constants. The engine owns clocks, delays, losses,
sessions, barriers, counting and the ledger; a protocol file is its mathematics.

What an agent begins with is its ``start``; where no data enter, `Protocol.public_start` gives the starts of all agents
at once, and no Python runs for each.

A step is a function, ``step(me)``, of the record of one agent, or, marked `hushnet.protocols.steps.batched`, of many at
once; it is plain Python. What decides when it sends is declared (`Protocol.sends`, `Protocol.most_steps`), or it
`Protocol.decides`; a step that decides, a start and a reaction send by ``me.send``, under a release of their own.

==================  ====================================================================================================
family              functions
==================  ====================================================================================================
passive broadcast   ``step``: the newest value of every neighbour is there, and all of them get a message
pairwise exchange   ``request``, ``respond`` and ``complete``; edge variables in edge blocks
rounds              trigger ``round``: ``step`` runs once all neighbours' messages of the round are there, and sends at
                    most one message of each kind to a neighbour
star                roles; the centre makes its steps as everybody does, or reacts in ``react``
single messages     trigger ``message``: ``react`` to each; inbox ``every``: ``step`` has all of them in ``me.messages``
uneven parties      widths per agent instead of one number
==================  ====================================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from ..agents.blocks import State
from ..agents.compilation import is_patched
from ..agents.objectives.objectives import Objective
from ..agents.parameters import Parameters
from ..agents.tables import Shard
from .context import Context
from .invariants import Declared, NoInvariant
from .layout import Layout, MessageKind
from .linear_map import LinearMap
from .privacy.budget import PrintedNoise, Privacy
from .privacy.mechanisms import Release
from .problem import Problem
from .public_start import PublicStart
from .schedule import ScheduleParameters, expanded
from .steps.declarations import NO_DATA, NO_NOISE, Every, StepNoise, check_declared
from .steps.kernels import NO_WEIGHTS, rank_of
from .steps.peer import Peer, Sent
from .steps.record import loaders_of, records_of
from .steps.single_steps import PHASES, SingleSteps, bound, check_form
from .steps.step_names import Constants, Names
from .steps.step_tables import StepTables
from .traits import Traits

__all__ = [
    "Context",
    "Layout",
    "MessageKind",
    "Peer",
    "Problem",
    "Protocol",
    "ProtocolParameters",
    "PublicStart",
    "Sent",
    "Traits",
]


class ProtocolParameters(Parameters):
    """Parameters that every protocol accepts in a scenario, besides ``like``."""

    kind: str
    """Name of the protocol."""
    label: str | None = Field(default=None, min_length=1)
    """How figures and tables call it; the scenario's key by default."""
    schedule: ScheduleParameters | None = None
    """What starts a step: the agent's clock (``async``, or ``exchange`` in pairs) or a neighbour barrier (``rounds``);
    by default what the protocol is made for."""
    tuned: list[str] = Field(default=[])
    """Fields whose values were chosen by looking at agents' data, by ``tune`` or by hand; listed beside every verified
    epsilon among what is treated as public."""

    @field_validator("schedule", mode="after")
    @classmethod
    def _in_full(cls, schedule: ScheduleParameters | None) -> ScheduleParameters | None:
        return expanded(schedule)


class Protocol(ABC):
    """A protocol by which peers learn. A subclass is one algorithm; variants are fields of its parameters."""

    Parameters: ClassVar[type[ProtocolParameters]] = ProtocolParameters
    traits: ClassVar[Traits] = Traits()
    protects: ClassVar[str | None] = None
    """The role whose data the noise is there to protect; everybody's by default."""
    observer: ClassVar[str] = "everyone on the wire"
    """Whom a protected agent's epsilon holds against: by default whoever hears all messages of all agents."""
    model_released: ClassVar[bool] = True
    """Whether `models` follows from what was released, so that epsilon covers it; otherwise agents keep theirs."""
    learns_from: ClassVar[Literal["rows", "columns"]] = "rows"
    """What the task has to spread over agents: rows, or columns of the same rows (``task.split: {by: columns}``)."""
    learns: ClassVar[Literal["any", "convex", "linear"]] = "any"
    """Models that it learns: any, by gradients; convex ones; linear ones, by minimisers or rows."""
    shared_parts: ClassVar[tuple[Literal["features", "labels"], ...]] = ()
    """Parts of a record that neighbouring data sets share, because they are among the `assumed_public`."""
    step: ClassVar[Callable[..., Any] | None] = None
    """What makes a step, ``step(me)``; see `hushnet.protocols.steps`. It and all others may be methods, too."""
    react: ClassVar[Callable[..., Any] | None] = None
    """What reacts to one arrival (trigger ``message``), ``react(me, message)``."""
    request: ClassVar[Callable[..., Any] | None] = None
    """What opens a pairwise session with the partner of a rank, ``request(me, partner)``: it sends exactly one
    ``request`` (or, where it decides, nothing, and falls silent). The session may end void, so what is changed here
    must stand on its own; what `complete` needs of this instant belongs in a block, for other sessions may change the
    agent meanwhile."""
    respond: ClassVar[Callable[..., Any] | None] = None
    """The callee's update from the caller's request, ``respond(me, partner, heard)``: it sends exactly one ``reply``
    (or, where it decides, changes and sends nothing and falls silent: the session is then void for the caller). A
    silent agent is still called."""
    complete: ClassVar[Callable[..., Any] | None] = None
    """The caller's update from the reply, ``complete(me, partner, heard)``, perhaps after other sessions of it."""
    decides: ClassVar[bool] = False
    """Whether what a step sends, and whether it is an agent's last, depends on numbers beyond `sends` and
    `most_steps`; its steps are then made one by one."""
    decides_by_draws: ClassVar[bool] = False
    """Whether that follows from draws and from what has arrived alone, whatever the data and the noise are."""
    asks_for_budget: ClassVar[bool] = False
    """Whether its steps ask for their budget by themselves (`hushnet.protocols.steps.affords`)."""
    asks_what_is_new: ClassVar[bool] = False
    """Whether its steps read ``me.is_new``, for which it is kept what agents knew at their last steps."""
    _in_run: ClassVar[bool] = False
    _steps: SingleSteps
    step_noise: StepNoise | None = None
    """What `hushnet.protocols.steps.perturbed` draws; set it in `prepare`."""

    def __init__(self, parameters: Any, problem: Problem) -> None:
        self.parameters = parameters
        self.problem = problem
        self.prepare()

    def prepare(self) -> None:
        """Compute public constants, once, before `layout`."""
        return

    @classmethod
    def traits_for(cls, parameters: Any) -> Traits:
        """Traits of the protocol with these parameters; override it if they depend on a parameter."""
        return cls.traits

    @classmethod
    def check_scenario(cls, parameters: Any, context: Context) -> None:
        """Refuse a scenario that the protocol cannot run in, as far as its text tells; by default none.

        Raises `InputError` with a field of the parameters, or of the scenario.
        """
        return

    @classmethod
    def check_problem(cls, parameters: Any, problem: Problem) -> None:
        """Refuse data or a graph that the protocol cannot run on; by default none.

        Asked for every set of parameters before the first run of an experiment starts, so it solves nothing. Raises
        `InputError` with a field of the parameters, or of the scenario.
        """
        return

    def local_data(self, agent: int, shard: Shard) -> Shard:
        """An agent's rows as its steps will see them (clipped, or cut to its own columns); a function of them alone.

        The rows given are read-only: other runs share them.
        """
        return shard

    @abstractmethod
    def layout(self) -> Layout:
        """Blocks and message kinds."""

    def public_start(self) -> PublicStart | None:
        """The starts of all agents, where these follow from public constants; by default none do, and `start` tells.

        It is asked once, when the first agent starts. It says all of a start, for protocols without a `start` of their
        own and for those of the class that defines both: a subclass with another `start` starts by that.
        """
        return None

    def start(self, me: Any) -> None:
        """Set an agent's blocks at time 0 (or when it joins) and send what neighbours may know from the start.

        By default what `public_start` says; a protocol has one of them.
        """
        if self.first is None:
            raise TypeError(f"{type(self).__name__} has neither a start nor a public_start")
        self.first.make(me)

    @cached_property
    def first(self) -> PublicStart | None:
        """Result of `public_start`, which is asked once."""
        return self.public_start()

    @classmethod
    def has_start(cls) -> bool:
        """True if the protocol defines the start of agents, by `start` or by `public_start`."""
        return cls.start is not Protocol.start or cls.public_start is not Protocol.public_start

    @property
    def starts_at_once(self) -> PublicStart | None:
        """Starts of all agents by `public_start`; None if it gives none, or if another `start` replaces it."""
        kinds = type(self).__mro__
        by_all, by_each = (next(one for one in kinds if name in vars(one)) for name in ("public_start", "start"))
        return self.first if issubclass(by_all, by_each) and not is_patched(self) else None

    def constants(self) -> Constants:
        """Constants that steps read beside blocks, parameters and data; by default there are none."""
        return Constants()

    def release(self, me: Any) -> Release:
        """Return the release of an agent's next message, under which its step sends it.

        By default it is the release of `step_noise`; without that, one of data without noise. It may depend on the
        agent and on its start, and on later steps only by `step_noise`. Of planned steps an agent has no more than
        ``agent``, ``now``, ``data``, ``neighbours``, ``updates`` and ``round``.
        """
        if self.step_noise is not None:
            return self.step_noise.release(me)
        recipients = len(me.neighbours)
        if not len(me.data):
            return Release.public(me.agent, me.now, NO_DATA, recipients=recipients)
        return Release.plain(me.agent, me.now, NO_NOISE, recipients=recipients)

    @property
    def releases_rows_plainly(self) -> bool:
        """True if a release is plain for agents that have samples of the task, and public for others."""
        quiet = self.step_noise is None or self.step_noise.releases_rows_plainly
        return quiet and self._releases_by_rows

    @property
    def releases_alike(self) -> NDArray[np.int64]:
        """(n,) groups of agents whose releases differ by agent, time and recipients alone."""
        found = self.step_noise.alike if self.step_noise is not None and self._releases_by_rows else None
        return np.arange(self.problem.task.agents) if found is None else found

    @property
    def _releases_by_rows(self) -> bool:
        """True if releases are those of its noise, by the agents' own samples of the task."""
        own = type(self).release is not Protocol.release or is_patched(self)
        return not (own or self.changes_rows or self.problem.task.columns is not None)

    @property
    def changes_rows(self) -> bool:
        """True if `local_data` may return other samples than it is given."""
        return type(self).local_data is not Protocol.local_data

    @cached_property
    def step_functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that make its steps, of the kind that it runs with; empty if it has none of that kind.

        Raises `InputError` if one cannot be called with what it is given.
        """
        traits = self.traits_for(self.parameters)
        reacting = ("step", "react") if traits.trigger == "message" else ("step",)
        names = PHASES if traits.exchange == "pairwise" else reacting
        return {name: function for name in names if (function := bound(self, name)) is not None}

    @property
    def picks_partners(self) -> bool:
        """True if partners are picked in another way than by `partner_weights`."""
        return type(self).partner is not Protocol.partner or is_patched(self)

    def sends(self) -> Mapping[str, Every]:
        """Say at which of its steps an agent sends which kind of message; one that is not named is sent at all of them.

        The engine plans by it who hears what when, before any number is computed. Where that depends on numbers, the
        protocol `decides`.
        """
        return {}

    def most_steps(self) -> float | NDArray[np.float64] | None:
        """Number of steps after which agents fall silent, for all or (n,) for each; by default None, for no end."""
        return None

    def is_last(self, me: Any) -> bool:
        """True if an agent falls silent after the step that it is making, by `most_steps`."""
        most = self._most
        return most is not None and me.updates + 1 >= (most if np.ndim(most) == 0 else most[me.agent])  # type: ignore[index]

    @cached_property
    def _most(self) -> float | NDArray[np.float64] | None:
        return self.most_steps()

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise an AttributeError: all agents of a run have one protocol, and what changes belongs to one of them."""
        if self._in_run:
            raise AttributeError(
                f"{type(self).__name__}.{name} is set in a run, and its agents share it: keep what changes in blocks"
            )
        super().__setattr__(name, value)

    def bind(self, state: State, *, unheard_is_own: bool) -> StepTables:
        """Take the blocks of a run, which its steps are made on; the engine does this.

        Raises `InputError` if it is still written with views, or a function of its cannot be called with what it is
        given.
        """
        check_form(type(self))
        names = Names(self)
        check_declared(self, names.kinds, self.problem.task.agents)
        tables = StepTables(names, state, self.problem.task, self.problem.graph, unheard_is_own=unheard_is_own)
        tables.loaders, tables.records = loaders_of(tables), records_of(tables, Peer)
        vars(self).update(_steps=SingleSteps(self, self.step_functions, tables), _in_run=True)
        return tables

    @property
    def steps(self) -> SingleSteps:
        """Steps of the protocol in a run, as they are made one by one."""
        return self._steps

    def partner(self, me: Any, uniform: float) -> int:
        """Return the rank in ``me.neighbours`` of the neighbour to call; by default it is drawn by `partner_weights`.

        ``uniform`` is a draw in (0, 1), one for each tick of the agent's clock.
        """
        weights = self.partner_weights()
        own = weights[self.problem.graph.edges_of(me.agent)] if len(weights) else weights
        return rank_of(uniform, me.degree, own)

    def partner_weights(self) -> NDArray[np.float64]:
        """(E,) weights > 0 by which agents pick among their directed edges; empty (`NO_WEIGHTS`) if all are alike."""
        return NO_WEIGHTS

    def models(self, state: State) -> NDArray[np.float64] | None:
        """(n, p) models that the recorder measures; None where agents have no model of the task's shape."""
        block = state.agent.get("model")
        return block.rows if block is not None and block.uniform else None

    def objective(self) -> Objective | None:
        """The global objective that the protocol minimises, if it has one."""
        return None

    def invariants(self) -> Declared:
        """Invariants of the protocol, which hold whatever is late, lost or absent; or the reason why there are none.

        The recorder checks them in every run, and warns of a run that breaks one. By default no reason is given either,
        and results say so.
        """
        return NoInvariant()

    def conserved(self, state: State) -> Mapping[str, float]:
        """Diagnostics by name: distances from what sums over all agents keep while nothing is late, lost or absent.

        The recorder's metric ``conserved`` shows them; by default there are none. What is zero in any case is an
        invariant.
        """
        return {}

    def linear_map(self) -> LinearMap | None:
        """Linear map from values that agents release to all that they send; by default there is none.

        With it, what an observer learns is bounded by what it sees of others' noise
        (`hushnet.simulator.observers.linear_view`). Contract and run compare it with what is sent; where it gives
        something else, there is no such bound.
        """
        return None

    def chain_of_updates(self) -> bool:
        """True if all releases are steps of one iterate that is handed on, and a step moves no two iterates apart.

        Each step is x -> T(x) - alpha noise, with T of Lipschitz constant 1 whatever the data, and data move T(x) by
        alpha times the sensitivity at most. `hushnet.simulator.observers.walk_bound` rests on it. By default it is not.
        """
        return False

    @property
    def epoch(self) -> float | None:
        """Updates of an agent, > 0, in which it goes through its training rows once; None where that means nothing."""
        return None

    @property
    def privacy(self) -> Privacy | PrintedNoise | None:
        """Noise and budget, for a protocol that has them."""
        return getattr(self.parameters, "privacy", None)

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Inputs computed from private data that the protocol treats as public, beside the task's.

        Those of them that `prepare` takes from records it takes by `Problem.assumed`, under the same names.
        """
        return ()
