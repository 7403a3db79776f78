"""Public modules and their public names, documented from docstrings by Sphinx's autodoc."""

from __future__ import annotations

import importlib

from ..language.described import summary
from .markdown import code, table

PUBLIC: dict[str, dict[str, str]] = {
    "Running and reading": {
        "hushnet.simulator.api": "run load Result",
        "hushnet.simulator.compare": "compare Comparison",
        "hushnet.simulator.analysis.results": "load_all Collection",
    },
    "Writing a protocol": {
        "hushnet.protocols.base": "Protocol ProtocolParameters",
        "hushnet.protocols.steps.step_names": "Names",
        "hushnet.protocols.steps": "",
        "hushnet.protocols.steps.peer": "Peer",
        "hushnet.protocols.layout": "Layout MessageKind",
        "hushnet.protocols.traits": "Traits",
        "hushnet.protocols.problem": "Problem",
        "hushnet.protocols.noise": "GradientNoise",
        "hushnet.protocols.invariants": "Invariant NoInvariant Where Instant largest by_row last_sent_is_kept of_edges "
        "ahead_by_one mixed_by_one_end",
        "hushnet.simulator.contract": "",
    },
    "Privacy": {
        "hushnet.protocols.privacy.budget": "Privacy",
        "hushnet.protocols.privacy.mechanisms.mechanism": "Mechanism Noise",
        "hushnet.protocols.privacy.mechanisms.mechanism_registry": "register mechanism_of noise_of noises",
        "hushnet.protocols.privacy.mechanisms.contract": "check_mechanism",
        "hushnet.protocols.privacy.accounting": "verified claimed Charge basic_composition_bound "
        "advanced_composition_bound gaussian_bound",
        "hushnet.protocols.privacy.ledger": "Ledger",
        "hushnet.simulator.observers.printed_bounds": "",
    },
    "Registering kinds": {
        "hushnet.agents.registry": "Registry",
        "hushnet.agents.kinds": "KindOf",
        "hushnet.agents.losses": "Loss local_gradient local_loss",
        "hushnet.agents.losses.loss": "register",
        "hushnet.agents.objectives.objectives": "Objective",
        "hushnet.agents.models": "ModelKind Predictor Perceptron Softmax LinearModel",
        "hushnet.agents.tables": "Table",
        "hushnet.agents.tasks.task": "Task",
        "hushnet.agents.tasks.extent": "Extent",
        "hushnet.agents.tasks.outline": "Outline",
        "hushnet.agents.tasks.task_registry": "TaskKind",
        "hushnet.agents.availability": "Availability",
        "hushnet.protocols.attacks": "Attack",
        "hushnet.simulator.metrics.own_metrics": "own_metric",
        "hushnet.simulator.recording.snapshot": "Snapshot",
        "hushnet.simulator.metrics.metric": "Metric Reading register",
        "hushnet.simulator.network.graphs": "Topology",
        "hushnet.simulator.network.graph_changes": "GraphChanges",
        "hushnet.simulator.network.compute": "ComputeTime",
        "hushnet.simulator.network.clocks": "ClockModel Clock RenewalClock RecordedClock",
        "hushnet.simulator.network.latency": "Latency",
        "hushnet.simulator.network.network": "LossModel",
        "hushnet.simulator.language.figure_kinds": "FigureKind register",
    },
}
"""Public names of modules, by what somebody wants to do; of a module without any, all that its ``__all__`` has."""
REGISTRIES = {
    "hushnet.agents.losses": "LOSSES",
    "hushnet.agents.models": "MODELS",
    "hushnet.agents.tasks.task_registry": "TASKS",
    "hushnet.agents.availability": "AVAILABILITIES",
    "hushnet.protocols.attacks": "ATTACKS",
    "hushnet.protocols.base": "Layout MessageKind Traits",
    "hushnet.protocols.privacy.mechanisms": "Noise RandomisedResponse register",
    "hushnet.simulator": "run load Result",
    "hushnet.simulator.metrics": "METRICS own_metric",
    "hushnet.simulator.figures.series": "bars",
    "hushnet.simulator.network.graphs": "TOPOLOGIES",
    "hushnet.simulator.network.graph_changes": "GRAPH_CHANGES",
    "hushnet.simulator.network.compute": "COMPUTE_TIMES",
    "hushnet.simulator.network.clocks": "CLOCKS",
    "hushnet.simulator.network.latency": "LATENCIES",
    "hushnet.simulator.network.network": "LOSS_MODELS",
    "hushnet.simulator.language.figure_kinds": "FIGURE_KINDS",
}
"""Public names without a docstring of their own: registries, and second places of names."""


def names(module: str, given: str) -> list[str]:
    """Public names of a module."""
    return given.split() or list(importlib.import_module(module).__all__)


def pages() -> dict[str, str]:
    """The page of each group, and their overview."""
    made, rows = {}, []
    for title, modules in PUBLIC.items():
        page = f"api-{title.lower().replace(' ', '-')}"
        body = "\n\n".join(_directive(module, names(module, given)) for module, given in modules.items())
        made[page] = f"# {title}\n\n```{{eval-rst}}\n{body}\n```\n"
        for module, given in modules.items():
            rows += [
                (f"{{py:obj}}`~{module}.{name}`", code(module), summary(getattr(importlib.import_module(module), name)))
                for name in names(module, given)
            ]
    others = [(code(name), code(module), "") for module, given in REGISTRIES.items() for name in given.split()]
    listed = "\n".join(made)
    opening = "What may be imported, and all of it: whatever is not listed may change between versions."
    text = table(("name", "of", "what it is"), [*rows, *others])
    return {**made, "api": f"# Python\n\n{opening}\n\n```{{toctree}}\n\n{listed}\n```\n\n{text}"}


def _directive(module: str, members: list[str]) -> str:
    own = "" if module in ("hushnet.protocols.base",) else "   :imported-members:\n"
    return f".. automodule:: {module}\n   :members: {', '.join(members)}\n{own}"
