"""The base of everything that a scenario file may set."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

Interval = Annotated[float, Field(ge=1e-9)]
"""Time units that pass between two events of a kind; shorter ones are rounded to none, and time would stand still."""
Rate = Annotated[float, Field(gt=0, le=1e9)]
"""Events per time unit."""


class Parameters(BaseModel):
    """Frozen, strict parameters: an unknown field or a value of another type is an error, never a guess.

    A class that a scenario selects by name has a field ``kind: Literal["its_name"]``. The first line of its
    docstring is what ``hushnet list`` prints.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
