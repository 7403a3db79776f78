"""The first row at which two traces of a run differ, in words."""

from __future__ import annotations

from ..storage.files import Frame
from ..storage.run_folder import TRACE_SCHEMA

WHERE = "time", "activations", "metric", "statistic"
"""Columns that say which row it is."""


def first_difference(saved: Frame, made: Frame) -> str:
    """Say which row of a trace is the first that differs, in which columns and how, with every digit of numbers.

    Both traces have the columns of `hushnet.simulator.storage.run_folder.TRACE_SCHEMA`, in order of time. It is a part
    of a sentence; empty if all rows are equal.

    >>> import pandas as pd
    >>> row = {"protocol": "cd", "seed": 0, "time": 1.5, "activations": 3, "messages": 9, "vectors": 9, "bytes": 72}
    >>> row |= {"metric": "objective", "statistic": "sum", "value": 0.5}
    >>> first_difference(pd.DataFrame([row]), pd.DataFrame([row | {"value": 0.25}]))
    'row 1 of 1, at time 1.5 after 3 activations (objective, sum): value 0.5 was saved and is 0.25 when made again'
    """
    common = min(len(saved), len(made))
    one, other = (trace[TRACE_SCHEMA.names].iloc[:common].reset_index(drop=True) for trace in (saved, made))
    differing = one.compare(other)
    if len(differing):
        row = int(differing.index[0])
        names = differing.loc[row].dropna().index.get_level_values(0).unique()
        differs = [
            f"{name} {_shown(one.at[row, name])} was saved and is {_shown(other.at[row, name])}" for name in names
        ]
        return f"row {row + 1:,} of {len(saved):,}, {_place(one, row)}: {', '.join(differs)} when made again"
    if len(saved) == len(made):
        return ""
    longer, whose = (saved, "was saved") if len(saved) > len(made) else (made, "comes when made again")
    return (
        f"{common:,} rows are equal, and then row {common + 1:,}, {_place(longer, common)}, {whose} and is missing in "
        "the other"
    )


def _place(trace: Frame, row: int) -> str:
    time, activations, metric, statistic = (trace[name].iloc[row] for name in WHERE)
    return f"at time {_shown(time)} after {activations:,} activations ({metric}, {statistic})"


def _shown(value: object) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)
