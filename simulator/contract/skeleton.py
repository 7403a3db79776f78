"""The files that ``hushnet new protocol NAME`` writes: a working protocol to start from, and its test."""

from __future__ import annotations

import keyword
from pathlib import Path

from ...agents.errors import InputError

PROTOCOL = '''"""{title}: every agent averages with its neighbours and follows its own gradient.

Run it with `hushnet run scenario.yaml --trust-code`, where the scenario has

    protocols:
      {module}: {{kind: "./{module}.py:{name}", step_size: 0.1}}
"""

from typing import Any

from pydantic import Field

from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.invariants import Declared, last_sent_is_kept
from hushnet.protocols.steps import average, local_gradient


class {name}Parameters(ProtocolParameters):
    """What a scenario may set."""

    step_size: float = Field(default=0.1, gt=0)
    """Step along the agent's own gradient."""


class {name}(Protocol):
    """Asynchronous gossip averaging with local gradient steps."""

    Parameters = {name}Parameters
    parameters: {name}Parameters

    def layout(self) -> Layout:
        """One model per agent, and messages that show it to the neighbours."""
        p = self.problem.task.dimension
        return Layout(agent={{"model": p}}, messages={{"model": MessageKind(p, mirrors="model")}})

    def start(self, me: Any) -> None:
        """Begin at zero, which every neighbour may know."""
        me.send("model", me.model, me.public("the start does not depend on data"))

    # A step of one agent, in plain Python. For large worlds, write @batched (of hushnet.protocols.steps) above: it is
    # then made for many agents at once, me.model is (B, p) and me.degree (B, 1), and in place of `if` it needs
    # me.model = np.where(me.degree > 0, (me.model + average(me)) / 2, me.model).
    @staticmethod
    def step(me: Any) -> None:
        """Half way to the neighbours' weighted mean, a gradient step, the news; see `protocols.steps.step_names`."""
        gradient = local_gradient(me, me.model)
        if me.degree > 0:
            me.model = (me.model + average(me)) / 2
        me.model -= me.step_size * gradient
        me.message = me.model

    def invariants(self) -> Declared:
        """What every run is checked for, on every network: an agent goes on from the model that it has sent."""
        return (last_sent_is_kept("model", "model", "the step ends with sending the model"),)
'''

TEST = '''"""Whether {name} keeps to the contract between protocols and the simulator; run it with `pytest`."""

from {module} import {name}

from hushnet.simulator.contract import check_contract


def test_{module}_keeps_the_contract():
    check_contract({name}, {{"step_size": 0.1}})
'''


def write_protocol(name: str, folder: Path) -> tuple[Path, Path]:
    """Write a protocol and its test, into a folder that is made if it is missing, and return both paths.

    The name is a Python identifier, whose CamelCase form the class gets. Raises `InputError` if it cannot be a
    module's, or a file is there already.
    """
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name):
        raise InputError(f"{name!r} cannot name a Python module; use letters, digits and _, such as my_protocol")
    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    if not class_name.isidentifier():
        raise InputError(f"{name!r} leaves no name for a class; begin with a letter, such as my_protocol")
    files = {folder / f"{name}.py": PROTOCOL, folder / f"test_{name}.py": TEST}
    for path in files:
        if path.exists():
            raise InputError(f"{path} exists already; choose another name or folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, template in files.items():
            words = {"module": name, "name": class_name, "title": class_name}
            path.write_text(template.format(**words), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from error
    protocol, test = files
    return protocol, test
