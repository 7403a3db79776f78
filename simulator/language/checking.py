"""Checks scenarios: one as a whole, and the points of its grid by what differs from it.

A grid has up to 10,000 points, which differ from the scenario in a few fields. Only these are validated again, and only
protocols whose complete entries were not met before; the rest is shared. A point that turns out wrong is then checked
as a whole, which finds the sentence to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ValidationError, create_model

from ...agents.authors import author_place, check_call, class_place
from ...agents.errors import INTERRUPTED, InputError, words_of
from ...agents.models import TorchModel
from ...agents.models.torch_model import NETS, pytorch
from ...agents.parameters import Parameters
from ...agents.suggestions import listed
from ...protocols import catalog
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.schedule_selection import check_schedule
from ...protocols.user_files import is_file, load_module, load_object
from ..metrics import METRICS, Metric, register
from ..metrics.own_metrics import show_function
from .admissible import kinds_of
from .field_errors import ScenarioError, field_errors, sentences, without_kind
from .fitting import check_fit, check_kept, check_protocols
from .inheritance import ENTRY, MOST_SAID, Family, inherit
from .scenario import Scenario
from .yaml_source import Source

ALONE: dict[str, Any] = {"sweep": {}, "tune": None, "quick": {}}
"""Fields that the scenario of a single grid point does not have any more."""


@dataclass(frozen=True)
class Code:
    """Source of protocols and metrics that are not shipped."""

    base: Path = Path()
    """Folder that file names are relative to."""
    trust_code: bool = False
    """Whether files that the scenario names may be run."""
    extra: Mapping[str, type[Protocol]] = field(default_factory=dict)
    """Protocol classes handed over from Python."""
    metrics: tuple[str, ...] = ()
    """Names of metrics handed over from Python."""

    def protocol(self, kind: str) -> type[Protocol]:
        """The class of a ``kind``; see `catalog.resolve`."""
        return catalog.resolve(kind, trust_code=self.trust_code, base=self.base, extra=self.extra)

    @cached_property
    def known(self) -> list[str]:
        """Values of ``kind`` that a scenario may give, in words; listing plug-ins takes a tenth of a second."""
        return [*catalog.names(self.extra), "./file.py:Class"]

    def files(self, names: Iterable[str]) -> list[ModuleType]:
        """The user's own files among the names of protocols and metrics, whatever they define or pass on."""
        own = [name for name in names if name not in self.extra and is_file(name)]
        return [load_module(name, trust_code=self.trust_code, base=self.base) for name in own]

    def net(self, name: str) -> None:
        """Load the net of a model from the user's own file, ``./file.py:Class``.

        Raises `InputError` with the field of the scenario.
        """
        try:
            NETS[name] = load_object(name, trust_code=self.trust_code, base=self.base)
        except InputError as error:
            if self.trust_code:
                pytorch()  # without it no such file can be loaded
            raise InputError(str(error), field=("task", "model", "net")) from error

    def metric(self, name: str) -> Callable[..., Any]:
        """A user's own metric, ``./file.py:function``, as a function; a `Metric` there is registered by this name."""
        found = load_object(name, trust_code=self.trust_code, base=self.base)
        if name in METRICS:
            METRICS.remove(name)  # of another scenario, whose file has the same name
        if isinstance(found, Metric):
            register(replace(found, name=name, group="", unasked=False, criterion=False))
            found = found.compute
        if not callable(found):
            raise InputError(f"{name} is no function and no metric that computes something")
        check_call(found, name, ("snapshot",))
        show_function(name, found)
        return found


