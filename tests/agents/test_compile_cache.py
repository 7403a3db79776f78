"""Compiled code is stored by what it was compiled from: never stale, never trusted blindly, and shared by processes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import namedtuple

import llvmlite
import numba
import numpy as np
import pytest
from hushnet.agents.compilation import code_store, compile_cache
from hushnet.agents.compilation.code_store import CodeStore
from hushnet.agents.compilation.compiled import compiled, inlined
from hushnet.agents.compilation.dispatchers import announce
from numba import types
from numba.core import config
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.extending import overload

from .stored_code import ONE, doubled, looked_up

# What a key depends on.


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (numba, "__version__", "0.0"),
        (llvmlite, "__version__", "0.0"),
        (np, "__version__", "0.0"),
        (sys, "version", "another"),
        (compile_cache, "FORMAT", "0"),
        (config, "BOUNDSCHECK", 1),
        (config, "OPT", 1),
    ],
)
def test_another_version_or_another_switch_has_another_key(module, name, value, monkeypatch):
    cached, codegen = doubled()._cache, cpu_target.target_context.codegen()
    before = cached.key(ONE, codegen)
    assert cached.key(ONE, codegen) == before
    monkeypatch.setattr(module, name, value)
    assert cached.key(ONE, codegen) != before


def test_another_machine_or_another_signature_has_another_key():
    class Elsewhere:
        def magic_tuple(self):
            return "somewhere", "a processor", "+more"

    cached, codegen = doubled()._cache, cpu_target.target_context.codegen()
    pair, other = (types.NamedUniTuple(types.int64, 2, namedtuple("Pair", fields)) for fields in ("a b", "b a"))
    signatures = [ONE, (types.int64,), (types.float64,), (types.int64[:],), (types.int64[::1],), (pair,), (other,)]
    signatures.append((types.Tuple((pair, types.int64)),))
    signatures.append((types.Tuple((other, types.int64)),))
    keys = [cached.key(signature, codegen) for signature in signatures]
    assert len({*keys, cached.key(ONE, Elsewhere())}) == len(signatures) + 1


def test_a_type_with_an_address_in_its_name_has_no_key():
    cached, codegen = doubled()._cache, cpu_target.target_context.codegen()
    assert cached.key((types.Dispatcher(doubled()),), codegen) is None


# Storing and loading.


def test_what_is_stored_is_found_and_computes_the_same(folder):
    assert doubled()(21) == 42
    again = doubled()
    assert again(21) == 42
    assert looked_up(again) == (1, 0)
    assert again(0.5) == 1.0
    assert looked_up(again) == (1, 1)
    assert not again.overloads[(types.int64,)].metadata


def test_functions_of_one_name_from_different_processes_do_not_meet(folder, tmp_path):
    """numba numbers the functions of each process from 1; two of a name and number would share what belongs to one."""
    script = tmp_path / "maker.py"
    script.write_text(
        "import sys\n"
        "from hushnet.agents.compilation.compiled import compiled\n"
        "def maker(k):\n"
        "    @compiled\n"
        "    def made(number):\n"
        "        return number + k\n"
        "    return made\n"
        "functions = [maker(int(k)) for k in sys.argv[1:]]\n"
        "print([f(1) for f in functions])\n"
        "print(*(o.fndesc.mangled_name for f in functions for o in f.overloads.values()))\n"
    )
    names = []
    for seed, numbers in enumerate((["3"], ["4"], ["5", "3", "4"])):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, script, *numbers]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert out.splitlines()[0] == str([1 + int(k) for k in numbers])
        names.append(out.splitlines()[1].split())
    assert names[2][1:] == [names[0][0], names[1][0]]
    assert len({*names[0], *names[1], *names[2]}) == 3


@pytest.mark.parametrize("damage", ["truncated", "a bit", "not ours", "empty", "another's", "longer", "a pipe"])
def test_a_damaged_or_foreign_file_is_a_miss_and_is_replaced(folder, damage):
    assert doubled()(21) == 42
    (file,) = folder.iterdir()
    intact = file.read_bytes()
    if damage == "a pipe":
        file.unlink()
        os.mkfifo(file)
    else:
        changed = {
            "truncated": intact[:-10],
            "a bit": intact[:-1] + bytes([intact[-1] ^ 1]),
            "not ours": b"nothing of the kind",
            "empty": b"",
            "longer": intact + b"\0",
        }
        if damage == "another's":
            CodeStore(folder).write("b", b"content of another file")
            changed[damage] = (folder / "b").read_bytes()
        file.write_bytes(changed[damage])
    again = doubled()
    assert again(21) == 42
    assert looked_up(again) == (0, 1)
    replaced = doubled()
    assert replaced(21) == 42
    assert looked_up(replaced) == (1, 0)


def test_a_whole_file_that_numba_does_not_load_is_a_miss(folder):
    made = doubled()
    key = made._cache.key((types.int64,), cpu_target.target_context.codegen())
    code_store.code_store().write(key, b"no pickle")
    assert made(21) == 42
    assert looked_up(made) == (0, 1)


# What is said.


def test_what_is_compiled_is_announced_and_what_is_stored_is_not(folder, capsys):
    made = doubled()
    announce(made, "doubles")
    assert capsys.readouterr().err == ""
    made(21)
    assert capsys.readouterr().err == "compiling doubles, once; this takes up to a minute\n"
    made(22)
    again = doubled()
    announce(again, "doubles")
    again(21)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("collecting", [True, False])
def test_no_garbage_is_looked_for_while_something_is_compiled_and_then_as_before(folder, collecting):
    seen = []

    def noted(x):
        """Stands for something whose form is chosen while its caller is compiled."""

    @overload(noted)
    def _form(x):
        seen.append(gc.isenabled())
        return (lambda x: x) if isinstance(x, types.Integer) else None

    def caller(x):
        return noted(x)

    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        assert compiled(caller)(3) == 3
        assert gc.isenabled() == collecting
        with pytest.raises(TypingError):
            compiled(caller)("text")
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()
    assert seen
    assert not any(seen)


def test_what_took_long_before_is_said_to_take_as_long(folder, capsys):
    first = doubled()
    announce(first, "doubles")
    code_store.code_store().write(first._cache._name, b"41.7")
    first(21)
    assert capsys.readouterr().err == "compiling doubles, once; it took 42 s of processor time before\n"
    assert float(code_store.code_store().read(first._cache._name)) != 41.7


# Flags that numba would take from whoever calls first.


def caller_of(callee, **options):
    def caller(number):
        return callee(number)

    return numba.njit(**options)(caller)


@pytest.mark.parametrize("make", [compiled, inlined])
def test_a_function_is_compiled_alike_whoever_calls_it_first(monkeypatch, make):
    monkeypatch.setenv("HUSHNET_CACHE_DIR", os.devnull)
    seen = []
    for options in ({"fastmath": True, "error_model": "numpy", "forceinline": True, "_nrt": False}, {}):

        def half(number):
            return number / 2.0

        made = make(half)
        customize = made.part._compiler._customize_flags
        made.part._compiler._customize_flags = lambda flags, customize=customize: seen.append(flags) or customize(flags)
        caller_of(made, **options)(3.0)
    one, other = ({name: getattr(flags, name) for name in flags.options} for flags in seen)
    assert one == other
    names = {"fastmath", "error_model", "boundscheck", "forceinline", "nrt"}
    assert names <= {name for name in seen[0].options if seen[0].is_set(name)}
