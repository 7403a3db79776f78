"""Delays that were measured: samples of one distribution, and delays that change over time, from files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.parameters import LONGEST, Interval
from ...agents.table_files import TimesFile
from .latency import LATENCIES, FileDelays, Latency

WHERE = ("network", "latency")


@LATENCIES.register
class Empirical(TimesFile, Latency):
    """Delays drawn from those that were measured, which a CSV file lists in its column delay.

    Every message takes one of them, each with the same probability.
    """

    kind: Literal["empirical"]
    path: str = Field(examples=["samples.csv"])
    """CSV file with a header line and the column delay (time units)."""

    @property
    @override
    def average(self) -> float:
        return 0.0

    @override
    def read(self, ids: Sequence[int | str], base: Path | None) -> FileDelays:
        listed = [delay for *_, (delay,) in self.rows(base, ids, (), ("delay",), WHERE, longest=LONGEST)]
        if not listed:
            raise InputError(f"{self.path} lists no delay; at least one is needed", field=(*WHERE, "path"))
        samples = np.sort(np.array(listed))

        def draw(_: int, __: NDArray[np.int64], uniforms: NDArray[np.float64], ___: float) -> NDArray[np.float64]:
            ranks = (uniforms[:, 0] * len(samples)).astype(np.int64)
            return samples[np.minimum(ranks, len(samples) - 1)]

        return FileDelays(draw, float(samples.mean()))


@LATENCIES.register
class Varying(TimesFile, Latency):
    """Delays that change over time, from a CSV file with the columns time, delay, and for each link sender, receiver.

    A message takes the delay of the last time listed at or before the instant at which it is sent. Before the first it
    takes that of the first, or of the last where the trace repeats.
    """

    kind: Literal["varying"]
    path: str = Field(examples=["delays-over-time.csv"])
    """CSV file with a header line and the columns time, delay (time units) for all links, or sender, receiver, time,
    delay for each."""
    repeat: Interval | None = None
    """Time units after which the trace begins anew; by default the last delay stays."""

    @property
    @override
    def average(self) -> float:
        return 0.0

    @override
    def read(self, ids: Sequence[int | str], base: Path | None) -> FileDelays:
        listed: dict[tuple[int, ...], dict[float, float]] = {}  # by link; of all links, by none
        ends, columns = ("sender", "receiver"), ("time", "delay")
        for line, link, (time, delay) in self.rows(base, ids, ends, columns, WHERE, optional=True, longest=LONGEST):
            if time < 0 or (self.repeat is not None and time >= self.repeat):
                most = "" if self.repeat is None else f" and below repeat, {self.repeat}"
                raise InputError(f"{line}: time {time!r} must be at least 0{most}", field=(*WHERE, "path"))
            if time in listed.setdefault(link, {}):
                raise InputError(f"{line}: the time {time!r} is listed twice", field=(*WHERE, "path"))
            listed[link][time] = delay
        if not listed:
            raise InputError(f"{self.path} lists no delay; at least one is needed", field=(*WHERE, "path"))
        traces = {link: (sorted(of), [of[time] for time in sorted(of)]) for link, of in listed.items()}

        def draw(sender: int, receivers: NDArray[np.int64], _: NDArray[np.float64], now: float) -> NDArray[np.float64]:
            instant = now if self.repeat is None else now % self.repeat
            found = []
            for receiver in receivers.tolist():
                trace = traces.get((sender, receiver), traces.get(()))
                if trace is None:
                    raise InputError(
                        f"{self.path} gives no delay from {ids[sender]!r} to {ids[receiver]!r}; add the link",
                        field=(*WHERE, "path"),
                    )
                times, delays = trace
                rank = bisect_right(times, instant) - 1
                found.append(delays[rank if self.repeat is not None else max(rank, 0)])
            return np.array(found)

        return FileDelays(draw, float(np.mean([delay for _, delays in traces.values() for delay in delays])))
