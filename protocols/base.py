"""The plug-in contract: what a protocol declares, what a step may see, and the only way out.

A protocol lays out its state in blocks: vectors per agent (own model, duals), vectors per directed edge owned by the
edge's tail (copies, edge duals), and message kinds with widths. A step of agent i may read and write i's blocks and
i's outgoing-edge blocks, and read i's data, i's inbox and public constants. The engine owns clocks, delays, losses,
sessions, barriers, counting and the ledger; a protocol file is its mathematics.

What an agent begins with is its ``start``; where no data enter, `Protocol.public_start` gives the starts of all agents
at once, and no Python runs for each.

A step is one text, ``step(me)``, that runs as Python and compiled (`hushnet.protocols.steps`). What does not fit such a
text is a method with a `View` and an `Out` in its place, and runs as Python.

==================  =====================================================  =========================================
family              text                                                   methods
==================  =====================================================  =========================================
passive broadcast   ``step``: the newest value of every neighbour is       ``wake``
                    there, and all of them get a message
pairwise exchange   ``request``, ``respond`` and ``complete``; edge        ``make_request``, ``make_response``,
                    variables in edge blocks                               ``complete_exchange``
rounds              trigger ``round``: ``step`` runs once all neighbours'  ``wake``
                    messages of the round are there, and sends at most
                    one message of each kind to a neighbour
star                                                                       roles; the centre reacts in ``receive``
                                                                           or at its own wake-ups, in ``wake``
uneven parties                                                             widths per agent instead of one number
==================  =====================================================  =========================================
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
from ..agents.compilation.compiled import is_patched
from ..agents.inbox import Message
from ..agents.objectives.objectives import Objective
from ..agents.parameters import Parameters
from ..agents.tables import Shard
from .invariants import Declared, NoInvariant
from .kernel import NO_LAW, Kernel, PairKernel, rank_of
from .layout import Layout, MessageKind
from .privacy.budget import PrintedNoise, Privacy
from .privacy.mechanisms import Release
from .public_start import PublicStart
from .schedule import ScheduleParameters, expanded
from .steps.names import Constants
from .steps.noise import NO_DATA, NO_NOISE, StepNoise
from .steps.record import PythonSteps, text_in
from .steps.text import check_arguments
from .surroundings import Surroundings
from .traits import EXCHANGE_TEXTS, Traits, lacks
from .view import Out, Problem, Sent, View

__all__ = [
    "Layout",
    "MessageKind",
    "Out",
    "Problem",
    "Protocol",
    "ProtocolParameters",
    "PublicStart",
    "Sent",
    "Surroundings",
    "Traits",
    "View",
]


class ProtocolParameters(Parameters):
    """What every protocol accepts in a scenario, besides ``like``."""

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
    """How a peer learns. A subclass is one algorithm; variants are fields of its parameters.

    Parameters
    ----------
    parameters : ProtocolParameters
    problem : Problem
    """

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
    shared_parts: ClassVar[tuple[Literal["features", "labels"], ...]] = ()
    """Parts of a record that neighbouring data sets share, because they are among the `assumed_public`."""
    step: ClassVar[Callable[..., Any] | None] = None
    """One text for a step, ``step(me)``, in place of `wake`; see `hushnet.protocols.steps`."""
    request: ClassVar[Callable[..., Any] | None] = None
    """The text of a request, ``request(me, partner)``, in place of `make_request`; with `respond` and `complete`."""
    respond: ClassVar[Callable[..., Any] | None] = None
    """The text of a response, ``respond(me, partner, heard)``, in place of `make_response`."""
    complete: ClassVar[Callable[..., Any] | None] = None
    """The text that completes an exchange, ``complete(me, partner, heard)``, in place of `complete_exchange`."""
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
        """How the engine has to run the protocol with these parameters; override it where a parameter decides."""
        return cls.traits

    @classmethod
    def check_scenario(cls, parameters: Any, surroundings: Surroundings) -> None:
        """Refuse a scenario that the protocol cannot run in, as far as its text tells; by default none.

        Raises
        ------
        InputError
            With a field of the parameters, or of the scenario.
        """
        return

    @classmethod
    def check_problem(cls, parameters: Any, problem: Problem) -> None:
        """Refuse data or a graph that the protocol cannot run on; by default none.

        Asked for every set of parameters before the first run of an experiment starts, so it solves nothing.

        Raises
        ------
        InputError
            With a field of the parameters, or of the scenario.
        """
        return

    @classmethod
    def least_sent(cls, parameters: Any) -> int | None:
        """How many messages a step sends at least to every neighbour; None if agents may fall silent.

        A run that would surely go beyond its limit on events by this is refused before it starts. What is said counts
        for the very class that says it; by default nothing is (None), and agents without neighbours may always fall
        silent.
        """
        return None

    @classmethod
    def rows_of_step(cls, parameters: Any, rows: float) -> float:
        """How many rows a step reads, of so many that an agent has; all by default. Estimates of time rely on it."""
        return rows

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

    def start(self, view: View, out: Out) -> None:
        """Set an agent's blocks at time 0 (or when it joins) and send what neighbours may know from the start.

        By default what `public_start` says; a protocol has one of them.
        """
        if self.first is None:
            raise TypeError(f"{type(self).__name__} has neither a start nor a public_start")
        self.first.make(view, out)

    @cached_property
    def first(self) -> PublicStart | None:
        """What `public_start` gives."""
        return self.public_start()

    @classmethod
    def has_start(cls) -> bool:
        """Whether it says how agents start, in one way or the other."""
        return cls.start is not Protocol.start or cls.public_start is not Protocol.public_start

    @property
    def starts_at_once(self) -> PublicStart | None:
        """What all agents start with, if nothing stands in place of what `public_start` says."""
        kinds = type(self).__mro__
        by_all, by_each = (next(one for one in kinds if name in vars(one)) for name in ("public_start", "start"))
        return self.first if issubclass(by_all, by_each) and not is_patched(self) else None

    def constants(self) -> Constants:
        """What the texts of steps read beside blocks, parameters and data; by default nothing more."""
        return Constants()

    def release(self, view: View) -> Release:
        """What an agent's next message reveals, where its text sends it.

        By default what `step_noise` says; without it, data without noise. It may depend on the agent and on its start,
        and on what comes later only by `step_noise`.
        """
        if self.step_noise is not None:
            return self.step_noise.release(view)
        recipients = len(view.neighbours)
        if not len(view.data):
            return Release.public(view.agent, view.now, NO_DATA, recipients=recipients)
        return Release.plain(view.agent, view.now, NO_NOISE, recipients=recipients)

    @property
    def releases_rows_plainly(self) -> bool:
        """Whether a release is plain for agents that have rows of the task, and public for others, without a view."""
        own = type(self).release is not Protocol.release or is_patched(self)
        quiet = self.step_noise is None or self.step_noise.releases_rows_plainly
        return quiet and not (own or self.changes_rows or self.problem.task.columns is not None)

    @property
    def changes_rows(self) -> bool:
        """Whether `local_data` gives anything else than it is given."""
        return type(self).local_data is not Protocol.local_data

    @property
    def notes_losses(self) -> bool:
        """Whether the block ``model`` is what the recorder measures, on the task's own rows."""
        return type(self).models is Protocol.models and not self.changes_rows

    @cached_property
    def texts(self) -> Mapping[str, Callable[..., Any]]:
        """The texts of its steps, of the kind that it runs with; empty if it has none of that kind."""
        found = {name: text for name in self._methods if (text := text_in(type(self), name)) is not None}
        for name, text in found.items():
            check_arguments(name, text)
        return found

    @property
    def _methods(self) -> Mapping[str, str]:
        """What makes a step: the name of each text, and of the method that it stands for."""
        if self.traits_for(self.parameters).exchange == "pairwise":
            return {text: method for method, text in EXCHANGE_TEXTS.items()}
        return {"step": "wake"}

    @property
    def methods_beside_texts(self) -> tuple[str, ...]:
        """The methods of its own that it makes steps by, although it has texts; empty if the texts are the steps."""
        methods = [*self._methods.values(), *(["partner"] if len(self._methods) > 1 else [])]
        return tuple(name for name in methods if getattr(type(self), name) is not getattr(Protocol, name))

    @cached_property
    def steps(self) -> PythonSteps:
        """The Python form of its texts."""
        return PythonSteps(self, self.texts)

    def wake(self, view: View, out: Out) -> None:
        """One step of an agent; by default what its text says, if it has one."""
        if self.texts:
            self.steps.wake(view, out)

    def receive(self, view: View, message: Message, out: Out) -> None:
        """Reaction to one arrival (trigger ``message``); by default nothing."""
        return

    def partner(self, view: View) -> int:
        """Which neighbour (its rank in `View.neighbours`) a pairwise session calls; uniform by default.

        By default by `partner_law`.
        """
        law = self.partner_law()
        own = law[self.problem.graph.edges_of(view.agent)] if len(law) else law
        return rank_of(view.partner_uniform(), len(view.neighbours), own)

    def partner_law(self) -> NDArray[np.float64]:
        """(E,) weights > 0 by which agents pick among their directed edges; empty for the uniform law (`NO_LAW`)."""
        return NO_LAW

    def make_request(self, view: View, partner: int, out: Out) -> None:
        """Open a pairwise session with the partner of this rank: send exactly one ``request`` to it.

        Or send nothing and fall silent. The session may end void, so what is changed here must stand on its own; what
        `complete_exchange` needs of this instant belongs in a block, for other sessions may change the agent meanwhile.
        """
        self._steps_for("make_request").request(view, partner, out)

    def make_response(self, view: View, partner: int, vector: NDArray[np.float64], out: Out) -> None:
        """The callee's update from the caller's request; send exactly one ``reply`` to it.

        Or change and send nothing and fall silent: the session is then void for the caller. A silent agent is still
        called.
        """
        self._steps_for("make_response").respond(view, partner, vector, out)

    def complete_exchange(self, view: View, partner: int, vector: NDArray[np.float64]) -> None:
        """The caller's update from the callee's reply, which may come after other sessions of the caller."""
        self._steps_for("complete_exchange").complete(view, partner, vector)

    def _steps_for(self, method: str) -> PythonSteps:
        if EXCHANGE_TEXTS[method] not in self.texts:
            raise TypeError(lacks(type(self), method))
        return self.steps

    def models(self, state: State) -> NDArray[np.float64] | None:
        """(n, p) models that the recorder measures; None where agents have no model of the task's shape."""
        block = state.agent.get("model")
        return block.rows if block is not None and block.uniform else None

    def kernel(self, state: State) -> Kernel | PairKernel | None:
        """A compiled form of the steps over the blocks of this run, if there is one; the same up to rounding.

        `Kernel` for `wake`, `PairKernel` for `make_request`, `make_response` and `complete_exchange`. It serves objects
        of the very class that defines it: a subclass runs its Python steps unless it defines `kernel` again, and so
        vouches for it.
        """
        return None

    def objective(self) -> Objective | None:
        """The global objective that the protocol minimises, if it has one."""
        return None

    def invariants(self) -> Declared:
        """What the protocol keeps whatever is late, lost or absent, or why it keeps nothing.

        The recorder looks at it in every run, and a run that breaks it is warned of. By default nothing is said about
        it, which results remark on.
        """
        return NoInvariant()

    def conserved(self, state: State) -> Mapping[str, float]:
        """Diagnostics by name: distances from what sums over all agents keep while nothing is late, lost or absent.

        The recorder's metric ``conserved`` shows them; by default there are none. What is zero in any case is an
        invariant.
        """
        return {}

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
