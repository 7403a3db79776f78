"""The entry of the shell: exit codes, and one sentence for every error, foreseen or not."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NoReturn

import typer
from typer.main import get_command

from ...agents.authors import author_place, complain_plainly, contained
from ..signals import terminable
from .application import app
from .output_streams import discard, flushed, prepare

DEBUG = "HUSHNET_DEBUG"
"""Environment variable that has errors which nobody foresaw raised, with their traceback."""
POOL = "ARROW_DEFAULT_MEMORY_POOL", "system"
"""Environment variable that has Arrow give back what a table took: its own pool keeps 60 MB after 10,000 runs."""
UNFORESEEN, INTERRUPTED, TERMINATED = 70, 130, 143
"""Exit codes; 128 and the number of the signal."""
NO_THREAD = "can't start new thread"
"""What Python says where a limit on processes and threads is met."""
SHOWN_OF_ONE = 120
LONG = re.compile(r"\S{400,}")
"""A word, such as a path, of which a sentence shows so many letters at either end."""
MOST_SHOWN = 300
"""Characters of such an error's own message."""


def script() -> NoReturn:
    """Run the shell as a process of its own, which waits for nothing that a protocol has left behind."""
    complain_plainly()
    code = main()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the shell, by default with the arguments of the command line; returns the exit code."""
    os.environ.setdefault(*POOL)
    prepare()
    with terminable() as asked, _plainly_warned(), contained():
        code = _main(arguments)
        with suppress(OSError):  # said already; Python would say it once more at its end, with a code of its own
            flushed()
    return TERMINATED if asked and code == INTERRUPTED else code


@cache
def _commands() -> Any:
    """All commands, made once: a process that runs many spends most of its time on that otherwise."""
    return get_command(app)


@contextmanager
def _plainly_warned() -> Iterator[None]:
    """Write warnings that are meant for people as one sentence, without the line of code that raises them."""
    default = warnings.formatwarning

    def plain(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
        return f"warning: {message}\n" if category is UserWarning else default(message, category, *where, **more)

    warnings.formatwarning = plain
    try:
        yield
    finally:
        warnings.formatwarning = default


def _main(arguments: Sequence[str] | None) -> int:
    from ...agents.errors import HushnetError, OutOfResources, words_of

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _commands()(given, prog_name="hushnet", standalone_mode=False)
        flushed()
    except HushnetError as error:
        if error.exit_code == INTERRUPTED:
            return _interrupted(str(error))
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except typer.Exit as leaving:
        return leaving.exit_code
    except BrokenPipeError:
        discard()  # the reader (`| head`) has gone; what is still buffered must not be written when Python exits
        return 1
    except OSError as error:
        from ..storage.files import in_a_sentence

        if error.errno == errno.EBADF:
            discard()
            return _complain("standard output: is not open for writing", OutOfResources.exit_code)
        doing = f"hushnet {given[0]}" if given else "hushnet"
        if error.errno == errno.ENOSPC:  # files of ours are named where they are written
            doing = "standard output"
        said = in_a_sentence(error, error.filename or doing)
        return _complain(str(said), said.exit_code)
    except RuntimeError as error:
        return _no_thread() if NO_THREAD in str(error) else _unforeseen(error, given)
    except Exception as error:
        # What typer raises on a wrong command line has moved between its versions; what it offers has not.
        if not hasattr(error, "format_message"):
            return _unforeseen(error, given)
        message = " ".join(error.format_message().split())  # pyright: ignore[reportAttributeAccessIssue]
        return _complain(f"{message.rstrip('.')}; see hushnet --help" if message else "", 2)
    except BaseException as error:  # of a class of an author's own, which need not be an Exception
        where = author_place(error)
        if not where:
            raise
        return _complain(f"{where}: {type(error).__name__}: {words_of(error)}", HushnetError.exit_code)
    if code == INTERRUPTED:
        return _interrupted()
    return code if isinstance(code, int) else 0


def _interrupted(message: str = "interrupted") -> int:
    """Say that somebody interrupted the command, or that a library did: OpenBLAS does, where it may start no thread."""
    return _complain(message, INTERRUPTED) if _may_start_threads() else _no_thread()


def _may_start_threads() -> bool:
    """True if a limit on processes and threads leaves room for one; where it does not, libraries fail in many ways."""
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return False
    return True


def _no_thread() -> int:
    from ...agents.errors import OutOfResources

    sentence = "no further thread or process may be started here: raise the limit (ulimit -u), or end others"
    return _complain(f"{sentence}; the same command goes on", OutOfResources.exit_code)


def _complain(message: str, code: int) -> int:
    if message:
        typer.echo(LONG.sub(lambda word: f"{word[0][:SHOWN_OF_ONE]}...{word[0][-SHOWN_OF_ONE:]}", message), err=True)
    return code


def _unforeseen(error: Exception, given: Sequence[str]) -> int:
    """One sentence about an error in an author's code; else one that nobody foresaw, with its details in a file."""
    if os.environ.get(DEBUG):
        raise error
    from ...agents.errors import InputError, words_of

    if where := author_place(error):
        return _complain(f"{where}: {type(error).__name__}: {words_of(error)}", InputError.exit_code)
    if not _may_start_threads():
        return _no_thread()
    from importlib.metadata import version
    from tempfile import NamedTemporaryFile
    from traceback import format_exception

    what = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_SHOWN].rstrip(": ")
    details = [
        f"hushnet {version('hushnet')}, Python {sys.version}\n",
        f"arguments: {given}\n\n",
        *format_exception(error),
    ]
    try:
        with NamedTemporaryFile("w", prefix="hushnet-", suffix=".txt", delete=False, encoding="utf-8") as stream:
            stream.writelines(line.encode(errors="backslashreplace").decode() for line in details)
        kept = f"the details are in {stream.name}"
    except OSError:
        kept = f"its details could not be kept; set {DEBUG}=1 to see them"
    return _complain(f"an error that hushnet did not foresee, {what}; {kept}, please report it", UNFORESEEN)
