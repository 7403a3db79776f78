"""The JSON schema of scenario files, for editors; generated from the models that check them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pydantic.json_schema import models_json_schema

from ...protocols import catalog
from .scenario import Scenario

_REFERENCE = "#/$defs/{model}"


def scenario_schema() -> dict[str, Any]:
    """JSON schema (2020-12) of a scenario file, with every shipped and installed protocol.

    An entry under ``protocols`` is one of three: a protocol by ``kind``, a protocol that takes over another one's
    fields by ``like`` (nothing else is then required), or a class in the user's own file.
    """
    parameters = {name: catalog.resolve(name).Parameters for name in catalog.names()}
    references, whole = models_json_schema(
        [(Scenario, "validation"), *((model, "validation") for model in parameters.values())],
        ref_template=_REFERENCE,
    )
    definitions = whole["$defs"]
    scenario = definitions.pop(_name(references[Scenario, "validation"]))
    for field in ("latency", "loss"):
        # A bare number stands for the simplest kind.
        properties = definitions["NetworkParameters"]["properties"]
        described = {key: properties[field].pop(key) for key in ("description", "title") if key in properties[field]}
        properties[field] = {**described, "anyOf": [{"type": "number"}, properties[field]]}
    entries, heirs = [], []
    for name, model in parameters.items():
        definition = definitions[_name(references[model, "validation"])]
        definition["properties"]["kind"] = {"const": name, "title": "Kind"}
        definition["required"] = sorted({*definition.get("required", []), "kind"})
        heir = _heir(definition)
        definitions[f"{name}-like"] = heir
        entries.append(references[model, "validation"])
        heirs.append({"$ref": _REFERENCE.format(model=f"{name}-like")})
    own_file = {
        "type": "object",
        "description": "A class in your own file; run only with --trust-code.",
        "properties": {"kind": {"type": "string", "pattern": r"\.py:[^\W\d]\w*$"}},
        "required": ["kind"],
    }
    scenario["properties"]["protocols"]["additionalProperties"] = {"anyOf": [*entries, *heirs, own_file]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hushnet scenario",
        **{key: value for key, value in scenario.items() if key != "title"},
        "$defs": definitions,
    }


def _heir(definition: dict[str, Any]) -> dict[str, Any]:
    """The same entry with ``like``: any field may be missing, or null to drop what was inherited."""
    heir = deepcopy(definition)
    properties = {
        name: value if name == "kind" else {"anyOf": [value, {"type": "null"}]}
        for name, value in heir["properties"].items()
    }
    like = {"type": "string", "description": "Key of the protocol whose fields are taken over."}
    return {**heir, "properties": {**properties, "like": like}, "required": ["like"]}


def _name(reference: dict[str, Any]) -> str:
    return reference["$ref"].rpartition("/")[2]
