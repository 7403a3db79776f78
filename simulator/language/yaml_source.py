"""Safe reading of YAML 1.2: plain data, and the line that every part of it came from.

The text is read as a stream of parser events, and whatever could surprise is refused at its event, before anything
is built from it: aliases, anchors, tags, a second document, deep nesting, duplicate keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.nodes import ScalarNode

from ...agents.errors import InputError
from ...agents.input_files import read_bytes

Keys = tuple[str | int, ...]
"""Where something stands in a scenario: ``("protocols", "cd", "mu")``."""

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_VALUES = 100_000
LARGEST = 2**64
"""The largest whole number; seeds go up to it."""

_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
"""What YAML does not admit, and what turns the direction of whatever text comes after it (U+202A to U+202E, U+2066 to
U+2069): a label would be shown as another one, and its neighbours, too."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""A character beyond U+FFFF in two halves: JSON writes each as two escapes, such as ``\\ud83d\\ude00``."""

_NUMBERS = {
    "int": re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    "float": re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
}
"""Numbers of YAML 1.2's core schema; the reader's own rules admit ``1_000`` and ``1_0:2`` of YAML 1.1."""


@dataclass(frozen=True)
class Source:
    """Plain data and where each part of it was written."""

    name: str
    """How errors call the source: the file as the user named it."""
    data: Any
    """Mappings, lists, text, numbers, truth values and None."""
    places: Mapping[Keys, tuple[str, str]] = field(default_factory=dict)
    """``file:line`` of a part's key and of its value."""
    changed: Mapping[Keys, str] = field(default_factory=dict)
    """Where parts were set since, such as on the command line; what stood at or below them is no more."""

    def where(self, keys: Keys, *, value: bool = False) -> str:
        """Location of the key (or the value) of a part, or of the nearest part around it."""
        around = [keys[:length] for length in range(len(keys), -1, -1)]
        replaced = next((part for part in around if part in self.changed), None)
        for part in around:
            if part == replaced:
                return self.changed[part]
            place = self.places.get(part) if replaced is None else None
            if place is not None:
                return place[value and part == keys]
        return self.name

    def value(self, keys: Keys) -> Any:
        """Value that is written at some keys; ``...`` if there is none."""
        value = self.data
        for key in keys:
            if not has(value, key):
                return ...
            value = value[key]
        return value

    def scalar(self, keys: Keys) -> Any:
        """Value that is written at some keys; ``...`` if there is none, or it is a mapping or a list."""
        value = self.value(keys)
        return ... if isinstance(value, Mapping | list) else value

    def with_value(self, keys: Keys, value: Any, place: str) -> Source:
        """The same source with one part set or replaced; missing mappings on the way are made.

        Raises `InputError` if a list is in the way.
        """
        data = dict(self.data)
        inner = data
        changed = {old: at for old, at in self.changed.items() if old[: len(keys)] != keys}
        for depth, key in enumerate(keys[:-1], start=1):
            below = inner.get(key)
            if isinstance(below, list):
                raise InputError(f"{place}: {dotted(keys[:depth])} is a list, which can only be set as a whole")
            if not isinstance(below, Mapping):
                changed[keys[:depth]] = place
            inner[key] = dict(below) if isinstance(below, Mapping) else {}
            inner = inner[key]
        inner[keys[-1]] = value
        return Source(self.name, data, self.places, {**changed, keys: place})


def has(data: Any, key: str | int) -> bool:
    """True if a mapping has a key, or a list an index.

    >>> has({"a": 1}, "a"), has([1], 1)
    (True, False)
    """
    if isinstance(data, list):
        return isinstance(key, int) and 0 <= key < len(data)
    return isinstance(data, Mapping) and key in data


def dotted(keys: Keys) -> str:
    """A part's name for people: ``protocols.cd.mu``, ``figures[0].y``.

    >>> dotted(("figures", 0, "y"))
    'figures[0].y'
    """
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def read_file(path: Path) -> Source:
    """Read a YAML file; raises `InputError`: one sentence ``file:line: ...`` for whatever is not admissible."""
    raw = read_bytes(path, most=MAX_BYTES)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: is not UTF-8 text (byte 0x{raw[error.start]:02x})") from error
    return read_text(text, str(path))


def read_text(text: str, name: str, *, numbered: bool = True) -> Source:
    """Read YAML text, which errors call by a name and, but for the one-line values of the command line, by its line."""
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        line = text.count("\n", 0, unprintable.start()) + 1
        _check_printable(text, f"{name}:{line}" if numbered else name)
    return _Reader(name, numbered).read(text)


def from_mapping(data: Mapping[Any, Any], name: str) -> Source:
    """A scenario of Python's as plain data: what YAML cannot hold is refused as it is in a file of that name.

    Tuples and NumPy's arrays become lists, and NumPy's scalars numbers. Raises `InputError` if it is nested too deeply,
    holds itself, or has a text with a character that no scenario may have.
    """
    return Source(name, _plain(data, (), name))


def _plain(value: Any, keys: Keys, name: str) -> Any:
    if len(keys) > MAX_DEPTH:
        raise InputError(f"{name}: {dotted(keys[:3])} is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                where = f"{name}: {dotted(keys)}" if keys else name
                raise InputError(f"{where}: the key {key!r} must be a text")
        return {_plain(key, keys, name): _plain(each, (*keys, key), name) for key, each in value.items()}
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each, (*keys, rank), name) for rank, each in enumerate(value)]
    if isinstance(value, str):
        _check_printable(value, f"{name}: {dotted(keys)}" if keys else name)
    return value


def _check_printable(text: str, where: str) -> None:
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        raise InputError(f"{where}: the character U+{ord(unprintable[0]):04X} is not allowed in a scenario")


