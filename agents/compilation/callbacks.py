"""Functions compiled for one signature, which other compiled functions take as arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, final

from numba import types
from numba.core import cgutils, config
from numba.core.ccallback import CFunc
from numba.experimental.function_type import FunctionModel
from numba.extending import NativeValue, register_model, typeof_impl, unbox

from .compile_cache import StoredCode
from .compiled import STATED
from .dispatchers import announce, dispatcher


@final
class Callback:
    """A function compiled for one signature that other compiled functions take as an argument.

    Exceptions that it raises reach whoever calls those functions. With `numba.cfunc` they would be printed and
    forgotten, and the caller would go on with a result that nobody computed.

    Parameters
    ----------
    signature : numba.core.typing.Signature
    function : callable
        In Python.
    what : str
        What stderr says is compiled, see `announce`; by default nothing is said.
    **options
        Of `numba.njit`; indices are checked unless ``boundscheck=False`` says that they need not be.
    """

    def __init__(self, signature: Any, function: Callable[..., Any], *, what: str = "", **options: Any) -> None:
        self.signature = signature
        self.compiled = dispatcher(function, {**STATED, "boundscheck": True, **options}, stored=True)
        announce(self, what)
        self.address = 0
        if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]  # numba then leaves it in Python
            return
        self.compiled.compile(signature)
        made = self.compiled.overloads[signature.args]
        self.address = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
        """Address of the function in numba's own calling convention, which passes on exceptions, as C's cannot."""

    @staticmethod
    def stored_as(signature: Any, function: Callable[..., Any], **options: Any) -> str | None:
        """The key under which its code is stored once it is compiled, of all that this depends on; None without one."""
        made = dispatcher(function, {**STATED, "boundscheck": True, **options}, stored=True)
        cache = getattr(made, "_cache", None)
        return cache.key(signature, made.targetctx.codegen()) if isinstance(cache, StoredCode) else None

    @property
    def __name__(self) -> str:
        """The function's name."""
        return self.compiled.__name__

    @property
    def py_func(self) -> Callable[..., Any]:
        """The function in Python."""
        return getattr(self.compiled, "py_func", self.compiled)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function from Python."""
        return self.compiled(*arguments)


class CallbackType(types.FunctionType):
    """What numba takes a `Callback` for: all of a signature are of one type, so that callers are compiled once."""


register_model(CallbackType)(FunctionModel)


@typeof_impl.register(Callback)
def _type_of_callback(callback: Callback, _: Any) -> CallbackType:
    return _callback_type(callback.signature)


@cache
def _callback_type(signature: Any) -> CallbackType:
    """Made once, for making it takes longer than everything else that entering a compiled window does."""
    return CallbackType(signature)


@unbox(CallbackType)
def _unbox_callback(kind: CallbackType, thing: Any, context: Any) -> NativeValue:
    """Hand over the address as that of a function of numba's own; there is none of a C function."""
    made = cgutils.create_struct_proxy(kind)(context.context, context.builder)
    address = context.pyapi.object_getattr_string(thing, "address")
    made.jit_addr = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    return NativeValue(made._getvalue())


def compiled_callback(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Callback]:
    """Compile for one signature, as a function that other compiled functions take as an argument."""
    return lambda function: Callback(signature, function, **options)


def called_at(signature: Any) -> tuple[Any, Callable[..., Any]]:
    """What numba asks of an intrinsic that calls the `Callback` at an address, its first argument, with the others."""

    def code(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        result, kinds, convention = signature.return_type, signature.args, context.call_conv
        pointer = builder.inttoptr(arguments[0], convention.get_function_type(result, kinds).as_pointer())
        status, found = convention.call_function(builder, pointer, result, kinds, arguments[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return found

    return signature.return_type(types.int64, *signature.args), code


@cache
def as_callback(function: Any, signature: Any) -> Callback:
    """A `Callback` of what may be a C function of numba's: compiled anew, for its exceptions would be lost.

    Raises
    ------
    ValueError
        If it is neither, or has another signature.
    """
    pointer: Any = function if isinstance(function, CFunc) else None
    if pointer is not None and pointer._sig == signature:
        return Callback(signature, pointer._pyfunc, **pointer._compiler.targetoptions)
    if isinstance(function, Callback) and function.signature == signature:
        return function
    name = getattr(function, "__name__", repr(function))
    raise ValueError(
        f"{name} is no compiled step; make it with hushnet.agents.compilation.callbacks.compiled_callback and the "
        "signature that its kind has in hushnet.protocols.kernel"
    )
