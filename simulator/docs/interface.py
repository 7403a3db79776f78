"""Public modules and their names, documented from docstrings by Sphinx's autodoc."""

from __future__ import annotations

MODULES = {
    "Running and reading": ("hushnet.simulator.api", "hushnet.simulator.compare", "hushnet.simulator.analysis.results"),
    "Writing a protocol": (
        "hushnet.protocols.base",
        "hushnet.protocols.steps.step_names",
        "hushnet.protocols.steps",
        "hushnet.protocols.layout",
        "hushnet.protocols.traits",
        "hushnet.protocols.problem",
        "hushnet.protocols.steps.peer",
        "hushnet.protocols.invariants",
        "hushnet.simulator.contract",
    ),
    "Privacy": (
        "hushnet.protocols.privacy.mechanisms.mechanism",
        "hushnet.protocols.privacy.mechanisms.mechanism_registry",
        "hushnet.protocols.privacy.accounting",
        "hushnet.protocols.privacy.ledger",
    ),
    "Registering kinds": (
        "hushnet.agents.registry",
        "hushnet.agents.kinds",
        "hushnet.agents.losses",
        "hushnet.agents.tasks.task_registry",
        "hushnet.simulator.metrics.own_metrics",
        "hushnet.simulator.recording.snapshot",
        "hushnet.simulator.metrics.metric",
        "hushnet.simulator.network.graphs",
        "hushnet.simulator.network.clocks",
        "hushnet.simulator.network.latency",
        "hushnet.simulator.network.network",
        "hushnet.simulator.language.figure_kinds",
    ),
}
"""Modules by what somebody wants to do."""


GATHERED = (
    "hushnet.protocols.steps",
    "hushnet.simulator.contract",
    "hushnet.simulator.compare",
    "hushnet.protocols.privacy.accounting",
    "hushnet.agents.losses",
)
"""Those that only gather what stands in their files."""


def pages() -> dict[str, str]:
    """The page of each group, and their overview."""
    made = {}
    for title, modules in MODULES.items():
        body = "\n\n".join(map(_directive, modules))
        made[f"api-{title.lower().replace(' ', '-')}"] = f"# {title}\n\n```{{eval-rst}}\n{body}\n```\n"
    listed = "\n".join(made)
    opening = "What may be imported. Whatever is not listed may change between versions."
    return {**made, "api": f"# Python\n\n{opening}\n\n```{{toctree}}\n\n{listed}\n```\n"}


def _directive(module: str) -> str:
    gathered = "   :imported-members:\n" if module in GATHERED else ""
    return f".. automodule:: {module}\n   :members:\n{gathered}"
