"""Reading YAML: what is understood, where it was written, and what is refused before anything is built."""

import json
import math
import string

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.language import yaml_source
from hushnet.simulator.language.yaml_source import read_file, read_text
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-3", -3), ("0x1f", 31), ("0o17", 15), ("1.0", 1.0), ("1e-5", 1e-5), ("1E5", 1e5), (".5", 0.5),
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), (".inf", math.inf),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("1:30", "1:30"), ("2001-01-01", "2001-01-01"), ("95%", "95%"),
        ("1_000", "1_000"), ("1_0:2", "1_0:2"), ("1_0.5", "1_0.5"), ("0x_1", "0x_1"), ("1.5:30", "1.5:30"),
        ("-.inf", -math.inf),
        ('"1"', "1"), ("'true'", "true"), ("./mine.py:Mine", "./mine.py:Mine"), ("[1, a]", [1, "a"]), ("{}", {}),
    ],
)  # fmt: skip
def test_scalars_are_read_as_yaml_1_2(text, value):
    read = read_text(f"a: {text}\n", "x").data["a"]
    assert read == value
    assert type(read) is type(value)


def test_every_key_and_value_has_its_line():
    source = read_text("a:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n", "x.yaml")
    assert source.data == {"a": {"b": 1, "c": ["x", {"d": 2}]}}
    assert source.where(("a",)) == "x.yaml:1"
    assert source.where(("a", "b")) == "x.yaml:2"
    assert source.where(("a", "c"), value=True) == "x.yaml:4"
    assert source.where(("a", "c", 1, "d")) == "x.yaml:5"
    assert source.where(("a", "b", "missing")) == "x.yaml:2"


def test_setting_a_value_makes_the_mappings_on_the_way_and_changes_nothing_else():
    source = read_text("a: 1\nb: {c: 2}\n", "x")
    changed = source.with_value(("b", "d", "e"), 3, "here")
    assert changed.data == {"a": 1, "b": {"c": 2, "d": {"e": 3}}}
    assert source.data == {"a": 1, "b": {"c": 2}}
    assert [changed.where(("b", "d", "e")), changed.where(("b", "d")), changed.where(("b", "c"))] == [
        "here",
        "here",
        "x:2",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000, "{" * 1_000_000, "- " * 500_000, "? " * 500_000, "&a [" * 200_000, "*a " * 300_000,
        "a: {" + " " * 900_000, 'a: "' + "\\n" * 450_000,
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
    ],
    ids=lambda text: text[:12].strip(),
)  # fmt: skip
def test_a_bomb_is_refused(text):
    with pytest.raises(InputError, match=r"^x:\d+: "):
        read_text(text, "x")


def test_a_file_of_too_many_values_is_refused(monkeypatch):
    monkeypatch.setattr(yaml_source, "MAX_VALUES", 100)
    with pytest.raises(InputError, match="100 values"):
        read_text("a: [" + "1," * 101 + "]", "x")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_file(path).data == {"a": 1}


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(string.ascii_letters + string.digits + string.punctuation + " äß…", max_size=20)
)
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(string.ascii_letters, min_size=1), inner),
    max_leaves=20,
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text(string.ascii_letters, min_size=1), plain, min_size=1))
def test_every_json_text_is_read_as_json(data):
    assert read_text(json.dumps(data, ensure_ascii=False), "x").data == data
    assert read_text(json.dumps(data, indent=2), "x").data == data
