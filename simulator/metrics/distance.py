"""Distance of models from the minimiser of the protocol's own objective."""

from __future__ import annotations

import numpy as np

from ...agents.quantity import Quantity
from .metric import Metric, Reading, Rows, register


def distance(reading: Reading) -> Rows:
    """|theta_i - theta_i*| / |theta_i*|, of agents that are judged; nothing without an objective or models."""
    if "distance" not in reading.kept:
        objective = reading.world.protocol.objective()
        if objective is not None and not reading.honest.all():
            objective = objective.over(reading.honest)
        reading.kept["distance"] = objective.minimise()[0] if objective and objective.has_minimum else None
    best = reading.kept["distance"]
    if best is None or reading.models is None:
        return
    sizes = np.linalg.norm(best, axis=1)
    judged = (sizes > 0) & reading.judged
    found = np.linalg.norm(reading.models - best, axis=1)[judged] / sizes[judged]
    if len(found):
        yield "mean", found.mean()
        yield "worst", found.max()


register(
    Metric(
        name="distance",
        better="less",
        compute=distance,
        of_models=True,
        quantity=lambda reading: Quantity(
            "relative distance from the minimiser of the own objective", "mean over agents"
        ),
        label="models' relative distance from the optimum",
        definition=(
            r"{math}`\lVert \theta_i - \theta_i^{*} \rVert / \lVert \theta_i^{*} \rVert` for {math}`i \in H`, "
            r"with the minimiser {math}`\theta^{*}` of the protocol's own objective: `mean` and maximum "
            "(`worst`)."
        ),
        statistics=("mean", "worst"),
        low=0.0,
        learning=False,
    )
)
