"""The compiled form of a protocol's texts, for one run: a generated function that fills the record and calls the text.

What a compilation depends on are the texts, the words' forms and which blocks are numbers, never a number: the run's
arrays and numbers are in its `AddressTable`, so that a sweep compiles once.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import namedtuple
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.errors import NumbaError, NumbaWarning, UnsupportedBytecodeError

from ...agents import losses
from ...agents.compilation import addresses
from ...agents.compilation.addresses import reals
from ...agents.compilation.callbacks import Callback
from ...agents.compilation.code_store import code_store
from ...agents.compilation.compiled import REASSOCIATED
from ...agents.compilation.fetching import prefetch_row, prefetch_vector
from ...agents.streams import begin_stream
from ..kernel import SAID as SAID_COLUMN
from ..kernel import SILENT, UNBOUNDED, UNSAID, Kernel, PairKernel
from .charges import StepCharges
from .fields import Fields
from .forms import Forms
from .names import Names
from .refusals import KNOWN, sentence_of
from .rewriting import SAID, notes_found_model
from .signatures import EXCHANGE, STEP
from .surroundings import StepSurroundings
from .tape import Tape
from .text import Text, most_draws, takes_record, texts_of, used_fields
from .word_form import Categories, NoForm, fast

PHASES = ("request", "respond", "complete")
"""The texts of an exchange, in the order of its phases."""
_made: dict[str, Callback] = {}
"""What this process has compiled, by content."""
_refused: dict[str, str] = {}
"""What it has found not to compile, and why."""


class NotCompiled(Exception):
    """Nobody has compiled this yet, and it was not to be done."""


def build(
    protocol: Any,
    texts: Mapping[str, Callable[..., Any]],
    around: StepSurroundings,
    tape: Tape | None = None,
    *,
    cold: bool = True,
) -> Kernel | PairKernel:
    """The compiled form of a protocol's texts.

    Parameters
    ----------
    protocol : Protocol
    texts : mapping of str to callable
        ``step``, or the `PHASES` of an exchange.
    around : StepSurroundings
    tape : Tape, optional
        What draws of noise are written on, where steps are watched.
    cold : bool
        Whether to compile what is not stored.

    Raises
    ------
    NotCompiled
        If it would have to be compiled, and is not to be.
    NoForm
        If something in them has no compiled form; the message is one sentence, with the author's line.
    TextError
        If a text names what a record does not have.
    """
    names = Names(protocol)
    _check(names, texts, around)
    parts = {name: texts_of(function) for name, function in texts.items()}
    every = [one for several in parts.values() for one in several]
    noting = protocol.notes_losses and "step" in texts and notes_found_model(Text.of(texts["step"]))
    noise = protocol.step_noise
    clip = noise.clip if noise is not None else None
    mechanism = noise.mechanism if noise is not None else None
    categories = Categories(
        loss=_loss_of(protocol),
        mechanism=mechanism or "",
        clip=clip[0] if clip else "",
        growing=noise is not None and noise.growth is not None,
    )
    forms = Forms(names, categories)
    used = {field for one in every if takes_record(one.function) for field in used_fields(one, names)}
    authors = {f"author_{name}": forms.compiled(text, noting=noting) for name, text in texts.items()}
    charges = StepCharges(protocol, around, sum(most_draws(text) for text in texts.values()))
    bound, exchange = clip[1] if clip else 0.0, "step" not in texts
    fields = Fields(names, around, charges, bound, exchange=exchange, tape=tape, cold=cold)
    used |= forms.fields | ({"drawn_"} if charges.noisy else set())
    if "step" not in texts and used & {"noise_", "sampling_"}:
        # A half's stream depends on how many others its agent has made at that tick, which compiled steps are not told.
        raise NoForm("draws within an exchange have no compiled form")
    source = _source(fields, charges, sorted(used - forms.literals.keys()))
    signature = STEP if "step" in texts else EXCHANGE
    key = hashlib.blake2s(f"{forms.key}\n{source}".encode(), digest_size=12).hexdigest()
    if key not in _made and key not in _refused:
        _compile(key, _step_of(source, authors), signature, every, f"the step of {type(protocol).__name__}", cold=cold)
    if key in _refused:
        raise NoForm(_refused[key])
    if signature is STEP:
        return Kernel(_made[key], fields.table, charges, fields.cached_losses, fields.ports)
    return PairKernel(_made[key], fields.table, charges, law=protocol.partner_law())


def _check(names: Names, texts: Mapping[str, Callable[..., Any]], around: StepSurroundings) -> None:
    """Refuse layouts that compiled windows do not know."""
    kinds = names.layout.messages
    if not kinds:
        raise NoForm("it sends nothing")
    for name, widths in names.sent_widths.items():
        one = isinstance(kinds[name].width, int | np.integer)
        if not one and (len(set(widths[widths > 0].tolist())) > 1 or "step" not in texts or kinds[name].mirrors):
            raise NoForm("its messages have different widths")
    if around.some_join and any(kind.addressed for kind in kinds.values()):
        raise NoForm("it sends every neighbour something else, and who joins late is told what it was sent last")


def _loss_of(protocol: Any) -> str:
    """The name of the task's loss; empty for one that is not registered, or has no rows for compiled code."""
    loss = protocol.problem.task.loss
    known = losses.LOSSES.get(loss.name)
    return loss.name if known is not None and type(loss) is type(known) and loss.rows is not None else ""


