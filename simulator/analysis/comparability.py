"""Comparability of recorded numbers: which of them are of one kind, for all comparisons of two protocols.

Every run's manifest lists under ``measures`` what each of its metrics measures (`hushnet.agents.quantity.Quantity`).
At the same seed and grid point two protocols' numbers are of one kind if their function, rows, judged models and
identity agree. Where the scale alone differs, `hushnet.simulator.analysis.aggregate` reads all of them as means, and
reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from ...agents.errors import InputError
from ...agents.quantity import Quantity, unlike
from ..storage.files import Frame

Relation = Literal["same", "scaled", "unknown", "different"]

EPSILON = "epsilon_"
NOT_SAID = "runs do not say what it measures"


class Incomparable(InputError):
    """Numbers that are not of one kind were to be held against each other."""


def quantity_of(manifest: Mapping[str, Any], metric: str) -> Quantity | None:
    """Quantity that a run's metric measures; None where its manifest does not state it."""
    stored = (manifest.get("measures") or {}).get(metric)
    return Quantity.read(stored) if stored else None


def relation(ours: Quantity | None, theirs: Quantity | None, *, metric: str) -> Relation:
    """Relation of two numbers of a metric: same, scaled, different or unknown.

    Without a word about either, only an objective is doubtful: other metrics have one meaning.
    """
    if ours is None or theirs is None:
        return "unknown" if metric == "objective" else "same"
    if ours.same_function(theirs):
        return "same" if ours.times == theirs.times else "scaled"
    return "different"


@dataclass(frozen=True)
class Ruling:
    """Comparability of the numbers of one metric in a collection."""

    metric: str
    kinds: Mapping[str, int]
    """By protocol: protocols of one number are of one kind; 0 is that of the first."""
    divisors: Mapping[str, float]
    """By run: what its numbers are divided by, where scales differ; else empty."""
    normalised: tuple[str, ...]
    doubts: tuple[str, ...]
    """`normalised` and `doubts`: Sentences about what was normalised, and what is unknown."""
    apart: Mapping[str, str]
    """By protocol of another kind than 0: a sentence that says why."""
    unknown: frozenset[str]
    """Protocols of which it is unknown whether they are of the kind that they are counted among."""


class RecordedRuns(Protocol):
    """Runs of one experiment: what has to be known of them to tell what their metrics measure."""

    trace: Frame
    manifests: list[dict[str, Any]]
    runs: list[str]

    @property
    def labels(self) -> dict[str, str]:
        """Label by protocol key, in drawing order."""
        ...


