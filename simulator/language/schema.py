"""The JSON schema of scenario files, for editors; generated from the models that check them."""

from __future__ import annotations

import warnings
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core.core_schema import DictSchema, ModelSchema

from ...agents.docstrings import field_docstrings
from ...agents.errors import INTERRUPTED, words_of
from ...agents.kinds import Bare
from ...protocols import catalog
from ...protocols.base import ProtocolParameters
from ..network.network import NetworkParameters
from .figure_kinds import FIGURE_KINDS
from .figure_parameters import USUAL_Y
from .scenario import Scenario

BOUNDS = ("type", "anyOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_REFERENCE = "#/$defs/{model}"


class _WithDocstrings(GenerateJsonSchema):
    """Describes fields by their docstrings, read only when a schema is asked for: reading them slows every start."""

    def model_schema(self, schema: ModelSchema) -> dict[str, Any]:
        made = super().model_schema(schema)
        properties, model = made.get("properties", {}), schema["cls"]
        for field, text in field_docstrings(model).items():
            info = model.model_fields.get(field)
            name = (info and info.alias) or field
            if name in properties:
                properties[name].setdefault("description", text)
        return made

    def dict_schema(self, schema: DictSchema) -> dict[str, Any]:
        # Where keys have a pattern, pydantic admits keys without it, with whatever value.
        made = super().dict_schema(schema)
        for pattern, values in made.pop("patternProperties", {}).items():
            made |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return made

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value  # as the models have it

    def encode_default(self, dft: Any) -> Any:
        # An adapter for each of hundreds of numbers and words would take a tenth of the time that a schema takes.
        if dft is None or type(dft) in (str, int, bool):
            return dft
        return super().encode_default(dft)


def scenario_schema() -> dict[str, Any]:
    """JSON schema (2020-12) of a scenario file, with every shipped and installed protocol.

    An entry under ``protocols`` is one of three: a protocol by ``kind``, a protocol that takes over another one's
    fields by ``like`` (nothing else is then required), or a class in the user's own file; beside one of these, what is
    taken over by ``like`` may be its own fields.
    """
    parameters = {
        name: one.Parameters for name, one in catalog.loadable().items() if _describable(name, one.Parameters)
    }
    references, whole = models_json_schema(
        [(Scenario, "validation"), *((model, "validation") for model in parameters.values())],
        ref_template=_REFERENCE,
        schema_generator=_WithDocstrings,
    )
    definitions = whole["$defs"]
    scenario = definitions.pop(_name(references[Scenario, "validation"]))
    for model, properties in (
        (NetworkParameters, definitions["NetworkParameters"]["properties"]),
        (Scenario, scenario["properties"]),
    ):
        marked = ((field, each) for field, info in model.model_fields.items() for each in info.metadata)
        for field, bare in ((field, each) for field, each in marked if isinstance(each, Bare)):
            _admit_numbers(properties, field, bare, definitions)
    usual_y = [name for name, kind in FIGURE_KINDS.items() if kind.shows in USUAL_Y]
    usual = {"required": ["kind"], "properties": {"kind": {"enum": usual_y}}}
    figure = definitions["Figure"]
    faceted = {"required": ["facet"], "properties": {"facet": {"type": "array"}}}
    figure["anyOf"] = [{"required": figure.pop("required")}, faceted, usual]
    entries, heirs = [], []
    for name, model in parameters.items():
        definition = definitions[_name(references[model, "validation"])]
        definition["properties"]["kind"] = {"const": name, "title": "Kind"}
        definition["required"] = sorted({*definition.get("required", []), "kind"})
        heir = _heir(definition, definitions)
        definitions[f"{name}-like"] = heir
        entries.append(references[model, "validation"])
        heirs.append({"$ref": _REFERENCE.format(model=f"{name}-like")})
    own_file = {
        "type": "object",
        "description": "A class in your own file; run only with --trust-code.",
        "properties": {"kind": {"type": "string", "pattern": r"\.py:[^\W\d]\w*$"}},
        "required": ["kind"],
    }
    own_heir = {"type": "object", "properties": {"like": {"type": "string"}}, "required": ["like"]}
    definitions["registered"] = {"anyOf": [*entries, *heirs]}
    registered = {"$ref": _REFERENCE.format(model="registered")}
    scenario["properties"]["protocols"] |= {
        "additionalProperties": {"anyOf": [registered, own_file, own_heir]},
        "if": {"additionalProperties": {"not": own_file}},
        "then": {"additionalProperties": registered},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hushnet scenario",
        **{key: value for key, value in scenario.items() if key != "title"},
        "$defs": definitions,
    }


def _admit_numbers(properties: dict[str, Any], field: str, bare: Bare, definitions: dict[str, Any]) -> None:
    """Describe a field that is also a number, with the bounds that the simplest kind sets for it."""
    described = {key: properties[field].pop(key) for key in ("description", "title") if key in properties[field]}
    fields = (one["properties"] for one in definitions.values() if bare.field in one.get("properties", {}))
    simplest = next(one for one in fields if one.get("kind", {}).get("const") == bare.kind)
    number = {key: value for key, value in simplest[bare.field].items() if key in BOUNDS}
    properties[field] = {**described, "anyOf": [number, properties[field]]}


def _describable(name: str, model: type[ProtocolParameters]) -> bool:
    """True if a schema can describe an installed plug-in's parameters; warns if it cannot."""
    if name in catalog.PROTOCOLS:
        return True
    try:
        models_json_schema([(model, "validation")], schema_generator=_WithDocstrings)
    except INTERRUPTED:
        raise
    except BaseException as error:
        warnings.warn(
            f"{name} is left out: its Parameters raise {type(error).__name__}: {words_of(error)}", stacklevel=3
        )
        return False
    return True


def _heir(definition: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The same entry with ``like``: at any depth a field may be missing, or null to drop what was inherited."""
    heir = _partial(definition, definitions)
    like = {"type": "string", "description": "Key of the protocol whose fields are taken over."}
    return {**heir, "properties": {**heir["properties"], "like": like}, "required": ["like"]}


def _partial(node: Any, definitions: dict[str, Any]) -> Any:
    """A schema in which nothing has to be given; definitions that it refers to get partial ones beside them."""
    if "$ref" in node:
        name = _name(node)
        part = f"{name}-part"
        if part not in definitions:
            definitions[part] = {}  # one that refers to itself finds this
            definitions[part].update(_partial(definitions[name], definitions))
        return {**node, "$ref": _REFERENCE.format(model=part)}
    made = {
        name: value for name, value in node.items() if name not in ("required", "oneOf", "discriminator", "default")
    }
    either = node.get("oneOf", node.get("anyOf"))
    if either is not None:
        made["anyOf"] = [_partial(one, definitions) for one in either]
    if "properties" in node:
        made["properties"] = {
            name: value if "const" in value else {"anyOf": [_partial(value, definitions), {"type": "null"}]}
            for name, value in node["properties"].items()
        }
    return made


def _name(reference: dict[str, Any]) -> str:
    return reference["$ref"].rpartition("/")[2]