def _source(fields: Fields, charges: StepCharges, used: list[str]) -> str:
    """The generated function, whose names are those of the fields."""
    own, names, exchange = fields.names.layout, fields.names, fields.exchange
    read = [name for name in used if name not in names.messages]
    said = [name for name in names.messages if name in used or exchange]
    code = {name: fields.code(name) for name in [*read, *said, SAID]}
    arguments = "agent, tick, now, updates, first, last, known, pool, rows, table"
    if exchange:
        arguments = "phase, agent, tick, now, updates, edge, first, last, known, pool, heard, message, table"
    lines = [f"Me = namedtuple('Me', {list(code)!r})", f"def step({arguments}):"]
    # As arrays whose references nobody counts, for whoever calls has them: counting takes two atomic operations a row.
    vectors = {"known": "wholes", **({"heard": "reals", "message": "reals"} if exchange else {"rows": "wholes"})}
    lines += [f"    {name} = {how}({name}.ctypes.data, 0, len({name}))" for name, how in vectors.items()]
    lines.append("    pool = real_rows(pool.ctypes.data, 0, len(pool), pool.shape[1])")
    if not exchange and "affordable_" not in used:
        lines.append(f"    if updates >= whole({fields.of_agents(charges.affordable, np.int64, written=True)}, agent):")
        lines.append(f"        unsaid({code[SAID]})")
        lines.append(f"        return {SILENT | UNSAID}")
    lines += [f"    me = Me({', '.join(code.values())})", f"    unsaid(me.{SAID})", "    code = 0"]
    if charges.noisy:
        lines.append("    me.drawn_[0] = 0")
    if "free_" in used:
        lines.append("    me.free_[0] = 0")
    if exchange:
        for rank, name in enumerate(PHASES):
            lines.append(f"    {'if' if rank == 0 else 'elif'} phase == {rank + 1}:")
            lines.append(f"        author_{name}(me, edge - first{', heard' if rank else ''})")
    else:
        lines += ["    if author_step(me):", f"        code = {SILENT}"]
        for port, kind in enumerate(names.messages.values()):
            if names.is_partial(kind):
                lines.append(f"    if me.{SAID}[{port}, {SAID_COLUMN}] and {fields.sent_width(kind)} == 0:")
                lines.append(f"        raise ValueError({names.unsent(kind)!r})")
        apart = all(names.is_apart(name) for name in names.messages)
        nobody = " or first == last" if apart else ""
        lines += [f"    if not any_said(me.{SAID}){nobody}:", f"        code |= {UNSAID}"]
    charged = "me.free_[0] == 0" if "free_" in used else "True"
    lines.append(f"    if {charged}:")
    lines.append(f"        code |= whole({fields.of_agents(charges.plain_bits, np.int64, written=True)}, agent)")
    if charges.noisy:
        lines.append(f"    if {charged} and me.drawn_[0] == 0:")
        lines.append(f"        code |= whole({fields.of_agents(charges.undrawn_bits, np.int64, written=True)}, agent)")
    lines.append("    bad = 0.0")
    for name in said:
        port = list(names.messages).index(name)
        lines.append(f"    if me.{SAID}[{port}, {SAID_COLUMN}]:")
        check = "unbounded_rows" if not exchange and names.is_apart(name) else "unbounded"
        lines.append(f"        bad += {check}(me.{name})" if charges.private else "        pass")
    if not charges.private:
        written = [name for name in read if name in own.agent or name in own.edge]
        lines += [f"    bad += unbounded(me.{name})" for name in written]
    lines += ["    if bad != 0.0:", f"        code |= {UNBOUNDED}", "    return code"]
    return "\n".join(lines) + "\n"