class _Reader:
    """Turns events into data, from the outside inwards."""

    def __init__(self, name: str, numbered: bool) -> None:
        self.name, self.numbered = name, numbered
        self.yaml = YAML(typ="safe", pure=True)
        self.events: Iterator[Event] = iter(())
        self.places: dict[Keys, tuple[str, str]] = {}
        self.values, self.line = 0, 1

    def read(self, text: str) -> Source:
        self.events, data = iter(self.yaml.parse(text)), ...
        try:
            while not isinstance(event := self._next(), StreamEndEvent):
                if isinstance(event, DocumentStartEvent):
                    if data is not ...:
                        raise self._error(self.line, "a second document starts here; a scenario is a single document")
                    if event.version not in (None, (1, 2)) or event.tags:
                        raise self._error(self.line, "directives are not allowed; a scenario is plain YAML 1.2")
                    data = self._value(self._next(), (), None)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = str(error.problem or error.context)
            if "could not find expected ':'" in problem:
                # The parser notices at the next key; what lacks the colon began at the context.
                mark = error.context_mark or mark
            if r"'\t'" in problem:
                problem = "a tab cannot be used here; indent with spaces"
            raise self._error(mark.line + 1 if mark else 1, f"is not valid YAML: {problem}") from error
        except (ValueError, OverflowError) as error:  # such as "\\UFFFFFFFF", which no character has
            raise self._error(self.line, "is not valid YAML: an escape or a number cannot be read") from error
        except YAMLError as error:
            raise self._error(1, f"is not valid YAML: {' '.join(str(error).split())}") from error
        if data is ...:
            raise self._error(1, "is empty")
        return Source(self.name, data, self.places)

    def _next(self) -> Event:
        event = next(self.events)
        self.line = event.start_mark.line + 1
        return event

    def _place(self, line: int) -> str:
        return f"{self.name}:{line}" if self.numbered else self.name

    def _error(self, line: int, sentence: str) -> InputError:
        return InputError(f"{self._place(line)}: {sentence}")

    def _value(self, event: Event, keys: Keys, key_line: int | None) -> Any:
        """The value that begins with an event, at some keys; a value of a mapping has its key's line."""
        line = self.line
        self._admit(event, line)
        if isinstance(event, CollectionStartEvent) and len(keys) >= MAX_DEPTH:
            raise self._error(line, f"is nested more than {MAX_DEPTH} levels deep")
        value = self._scalar(event, line) if isinstance(event, ScalarEvent) else None
        # The parser places a value that is left out at whatever comes next.
        here = line if key_line is None or value is not None or isinstance(event, CollectionStartEvent) else key_line
        self.places[keys] = (self._place(key_line or line), self._place(here))
        if isinstance(event, SequenceStartEvent):
            value = []
            while not isinstance(event := self._next(), CollectionEndEvent):
                value.append(self._value(event, (*keys, len(value)), None))
        elif isinstance(event, MappingStartEvent):
            value = {}
            while not isinstance(event := self._next(), CollectionEndEvent):
                line, key = self.line, self._key(event, keys, value)
                value[key] = self._value(self._next(), (*keys, key), line)
        return value

    def _key(self, event: Event, keys: Keys, mapping: Mapping[str, Any]) -> str:
        self._admit(event, self.line)
        key = self._scalar(event, self.line) if isinstance(event, ScalarEvent) else event
        if not isinstance(key, str):
            text = "a list or mapping" if key is event else show(key)
            inside = f" of {dotted(keys)}" if keys else ""
            raise self._error(self.line, f"the key {text}{inside} must be text; put it in quotes")
        if key in mapping:
            first = self.places[(*keys, key)][0]
            raise self._error(self.line, f"{dotted((*keys, key))} is given twice (first at {first})")
        return key

    def _admit(self, event: Event, line: int) -> None:
        if isinstance(event, AliasEvent):
            raise self._error(line, f"the alias *{event.anchor} is not allowed; write the value out or use like")
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if anchor is not None:
            raise self._error(line, f"the anchor &{anchor} is not allowed; write the value out or use like")
        if tag is not None:
            raise self._error(line, f"the tag {str(tag).replace('tag:yaml.org,2002:', '!!')} is not allowed")
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._error(line, f"has more than {MAX_VALUES} values; put long lists into files of their own")

    def _scalar(self, event: ScalarEvent, line: int) -> Any:
        tag = str(self.yaml.resolver.resolve(ScalarNode, event.value, event.implicit)).rpartition(":")[2]
        node = ScalarNode(f"tag:yaml.org,2002:{tag}", event.value)
        constructor = self.yaml.constructor
        if tag in _NUMBERS and not _NUMBERS[tag].fullmatch(event.value):
            return event.value
        try:
            match tag:
                case "null":
                    return None
                case "bool":
                    return constructor.construct_yaml_bool(node)
                case "int":
                    number, given = constructor.construct_yaml_int(node), event.value
                    if abs(number) <= LARGEST:
                        return number
                    shown = f"{given[:20]}..." if len(given) > 23 else given
                    wrong = f"the number {shown} cannot be read: whole numbers go up to 2^64; write larger ones as 1e20"
                    raise self._error(line, wrong)
                case "float":
                    return float(constructor.construct_yaml_float(node))
        except ValueError:
            raise self._error(line, f"the number {event.value[:20]}... cannot be read") from None
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), event.value)
        _check_printable(text, self._place(line))
        return text


def show(value: Any) -> str:
    """A value as the user may have written it, cut to 60 characters.

    >>> show(True), show(None), show([1, "a"])
    ('true', 'null', "[1, 'a']")
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return f"{value}".replace("nan", ".nan").replace("inf", ".inf")
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a huge number"
    return text if len(text) <= 60 else f"{text[:57]}..."
