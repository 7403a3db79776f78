"""Small multiples: the panels of a figure, one for each protocol, metric, value of a sweep or kind of privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...agents.errors import InputError
from ..analysis.aggregate import ALIASES, unknown
from ..analysis.labels import placed
from ..analysis.results import Collection
from .frontier import promises
from .numbers import NothingToDraw, Plot, Spec, chosen, kind_for, numbers_of, select, swept
from .style import styled


def plots(collection: Collection, spec: Spec) -> list[Plot]:
    """The numbers of a figure, panel by panel.

    Its specification has fields of `hushnet.simulator.language.figure_parameters.Figure`. Raises `InputError` if it
    asks for what does not exist in the results.
    """
    collection = styled(collection, spec)
    kind = kind_for(spec)
    _check_kinds(collection, spec)
    parts = _parts(select(collection, spec.get("at") or {}), spec)
    found, nothing = list[Plot](), "figures: there is no protocol to show beside the baseline"
    for title, part, asked in parts:
        try:
            found.append(replace(numbers_of(kind, part, asked), panel=title))
        except NothingToDraw as error:
            if not kind.by_protocol:
                raise
            nothing = str(error)  # of this protocol: it has no panel
    if not found:
        raise NothingToDraw(nothing, field=("figures",))
    return found if len(found) > 1 else [replace(found[0], panel="")]


def _check_kinds(collection: Collection, spec: Spec) -> None:
    """Refuse a figure that would show protocols' numbers side by side which are not of one kind."""
    if spec.get("facet") == "protocol" or kind_for(spec).by_protocol:
        return
    facet = spec.get("facet")
    for name in facet if isinstance(facet, list | tuple) else [str(spec["y"])]:
        metric = ALIASES.get(name, name)
        # Panels of a frontier part epsilons of several kinds already.
        if metric in collection.kinds.metrics and not metric.startswith("epsilon_"):
            collection.kinds.check(metric, chosen(collection, spec))


def _parts(collection: Collection, spec: Spec) -> Iterator[tuple[str, Collection, Spec]]:
    facet = spec.get("facet")
    protocols = [key for key in chosen(collection, spec) if key != spec.get("baseline")]
    if isinstance(facet, list | tuple):
        for metric in facet:
            # A statistic belongs to y; other metrics have their usual one.
            yield (
                "",
                collection,
                {**spec, "y": metric, "statistic": spec.get("statistic") if metric == spec["y"] else None},
            )
    elif facet == "protocol" or (facet is None and kind_for(spec).by_protocol):
        for key in protocols:
            yield collection.labels[key], collection, {**spec, "protocols": [key]}
    elif facet is not None:
        path = swept(collection, str(facet), field="facet", others=("protocol",))
        values = list(dict.fromkeys(collection.places[path].dropna()))
        if not values:
            complaint = f"figures: facet {facet!r} has no values in these results{unknown(str(facet), collection.grid)}"
            raise InputError(complaint, field=("figures",))
        for value in values:
            yield placed(collection, path, value), select(collection, {path: value}), spec
    elif kind_for(spec).by_promise:
        for title, keys in promises(collection, spec):
            yield title, collection, {**spec, "protocols": keys}
    else:
        yield "", collection, spec