class Checker:
    """Checks one scenario, which it then has as ``scenario``, valid as a whole, and points of its grid.

    Raises `InputError`: one sentence per mistake, one a line.
    """

    def __init__(self, code: Code, source: Source) -> None:
        self.code, self.source = code, source
        self._known: dict[tuple[str, str], ProtocolParameters] = {}
        self._context = {"time_unit": source.data.get("time_unit"), "metrics": code.metrics}
        self.scenario = self._whole(source)

    def point(self, variant: Source) -> Scenario:
        """The scenario of a point, from a source in which the point's values are set.

        Raises `InputError` if they do not fit the scenario, with everything that is wrong.
        """
        try:
            found = self._changed(variant)
        except (ValidationError, InputError):
            found = None
        return (found or self._whole(variant)).model_copy(update=ALONE)

    def _changed(self, variant: Source) -> Scenario | None:
        """The scenario with what was set checked and taken over; None if a protocol is wrong."""
        before = self.source.data
        update: dict[str, Any] = {}
        for name in sorted(name for name, value in variant.data.items() if value is not before.get(name, ...)):
            if name == "record" and self._wrong_metrics(variant):
                return None
            if name != "protocols":
                update[name] = getattr(
                    _part(name).model_validate({name: variant.data[name]}, context=self._context), name
                )
                continue
            entries = inherit(variant.data[name]).entries
            made = {key: self._protocol(key, entries.get(key)) for key in variant.data[name]}
            update[name] = {key: one for key, one in made.items() if isinstance(one, ProtocolParameters)}
            if len(update[name]) < len(made):
                return None
        changed = self.scenario.model_copy(update=update)
        if update:
            changed.check_parts()
            self._check_fit(changed)
        return changed

    def _whole(self, source: Source) -> Scenario:
        data, wrong, family = dict(source.data), self._wrong_metrics(source), Family()
        if isinstance(data.get("protocols"), Mapping):
            family = inherit(data["protocols"])
            wrong += [_as_field_error(error, source) for error in family.errors]
            made: dict[str, ProtocolParameters] = {}
            for key in data["protocols"]:
                # Something harmless stands for what is wrong, so that the rest is looked at, too.
                made[key] = ProtocolParameters(kind="unknown", label=f"\0{key}")
                if key in family.entries:
                    found = self._protocol(key, family.entries[key], few=len(wrong) <= MOST_SAID)
                    if isinstance(found, list):
                        wrong += found
                    else:
                        made[key] = found
            data["protocols"] = made
        try:
            scenario = Scenario.model_validate(data, context=self._context)
            if not wrong:
                self._check_fit(scenario)
                return scenario
        except ValidationError as error:
            wrong = [*field_errors(error, Scenario, data), *wrong]
        except InputError as error:
            wrong = wrong or [_as_field_error(error, source)]
        raise InputError("\n".join(sentences(wrong, source, family)))

    def _protocol(self, key: str, entry: Any, *, few: bool = True) -> ProtocolParameters | list[ScenarioError]:
        """Validate a protocol's entry with its own class, once; or what is wrong, of which more is only counted."""
        known = key, repr(entry)
        if known not in self._known:
            found = self._validated(("protocols", key), entry, few)
            if isinstance(found, list):
                return found
            self._known[known] = found
        return self._known[known]

    def _validated(self, where: tuple[str, str], entry: Any, few: bool) -> ProtocolParameters | list[ScenarioError]:
        if not isinstance(entry, Mapping):
            return [ScenarioError(where, ENTRY, entry)]
        kind, code = entry.get("kind"), self.code
        if kind is None:
            missing = f"is missing; admissible: {listed(code.known)}"
            return [without_kind(where, entry, lambda: missing, ("kind", "like"))]
        if not isinstance(kind, str):
            wrong = f"must be the name of a protocol; admissible: {listed(code.known)}"
            return [ScenarioError((*where, "kind"), wrong, kind)]
        if not few and kind not in code.known and not is_file(kind):
            return [ScenarioError((*where, "kind"), "unknown protocol", kind)]
        try:
            protocol = code.protocol(kind)
            model = protocol.Parameters
        except InputError as error:
            return [ScenarioError((*where, "kind"), str(error), kind)]
        # A class that is found by its file may be a copy of a shipped one, with that one's literal kind.
        named = kinds_of(model)
        accepted = dict(entry) if not named or kind in named else {**entry, "kind": named[0]}
        try:
            parameters = model.model_validate(accepted, context=self._context).model_copy(update={"kind": kind})
            check_schedule(protocol.traits_for(parameters), parameters)
            check_kept(parameters)
            return parameters
        except ValidationError as error:
            return field_errors(error, model, accepted, where)
        except InputError as error:
            return [ScenarioError((*where, *error.field), str(error), Source("", accepted).scalar(error.field))]
        except INTERRUPTED:
            raise
        except BaseException as error:  # whatever an author's validators, defaults and traits raise
            place = author_place(error) or class_place(protocol)
            return [ScenarioError(where, f"{place}: {type(error).__name__}: {words_of(error)}")]

    def _check_fit(self, scenario: Scenario) -> None:
        for name in nets_of(scenario):
            self.code.net(name)
        check_fit(scenario)
        check_protocols(scenario, [(key, self.code.protocol(one.kind)) for key, one in scenario.protocols.items()])

    def _wrong_metrics(self, source: Source) -> list[ScenarioError]:
        names, wrong = source.value(("record", "metrics")), []
        for rank, name in enumerate(names if isinstance(names, list) else []):
            if isinstance(name, str) and is_file(name):
                try:
                    self.code.metric(name)
                except InputError as error:
                    wrong.append(ScenarioError(("record", "metrics", rank), str(error), name))
        return wrong


def nets_of(scenario: Scenario) -> list[str]:
    """Names of nets in the user's own files that a scenario's agents learn."""
    model = scenario.task.model
    return [model.net] if isinstance(model, TorchModel) else []


def _as_field_error(error: InputError, source: Source) -> ScenarioError:
    return ScenarioError(error.field, str(error), source.scalar(error.field))


@cache
def _part(field: str) -> type[BaseModel]:
    info = Scenario.model_fields[field]
    return create_model(f"Scenario_{field}", __base__=Parameters, **{field: (info.annotation, info)})  # pyright: ignore
