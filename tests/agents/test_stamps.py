"""What a compiled function is made from, as one hash: all that matters is in it, and nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hushnet.agents.compilation.compiled import compiled
from hushnet.agents.compilation.stamps import Unstamped, stamp_of
from numba import types
from numba.core.registry import cpu_target

ONE = types.int64(types.int64)


SHOP = """
from collections import namedtuple
from enum import IntEnum
from hushnet.agents.compilation.compiled import compiled
from numba.extending import intrinsic
import numpy as np
import {name}_prices as prices
class Column(IntEnum):
    UP = 2
Row = namedtuple("Row", ["up", "down"])
PRICE = 2
RATES = np.array([1.0, 2.0])
LIMITS = (1, (2, 3))
@intrinsic
def same(_, number):
    return number(number), lambda context, builder, signature, arguments: arguments[0]
def part(share):
    @compiled
    def inner(number):
        return share * number
    return inner
third = part(1 / 3)
@compiled
def cost(number, least=1):
    return PRICE * same(number) + third(number) + prices.BASE
@compiled
def bought(number):
    if number in (1, 2):
        return cost(number) + 1 + Column.UP
    row = Row(number, RATES[0])
    return row.up * cost(number) + 1 + LIMITS[0] + np.float64(3)
"""


def shop(folder: Path, source: str, prices: str = "BASE = 5"):
    folder.mkdir()
    for stem, text in (("shop_prices", prices), ("shop", source.format(name="shop"))):
        (folder / f"{stem}.py").write_text(text)
        spec = importlib.util.spec_from_file_location(stem, folder / f"{stem}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[stem] = module
        spec.loader.exec_module(module)
    del sys.modules["shop"], sys.modules["shop_prices"]
    return module


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("PRICE = 2", "PRICE = 3", True),
        ("PRICE * same(number)", "number - PRICE", True),
        ("arguments[0]", "builder.neg(arguments[0])", True),
        ("@compiled\ndef cost", "@compiled(fastmath=True)\ndef cost", True),
        ("@compiled\ndef cost", "@compiled(boundscheck=True)\ndef cost", True),
        ("cost(number) + 1", "cost(number) + 2", True),
        ("least=1", "least=2", True),
        ("part(1 / 3)", "part(1 / 4)", True),
        ("UP = 2", "UP = 3", True),
        ('["up", "down"]', '["down", "up"]', True),
        ("[1.0, 2.0]", "[1.0, 2.5]", True),
        ("(1, (2, 3))", "(1, (2, 4))", True),
        ("in (1, 2)", "in (1, 3)", True),
        ("np.float64(3)", "np.float32(3)", True),
        ("def cost(number, least=1):", 'def cost(number, least=1):\n    "What it costs."', False),
        ("PRICE = 2", "PRICE = 2  # or so", False),
        ("@compiled\ndef bought", "OTHER = 7\n@compiled\ndef bought", False),
    ],
)
def test_a_stamp_changes_with_whatever_a_function_is_compiled_from_and_with_nothing_else(tmp_path, old, new, changes):
    """Constants and callees count, words and neighbours do not."""
    assert old in SHOP
    stamps = [
        stamp_of(shop(tmp_path / str(rank), source).bought)
        for rank, source in enumerate((SHOP, SHOP.replace(old, new)))
    ]
    assert (stamps[0] != stamps[1]) is changes


def test_a_stamp_changes_with_a_constant_of_somebodys_own_module(tmp_path):
    stamps = [stamp_of(shop(tmp_path / str(base), SHOP, f"BASE = {base}").bought) for base in (5, 6)]
    assert stamps[0] != stamps[1]


def test_what_cannot_be_stamped_is_not_stored():
    things = object()

    def double(number):
        return 2 * number if things is not None else number

    made = compiled(double)
    with pytest.raises(Unstamped, match="things is a object"):
        stamp_of(made)
    assert made._cache.key((types.int64,), cpu_target.target_context.codegen()) is None


def test_all_that_hushnet_compiles_can_be_stamped():
    found = 0
    for name in (
        "simulator.engine.batched.windows",
        "simulator.engine.batched.lossless_rounds",
        "simulator.engine.batched.round_windows",
        "simulator.engine.batched.exchange_windows",
    ):
        for value in vars(importlib.import_module(f"hushnet.{name}")).values():
            made = getattr(value, "compiled", value)
            if hasattr(made, "py_func"):
                found += 1
                assert stamp_of(made)
    assert found > 50
