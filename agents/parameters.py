"""The base of everything that a scenario file may set."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Parameters(BaseModel):
    """Frozen, strict parameters: an unknown field or a value of another type is an error, never a guess.

    A class that a scenario selects by name has a field ``kind: Literal["its_name"]``. The first line of its
    docstring is what ``hushnet list`` prints.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
