"""The base of everything that a scenario file may set, and the kinds of numbers in it, each with its bounds.

What is within the bounds neither overflows nor fills the memory by itself; a number belongs to one of these kinds.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from .durations import AS_TEXT, Timed
from .errors import FieldError

LONGEST = 2**22
"""Time units: up to here, sums of multiples of 2^-30 are exact."""
LEAST = 1e-9
"""Time units; shorter times are rounded to none, and time would stand still."""
SMALLEST, LARGEST = 1e-12, 1e12
MOST = 10**7
"""Agents, rows, columns."""
MOST_REPEATS = 10**5
"""Iterations within a step."""


def _none_or_some(value: float) -> float:
    if 0 < value < LEAST:
        raise ValueError(f"must be 0 or at least {LEAST:g}")
    return value


def _not_tiny(value: float) -> float:
    if value < SMALLEST:
        raise ValueError(f"must be at least {SMALLEST:g}")
    return value


_FOR_EDITORS: dict[str, Any] = {"json_schema_extra": {"minimum": SMALLEST}}
"""What the schema says of `_not_tiny`."""

_SOME_TIME: dict[str, Any] = {"type": "number", "minimum": LEAST, "maximum": LONGEST}

Interval = Annotated[float, Field(ge=LEAST, le=LONGEST), Timed()]
"""Time units that pass between two events of a kind."""
Delay = Annotated[
    float,
    Field(ge=0, le=LONGEST, json_schema_extra={"anyOf": [{"const": 0}, _SOME_TIME, AS_TEXT]}),
    AfterValidator(_none_or_some),
    Timed(),
]
"""Time units that something takes, or none."""
Instant = Annotated[float, Field(ge=0, le=LONGEST), Timed()]
"""A time in a run."""
Rate = Annotated[float, Field(gt=0, le=1e9, **_FOR_EDITORS), AfterValidator(_not_tiny)]
"""Events per time unit."""
Positive = Annotated[float, Field(gt=0, le=LARGEST, **_FOR_EDITORS), AfterValidator(_not_tiny)]
"""A weight, scale or step size."""
NotNegative = Annotated[float, Field(ge=0, le=LARGEST)]
"""A weight, scale or step size, or none."""
Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
"""A value of either sign."""
Growth = Annotated[float, Field(ge=1, le=10)]
"""Factor from one round to the next."""
Factor = Annotated[float, Field(gt=0, le=10, **_FOR_EDITORS), AfterValidator(_not_tiny)]
"""The same, where things may also shrink."""
Spread = Annotated[float, Field(gt=0, le=10)]
"""Standard deviation of a logarithm."""
Id = Annotated[int, Field(ge=0, lt=2**63)] | str
"""What an agent is called."""
Size = Annotated[int, Field(ge=1, le=MOST)]
"""How many of what is kept in memory."""
Repeats = Annotated[int, Field(ge=1, le=MOST_REPEATS)]
"""Iterations within one step of an agent, or while data are made: until they are over, no limit of a run is heeded."""
Count = Annotated[int, Field(ge=1, le=10**15)]
"""How many of what happens in a run."""


class Parameters(BaseModel):
    """Frozen, strict parameters: an unknown field or a value of another type is an error, never a guess.

    A float without a fraction counts as a whole number, as in JSON Schema: ``agents: 1e3`` are 1,000.

    A class that a scenario selects by name has a field ``kind: Literal["its_name"]``. The first line of its
    docstring is what ``hushnet list`` prints.
    """

    # Models are built when something is first read with them, and their docstrings read when somebody asks for them:
    # both together take longer than everything else that `hushnet list` does.
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )

    def __new__(cls, *_given: Any, **_fields: Any) -> Self:
        """Build the model before there is an instance of it, read or unpickled.

        Before 2.14, pydantic writes no instance within another whose own model is not built.
        """
        cls.model_rebuild()
        return super().__new__(cls)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _with_whole_floats(handler(source), cls)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _with_whole_floats(schema: Any, model: type[BaseModel]) -> Any:
    """The same schema, in which whole numbers may be written as floats; not where floats are admitted themselves."""
    if isinstance(schema, list | tuple):
        return type(schema)(_with_whole_floats(part, model) for part in schema)
    if not isinstance(schema, dict) or (schema.get("type") == "model" and schema["cls"] is not model):
        return schema
    if schema.get("type") == "int":
        return core_schema.no_info_before_validator_function(_whole, cast(CoreSchema, schema))
    if schema.get("type") == "union" and any(_is_float(choice) for choice in schema["choices"]):
        return schema
    return {name: _with_whole_floats(part, model) for name, part in schema.items()}


def _is_float(choice: Any) -> bool:
    return (choice[0] if isinstance(choice, tuple) else choice)["type"] == "float"


def given(*fields: str, how: str = "anyOf") -> Any:
    """Configuration of a model of which some of these fields, or with ``oneOf`` a single one, has to be given.

    It is for the schema; the model's own validator says it in words.
    """
    one = [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in fields]
    return {"json_schema_extra": {how: one}}


def check_named(given: Parameters, choice: str, **fields: str) -> None:
    """Raise a `FieldError` if a field is set that the default of a choice does not read, and nobody made the choice.

    Whoever makes it, as in a sweep over it or with ``like``, may leave fields of the other values as they are. Fields
    have the values of the choice, in words, that they belong to.
    """
    for name, values in fields.items():
        default = type(given).model_fields[name].default
        if choice not in given.model_fields_set and getattr(given, name) != default:
            raise FieldError(f"is for {choice}: {values}; name the {choice}", name)
