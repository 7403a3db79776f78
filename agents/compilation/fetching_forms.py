"""The form that numba knows of asking the processor for memory."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from .compiled import INLINED


def prefetch(array, place):
    """Ask the processor for the memory of an element or row, which need not exist; in Python, nothing.

    Whoever needs many places that lie far apart asks for all of them first, so that they come together and not one
    after the other. It changes no result.

    Parameters
    ----------
    array : array
    place : int
        Along the first axis.
    """


@intrinsic
def _ask(context: Any, array: Any, place: Any) -> Any:  # noqa: ARG001 - numba passes the context by position
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        found = context.make_array(kind)(context, builder, arguments[0])
        strides = cgutils.unpack_tuple(builder, found.strides, kind.ndim)
        byte = ir.IntType(8).as_pointer()
        start = builder.bitcast(found.data, byte)
        address = builder.gep(start, [builder.mul(arguments[1], strides[0])])
        word = ir.IntType(32)
        ask = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        )
        builder.call(ask, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), code


_overload: Any = overload
_asked: Any = _ask


@_overload(prefetch, jit_options={**INLINED, "_nrt": False})
def _prefetch(array, place):  # noqa: ARG001 - as `prefetch`
    def ask(array, place):  # pragma: no cover - compiled
        _asked(array, place)

    return ask
