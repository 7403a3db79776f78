"""The form in which the steps of a run are made: in batches of agents, after they were planned, or one by one.

What is *asked for* follows from the scenario (its engine, and whether it is to be debugged) and from whether numba is
switched off, and is part of a run's id, so that results of one form are never given back for another.
What *ran* is in the manifest, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...agents.compilation import is_compiled
from ...agents.errors import HushnetError

Form = Literal["batches", "planned", "one by one"]


@dataclass(frozen=True)
class StepForm:
    """The form in which a run makes its steps."""

    form: Form
    """{"batches", "planned", "one by one"}: In batches of agents; planned, and made one after the other; or one by one,
    when each is due."""
    why: str = ""
    """Why they are made one by one, in one sentence."""

    @property
    def text(self) -> str:
        """The form in words, for a summary."""
        words = {"batches": "steps in batches", "planned": "planned steps", "one by one": "steps one by one"}
        return f"{words[self.form]}, because {self.why}" if self.why else words[self.form]

    def as_dict(self, asked: str) -> dict[str, Any]:
        """The form as a mapping for manifests, with what was asked for."""
        return {"asked": asked, "steps": self.form, "why": self.why}


def asked_form(engine: str, *, debug: bool) -> str:
    """The form that a scenario asks for: ``planned`` where steps admit it, or ``one by one``.

    With numba switched off, it is ``nothing compiled``: kernels round otherwise then.
    """
    if not is_compiled():
        return "nothing compiled"
    return "one by one" if debug or engine == "event" else "planned"


class Rewind(HushnetError):
    """A run is to be made again from its start, because its plan went on beyond a step that ended otherwise.

    Of the planned steps, the `number`-th, from 1 on, has failed and ends the run; 0 if none has. `why` says why steps
    cannot be planned, but have to be made one by one; empty if they can.
    """

    def __init__(self, number: int, why: str = "") -> None:
        super().__init__(number, why)
        self.number, self.why = number, why
