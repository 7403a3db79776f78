"""The form in which the steps of a run are made: compiled, or in Python.

Three things are told apart:

- what is *asked for* follows from the scenario (its engine, and whether it is to be debugged) and from whether numba is
  switched off. It is part of a run's id, so that the results of one form are never given back for another.
- what is *there* follows from the texts, the protocol, the kinds of data and network, and the versions of code and
  libraries, which are parts of the id as well. Only numba knows whether it compiles a text, and says so by compiling
  it. It is asked whatever was compiled before and however long that takes; what the store of compiled code has, code or
  refusals, is kept under all that it depends on, so it only saves time.
- what *ran* is in the manifest, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numba.core import config

Form = Literal["compiled", "python"]


@dataclass(frozen=True)
class StepForm:
    """The form in which a run makes its steps.

    Parameters
    ----------
    form : {"compiled", "python"}
    why : str
        Why it is Python, in one sentence, with the author's line where a text's own line stands in the way; or what is
        still open about a form that nobody has compiled yet.
    """

    form: Form
    why: str = ""

    @property
    def text(self) -> str:
        """The form in words, for a summary."""
        step = "compiled step" if self.form == "compiled" else "Python step"
        return f"{step}, {self.why}" if self.form == "compiled" and self.why else _because(step, self.why)

    def as_dict(self, asked: Form) -> dict[str, Any]:
        """The form as a mapping for manifests, with what was asked for."""
        return {"asked": asked, "steps": self.form, "why": self.why}


def asked_form(engine: str, *, debug: bool) -> Form:
    """The form that a scenario asks for.

    Parameters
    ----------
    engine : {"auto", "event", "batched"}
    debug : bool
    """
    # Numba's own name of its environment variable NUMBA_DISABLE_JIT.
    switched_off = config.DISABLE_JIT  # pyright: ignore[reportAttributeAccessIssue]
    return "python" if debug or engine == "event" or switched_off else "compiled"


def _because(step: str, why: str) -> str:
    return f"{step}, because {why}" if why else step
