"""Whether a planted error shows: run in the copy of the package where it stands (``python -m tests.oracles.judging``).

Nothing of the project is imported before an error is planted; what others wrote is imported once, for all of them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterable
from hashlib import blake2s
from pathlib import Path
from typing import Any

MIXED = "mixed"
SECONDS = 60
"""Of processor time for one world, of which the longest takes a tenth: what takes so long does not end."""


def digest(rows: Iterable[Any]) -> str:
    """A short name of some rows."""
    return blake2s(repr(list(rows)).encode(), digest_size=8).hexdigest()


def sound_digests(cases: Iterable[int]) -> dict[int, list[str]]:
    """Of each world, digests of the frozen engine's rows: all, and those of declared steps, observed and not."""
    from . import declared
    from .compare import unobserved
    from .engine import build
    from .rare_worlds import world_of

    found = {}
    for case in cases:
        rows = build.run(world_of(case))
        stated = declared.run(declared.declared(world_of(case)))
        found[case] = [digest(rows), digest(stated), digest(unobserved(stated))]
    return found


def differs(case: int, engine: str, sound: list[str]) -> bool:
    """Whether an engine or form parts from the frozen engine in a world; whatever is raised is a difference.

    Of ``mixed`` worlds (`tests.campaigns.mixed_worlds`), whether the two engines part, or what is counted anew does.
    """
    if engine == MIXED:
        from ..campaigns import mixed_worlds

        with tempfile.TemporaryDirectory() as folder:
            return mixed_worlds.attempt(random.Random(f"0-{case}"), Path(folder), loud=False)[1] != []
    from . import declared, product, steps
    from .rare_worlds import world_of

    description = world_of(case)
    try:
        if engine not in steps.FORMS:
            return digest(product.run(description)) != sound[0]
        stated = declared.declared(description)
        seen = (digest(steps.run(stated, engine, observed=observed)) for observed in (True, False))
        return any(found != right for found, right in zip(seen, sound[1:], strict=True))
    except (NameError, ImportError):  # the planted text is no program
        raise
    except Exception:
        return True


class _Endless(Exception):
    """A world does not end."""


def _end(*_: Any) -> None:
    raise _Endless


def judge(engines: str, sound: str, *cases: str) -> str:
    """The first engine and world that differ, in words; empty if none does."""
    from hushnet.protocols.steps import kernels as draw_kernels

    # What is not compiled may round otherwise, but draws the same noise.
    draw_kernels.disagreement = str  # type: ignore[assignment]
    known: dict[str, list[str]] = json.loads(Path(sound).read_text(encoding="utf-8"))
    signal.signal(signal.SIGVTALRM, _end)
    for case in cases:
        for engine in engines.split(","):
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            if differs(int(case), engine, known.get(case, [])):
                return f"{engine} {case}"
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def serve() -> None:
    """Judge what each line of the input asks for, in a process of its own."""
    import numba  # noqa: F401
    import pandas  # noqa: F401
    import pydantic  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401
    import simpy  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            print("shown", judge(*line.split()), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print("failed", flush=True)


if __name__ == "__main__":
    serve()