class Kinds:
    """Quantities that the metrics of a collection's runs measure.

    Protocols are held against the `first`, which by default is the first in drawing order.
    """

    def __init__(self, collection: RecordedRuns, first: str | None = None) -> None:
        self._collection = collection
        keys = list(collection.labels)
        self._protocols = keys if first is None else [first, *(key for key in keys if key != first)]
        self._rulings: dict[str, Ruling] = {}
        self._read: dict[tuple[int, str], Quantity | None] = {}

    @cached_property
    def metrics(self) -> list[str]:
        """Metrics of the trace."""
        return [str(name) for name in self._collection.trace["metric"].unique()]

    @cached_property
    def _places(self) -> dict[str, dict[tuple[Any, ...], tuple[str, Mapping[str, Any]]]]:
        """Run and manifest by seed and grid point, by protocol."""
        found: dict[str, dict[tuple[Any, ...], tuple[str, Mapping[str, Any]]]] = {}
        for run, manifest in zip(self._collection.runs, self._collection.manifests, strict=True):
            grid = tuple((path, repr(value)) for path, value in sorted((manifest.get("grid") or {}).items()))
            found.setdefault(manifest["protocol"], {})[(manifest["seed"], grid)] = run, manifest
        return found

    def ruling(self, metric: str) -> Ruling:
        """Return the comparability of the numbers of a metric."""
        if metric not in self._rulings:
            self._rulings[metric] = self._ruled(metric)
        return self._rulings[metric]

    def check(self, metric: str, protocols: Iterable[str] | None = None) -> None:
        """See that protocols' numbers of a metric are of one kind; all protocols' by default.

        Raises `Incomparable` if they are not; the sentence says what each measures.
        """
        wanted = [key for key in self._protocols if protocols is None or key in set(protocols)]
        found = self.ruling(metric).kinds
        for key in wanted[1:]:
            if key in found and wanted[0] in found and found[key] != found[wanted[0]]:
                raise Incomparable(self._why(metric, key, wanted[0]))

    def changes_along(self, metric: str, axis: str) -> bool:
        """True if some protocol's metric is another function at other values of a swept parameter, at the same seed."""
        for protocol in self._with(metric):
            first: dict[tuple[Any, ...], Quantity] = {}
            for (seed, grid), (_, manifest) in self._places[protocol].items():
                quantity = self._quantity(manifest, metric)
                if quantity is not None:
                    elsewhere = seed, tuple(pair for pair in grid if pair[0] != axis)
                    if not quantity.same_function(first.setdefault(elsewhere, quantity)):
                        return True
        return False

    def sentences(self, metrics: Iterable[str] | None = None) -> list[str]:
        """Everything that a reader must know: what is not of one kind, what was normalised, what is unknown."""
        found = [self.ruling(metric) for metric in (self.metrics if metrics is None else metrics)]
        return [
            sentence for ruling in found for sentence in (*ruling.apart.values(), *ruling.normalised, *ruling.doubts)
        ]

    def _ruled(self, metric: str) -> Ruling:
        there = self._with(metric)
        kinds: dict[str, int] = {}
        speakers: list[str] = []
        scaled: dict[str, str] = {}
        unknown: dict[str, str] = {}
        for key in there:
            for kind, other in enumerate(speakers):
                how = self._relation(metric, key, other)
                if how == "different":
                    continue
                kinds[key] = kind
                if how == "scaled":
                    scaled[key] = other
                elif how == "unknown":
                    unknown[key] = other
                break
            else:
                kinds[key] = len(speakers)
                speakers.append(key)
        apart = {key: f"{self._why(metric, key, there[0])}." for key in there if kinds[key] > 0}
        divided = {kinds[key] for key in scaled}
        return Ruling(
            metric,
            kinds,
            dict(self._divisors(metric, [key for key in there if kinds[key] in divided])),
            tuple(self._scaled(metric, scaled)),
            tuple(self._unknown(metric, unknown)),
            apart,
            frozenset(unknown),
        )

    def _with(self, metric: str) -> list[str]:
        """Protocols with numbers of a metric; of an epsilon, those that claim one."""
        if metric.startswith(EPSILON):
            found = {manifest["protocol"] for manifest in self._collection.manifests if manifest.get("privacy")}
        else:
            found = set(self._collection.trace.loc[self._collection.trace["metric"] == metric, "protocol"])
        return [key for key in self._protocols if key in self._places and key in found]

    def _relation(self, metric: str, ours: str, theirs: str) -> Relation:
        """The worst relation at any place that both have."""
        mine, other = self._places[ours], self._places[theirs]
        order: Sequence[Relation] = ("same", "scaled", "unknown", "different")
        worst: Relation = "same"
        for place, (_, manifest) in mine.items():
            if place in other:
                how = relation(self._quantity(manifest, metric), self._quantity(other[place][1], metric), metric=metric)
                worst = how if order.index(how) > order.index(worst) else worst
        return worst

    def _quantity(self, manifest: Mapping[str, Any], metric: str) -> Quantity | None:
        key = (id(manifest), metric)
        if key not in self._read:
            self._read[key] = quantity_of(manifest, metric)
        return self._read[key]

    def _divisors(self, metric: str, protocols: Iterable[str]) -> Iterator[tuple[str, float]]:
        for key in protocols:
            for run, manifest in self._places[key].values():
                quantity = self._quantity(manifest, metric)
                if quantity is not None:
                    yield run, quantity.times

    def _why(self, metric: str, ours: str, theirs: str) -> str:
        first = {key: next(iter(self._places[key].values()))[1] for key in (ours, theirs)}
        said = [(self._collection.labels[key], self._quantity(first[key], metric)) for key in (ours, theirs)]
        return unlike(metric, *said)

    def _scaled(self, metric: str, pairs: Mapping[str, str]) -> Iterator[str]:
        labels = self._collection.labels
        for ours, theirs in pairs.items():
            by = {key: next((times for _, times in self._divisors(metric, [key])), 1.0) for key in (ours, theirs)}
            factors = [f"{labels[key]} by {times:.6g}" for key, times in by.items()]
            yield (
                f"{metric} of {labels[ours]} and of {labels[theirs]} differ in scale alone, and are read as means "
                f"(divided: {', '.join(factors)})."
            )

    def _unknown(self, metric: str, pairs: Mapping[str, str]) -> Iterator[str]:
        if pairs:
            labels = self._collection.labels
            named = ", ".join(dict.fromkeys(labels[key] for pair in pairs.items() for key in reversed(pair)))
            yield f"{metric}: {NOT_SAID}, so whether {named} are of one kind is unknown."
