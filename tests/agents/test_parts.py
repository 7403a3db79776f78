"""What compiled code alone calls is compiled as a part of it: without machine code and wrapper, with equal results."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hushnet.agents.compilation.compiled import compiled, inlined
from hushnet.agents.compilation.parts import EntryLibrary, PartLibrary

from .stored_code import looked_up

SCRIPT = """
import sys
import numpy as np
from hushnet.agents.compilation.compiled import compiled

@compiled
def refused(number):
    if number > 1:
        raise ValueError("no", number)
    return number

@compiled(forceinline=True)
def middle(number):
    return refused(number) + 1

@compiled
def outer(number):
    return middle(number) * 2

@compiled
def other(number):
    return middle(number) * 3

def said(function, number):
    try:
        return function(number)
    except ValueError as error:
        return error.args

print([said(globals()[name], number) for name in sys.argv[1:] for number in (1, 5)])
print(outer._cache.hits, outer._cache.misses, middle.part._cache.hits, middle.part._cache.misses)
"""


def called(script, *names):
    """What a process of its own prints of functions that it calls."""
    done = subprocess.run([sys.executable, script, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("kept", [True, False])
def test_exceptions_of_parts_reach_python_whether_code_was_stored_or_not(tmp_path, monkeypatch, kept):
    """Their values are made into objects with the environment of the part, which its caller has to be given."""
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(tmp_path / "code") if kept else os.devnull)
    script = tmp_path / "calls.py"
    script.write_text(SCRIPT)
    assert called(script, "outer") == ["[4, ('no', 5)]", "0 1 0 1"]
    assert called(script, "outer") == ["[4, ('no', 5)]", "1 0 0 0" if kept else "0 1 0 1"]
    # A part is found for another function that has it, too.
    assert called(script, "other", "refused") == ["[6, ('no', 5), 1, ('no', 5)]", f"0 0 {int(kept)} {int(not kept)}"]


def test_a_part_has_no_machine_code_and_no_wrapper(folder):
    @inlined
    def least(numbers):
        return numbers.min()

    @compiled
    def middle(numbers):
        return least(numbers) + 1.0

    @compiled
    def outer(numbers):
        return middle(numbers) * 2.0

    numbers = np.array([3.0, 2.0])
    assert outer(numbers) == 6.0
    (entry,) = outer.overloads.values()
    assert isinstance(entry.library, EntryLibrary)
    assert entry.library.get_pointer_to_function(entry.fndesc.llvm_func_name)
    assert not middle.overloads  # never compiled to be called
    for deferred in (middle, least):
        (part,) = deferred.part.overloads.values()
        assert isinstance(part.library, PartLibrary)
        assert part.library.get_pointer_to_function(part.fndesc.llvm_func_name) == 0
        assert part.fndesc.llvm_cpython_wrapper_name not in part.library.get_llvm_str()
        assert part.fndesc.llvm_cfunc_wrapper_name not in part.library.get_llvm_str()
    assert entry.fndesc.llvm_cfunc_wrapper_name not in entry.library.get_llvm_str()
    # Called from Python each is compiled for that, and computes the same.
    assert (middle(numbers), least(numbers)) == (3.0, 2.0)
    assert looked_up(middle) == (0, 1)


def test_a_function_that_calls_itself_is_part_and_entry(folder):
    @compiled
    def factorial(number):
        if number < 2:
            return 1
        return number * factorial(number - 1)

    @compiled
    def doubled(number):
        return 2 * factorial(number)

    assert (factorial(5), doubled(5)) == (120, 240)
