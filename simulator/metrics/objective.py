"""The objective: value and gap, computed by the recorder while the run goes on."""

from __future__ import annotations

import math

from .metric import Metric, register

OBJECTIVE = register(
    Metric(
        name="objective",
        better="less",
        compute=None,
        of_models=True,
        quantity=lambda reading: None,
        definition=(
            r"The objective {math}`Q(\theta)` of the protocol, or of that which `record.objective_of` names, at "
            r"the agents' models; `gap` is {math}`Q(\theta) - \min Q`, where the minimum is known."
        ),
        statistics=("value", "gap"),
        default="value",
        ranges={"gap": (0.0, math.inf)},
        judge=True,
        judged_by="gap",
        share="gap",
    )
)