def _step_of(source: str, authors: Mapping[str, Any]) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": __name__, "namedtuple": namedtuple, **_HELPERS, **authors}
    exec(compile(source, "<the step of a text>", "exec"), space)
    return space["step"]


_OPTIONS: dict[str, Any] = {"fastmath": REASSOCIATED, "error_model": "numpy", "boundscheck": False}


def _compile(key: str, step: Callable[..., Any], signature: Any, texts: list[Text], what: str, *, cold: bool) -> None:
    """Compile a step, or find out that numba refuses it.

    Refusals are stored as code is, under all that they depend on and the lines that they may name: whether a text has a
    compiled form never depends on who has tried it before.

    Raises
    ------
    NotCompiled
        See `build`.
    """
    store, place = code_store(), Callback.stored_as(signature, step, **_OPTIONS)
    lines = repr(([(Path(one.file).name, one.tree.lineno) for one in texts], KNOWN))
    refusal = f"{place}-{hashlib.blake2s(lines.encode(), digest_size=8).hexdigest()}" if place else ""
    said = store.read(refusal) if place else None
    if said is not None:
        _refused[key] = said.decode()
        return
    if not cold and (place is None or store.read(place) is None):
        raise NotCompiled
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            _made[key] = Callback(signature, step, what=what, **_OPTIONS)
    except (NumbaError, UnsupportedBytecodeError, NotImplementedError) as error:
        for cause in (error.__cause__, error.__context__):
            if isinstance(cause, MemoryError):
                raise cause from None
        _refused[key] = sentence_of(error, texts)
        if place:
            store.write(refusal, _refused[key].encode())


@fast
def _unbounded(values):  # pragma: no cover - compiled
    """0 if all numbers are finite, and otherwise NaN; of vectors and of matrices."""
    flat = reals(values.ctypes.data, 0, values.size) if values.ndim > 1 else values
    total = 0.0
    for k in range(len(flat)):
        total += flat[k] * 0.0
    return total


@fast
def _unbounded_rows(message):  # pragma: no cover - compiled
    """As `_unbounded`, of rows of the pool."""
    pool, rows, width = message
    total = 0.0
    for rank in range(len(rows)):
        total += _unbounded(pool[rows[rank]][:width])
    return total


@fast
def _gathered(known, pool, width, mirror):  # pragma: no cover - compiled
    """What was heard of every neighbour, and for those that never were what stands for it."""
    out = np.empty((len(known), width))
    for rank in range(len(known)):
        row = known[rank]
        for k in range(width):
            out[rank, k] = pool[row, k] if row >= 0 else mirror[k]
    return out


@fast
def _unsaid(ports):  # pragma: no cover - compiled
    """Note that nothing is said yet."""
    for port in range(len(ports)):
        ports[port, SAID_COLUMN] = 0


@fast
def _any_said(ports):  # pragma: no cover - compiled
    """Whether anything is said."""
    said = False
    for port in range(len(ports)):
        said |= ports[port, SAID_COLUMN] != 0
    return said


@fast
def _begun(stream, tick, number):  # pragma: no cover - compiled
    """A stream at the beginning of a step's draws."""
    begin_stream(stream, tick, number, 0)
    return stream


@fast
def _asked(values):  # pragma: no cover - compiled
    """A vector whose memory is asked for when a step begins, of which no two agents' lie together."""
    prefetch_vector(values)
    return values


@fast
def _asked_rows(table):  # pragma: no cover - compiled
    """A table whose first row, if there is one, is asked for when a step begins; what follows it comes by itself."""
    if len(table) > 0:
        prefetch_row(table, 0)
    return table


_HELPERS = {
    "asked": _asked,
    "asked_rows": _asked_rows,
    "begun": _begun,
    "unbounded": _unbounded,
    "unbounded_rows": _unbounded_rows,
    "gathered": _gathered,
    "unsaid": _unsaid,
    "any_said": _any_said,
    "whole_rows": addresses.whole_rows,
    "reals": addresses.reals,
    "real_rows": addresses.real_rows,
    "single_rows": addresses.single_rows,
    "wholes": addresses.wholes,
    "words": addresses.words,
    "real": addresses.real,
    "whole": addresses.whole,
}
