"""Fields of a scenario whose admissible values are registered: by a name, or as parameters of a kind.

They are checked against what is registered when a scenario is read, so a plug-in's own are admissible like those that
are shipped, and errors, lists and the schema for editors name them all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from .durations import seconds_in
from .parameters import Parameters
from .registry import Registry

Thing = TypeVar("Thing")
Class = TypeVar("Class", bound=type[Any])


class NameOf(Generic[Thing]):
    """Marks a text as the name of something registered that is wanted here; by default all are."""

    def __init__(self, registry: Registry[Thing], wanted: Callable[[Thing], bool] = lambda _: True) -> None:
        self.registry, self.wanted = registry, wanted

    @property
    def names(self) -> list[str]:
        """The names that are admissible now."""
        return [name for name, thing in self.registry.items() if self.wanted(thing)]

    def members(self) -> list[Any]:
        """The alternatives as types, for sentences about them."""
        return [Literal[tuple(self.names)]]

    def _check(self, name: str) -> str:
        if name not in self.names:
            raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, self.names))})
        return name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, core_schema.str_schema(strict=True))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"enum": self.names, "type": "string"}


class Bare:
    """Marks a field in which a bare number stands for the simplest kind: it is that kind's `field`.

    If `timed`, it is counted in time units, and may be a duration such as 80 ms.
    """

    def __init__(self, kind: str, field: str, *, timed: bool = False) -> None:
        self.kind, self.field, self.timed = kind, field, timed

    def _spelled_out(self, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        number = number or (self.timed and seconds_in(value) is not None)
        return {"kind": self.kind, self.field: value} if number else value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._spelled_out, handler(source))


class KindOf(Registry[type[Parameters]]):
    """A registry of classes of parameters, of which a scenario chooses one by ``kind``.

    They derive from the base, and every one of them has to set the attributes that it ``says``.
    """

    def __init__(self, what: str, base: type = Parameters, *, says: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.base, self.says = base, says
        self._adapter: tuple[int, TypeAdapter[Any]] | None = None

    def register(self, kind: Class) -> Class:
        """Make a class known by the literal values of its field ``kind``; for use as a decorator.

        Raises TypeError if it is none of this registry, and ValueError if a name is taken.
        """
        if not issubclass(kind, self.base):
            raise TypeError(f"a {self.what} is a subclass of {self.base.__name__}, not {kind!r}.")
        field = kind.model_fields.get("kind")
        names = get_args(field.annotation) if field is not None else ()
        if not names:
            raise TypeError(f"{kind.__name__} needs a field kind: Literal[...] with its name.")
        for attribute in self.says:
            if not hasattr(kind, attribute):
                raise TypeError(f"{kind.__name__} has to say its {attribute}: every {self.what} does.")
        for name in names:
            self.add(name, kind)
        return kind

    def members(self) -> list[Any]:
        """The alternatives as types, for sentences about them."""
        return list(dict.fromkeys(self.values()))

    @property
    def union(self) -> Any:
        """Those that are registered now, told apart by ``kind``."""
        members = self.members()
        return Annotated[reduce(or_, members), Field(discriminator="kind")] if len(members) > 1 else members[0]

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Adapter of pydantic that validates values as one of the registered kinds."""
        if self._adapter is None or self._adapter[0] != self.edition:
            self._adapter = self.edition, TypeAdapter(self.union)
        return self._adapter[1]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            lambda value, info: self.adapter.validate_python(value, context=info.context)
        )

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return handler(self.adapter.core_schema)
