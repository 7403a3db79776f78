"""Errors that a user can meet, as one tree; the shell turns each into one sentence and an exit code.

::

    HushnetError                exit code 1
    |-- RunFailure              1   a run raised an error that nobody foresaw, or killed its worker
    |   `-- StepFailure         1   a step raised it
    |       `-- Undeclared      1   a step has done something else than its protocol declares
    |-- InputError              2   a scenario, a data file or an argument is not admissible
    |-- AuditFailure            3   an audit found noise, sensitivities or an epsilon that are not what they say
    |-- Divergence              4   a state became non-finite or the objective exploded
    |-- Stall                   4   agents wait for messages that can never come
    |-- OutOfResources          5   the run would not fit into this machine
    |-- LimitReached            5   a run went beyond a limit
    |-- Inconsistency        70   a number that mathematics rules out: an error of the program's own
    `-- Interrupted           130   somebody pressed Ctrl-C (143: sent SIGTERM)

Whatever else is raised is unexpected: exit code 70, one sentence, and its details in a file (`simulator.cli.entry`).
"""

from __future__ import annotations

import re
import traceback

MOST_SHOWN, MOST_KEPT = 1_000, 1_000_000
"""Characters of an error's message in a sentence, and of its details in a file."""
HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What may hide, colour or turn text on a terminal."""


class HushnetError(Exception):
    """An error whose message is one sentence for the user."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in a notebook: the sentence, without the lines of ours that it came through."""
        return [f"{type(self).__name__}: {self}"]


class InputError(HushnetError):
    """A scenario, data file or argument that is not admissible, in one sentence: what was given and what is admissible.

    The loader turns the path of the offending field inside the scenario (``("task", "dimension")``) into ``file:line``.
    """

    exit_code = 2

    def __init__(self, message: str, *, field: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.field = field


class FieldError(ValueError):
    """A rule about several fields of one class of parameters, broken, and the one to change; for use in validators."""

    def __init__(self, message: str, *field: str | int) -> None:
        super().__init__(message)
        self.field = field


class Interruption(BaseException):
    """Base of exceptions that end a run from outside, which a user's ``except Exception`` does not catch."""


INTERRUPTED = (KeyboardInterrupt, Interruption)
"""What is no failure of the code that it is raised in."""


class RunFailure(HushnetError):
    """A run that raised an error which nobody foresaw, or that killed its worker; the others went on."""


class Objection(AssertionError):
    """Base of errors that an observer of a step raises about it, such as a broken contract; the step has not failed."""


class StepFailure(RunFailure):
    """A run in which a step raised an error; what was recorded before that step is kept."""


class Undeclared(StepFailure):
    """A run in which a step has done something else than its protocol declares of it."""


class AuditFailure(HushnetError):
    """An audit that found noise, sensitivities or an epsilon to be other than what is said of them."""

    exit_code = 3


class Divergence(HushnetError):
    """A run that left the finite numbers, or whose objective exploded; what was recorded is kept."""

    exit_code = 4


class Stall(HushnetError):
    """A run in rounds in which nobody can go on any more; what was recorded is kept."""

    exit_code = 4


class OutOfResources(HushnetError):
    """A run that would not fit into this machine's memory, disk or time."""

    exit_code = 5


class LimitReached(HushnetError):
    """A run that went beyond a limit on what it may do; what was recorded is kept.

    The limit is a field of `hushnet.simulator.network.setting.Limits`, and `most` is what it admits.
    """

    exit_code = 5

    def __init__(self, message: str, *, limit: str = "", most: float = 0) -> None:
        super().__init__(message)
        self.limit, self.most = limit, most


class Inconsistency(HushnetError):
    """A number that mathematics rules out, such as a value below its minimum: an error of the program's own."""

    exit_code = 70


class Interrupted(HushnetError):
    """Somebody pressed Ctrl-C or sent SIGTERM; what was complete is kept."""

    exit_code = 130


def words_of(failure: BaseException) -> str:
    """An error's message in one printable line of at most `MOST_SHOWN` characters, whatever its author made of it.

    Of a name that an object does not have, it is what the object's ``unknown_`` says of it, if its class has that.
    """
    try:
        text = str(failure)
        if isinstance(failure, AttributeError) and not hasattr(type(failure.obj), str(failure.name)):
            text = getattr(type(failure.obj), "unknown_", lambda *_: text)(failure.obj, failure.name)
    except INTERRUPTED:
        raise
    except BaseException as broken:
        return f"no message, for its __str__ raises {type(broken).__name__}"
    line = " ".join(text[: 2 * MOST_SHOWN].split()) or "no message"
    line = HIDDEN.sub("\ufffd", line.encode(errors="backslashreplace").decode())
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]}..."


def details_of(failure: BaseException) -> str:
    """Return the traceback and the message of an error, the middle left out beyond `MOST_KEPT` characters."""
    try:
        text = "".join(traceback.format_exception(failure))
    except INTERRUPTED:
        raise
    except BaseException:
        text = "".join(traceback.format_tb(failure.__traceback__)) + f"{type(failure).__name__}: {words_of(failure)}\n"
    return text if len(text) <= MOST_KEPT else f"{text[: MOST_KEPT // 2]}\n...\n{text[-MOST_KEPT // 2 :]}"
