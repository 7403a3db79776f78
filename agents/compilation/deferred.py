"""What needs numba, declared without it."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, final


@final
class Deferred:
    """What only numba can make or compiled code can call, made when it is first called or met in what is compiled.

    For Python it is called as what is made, and has its attributes; for numba it is that, too, or the part that stands
    for it in what is compiled.

    Parameters
    ----------
    make : callable
        Makes it; of a function, numba's dispatcher.
    function : callable, optional
        In Python.
    make_part : callable, optional
        Makes what compiled code calls in its place, and only compiled code can (`hushnet.agents.compilation.parts`).
    """

    def __init__(
        self,
        make: Callable[[], Any],
        function: Callable[..., Any] | None = None,
        make_part: Callable[[], Any] | None = None,
    ) -> None:
        if function is not None:
            update_wrapper(self, function)
            self.py_func = function
        self._make, self._make_part = make, make_part
        self._made = self._part = None

    @property
    def made(self) -> Any:
        """What is made: of a function, itself where numba is told to compile nothing."""
        if self._made is None:
            made = self._make()
            self._made = made.made if isinstance(made, Deferred) else made
        return self._made

    @property
    def part(self) -> Any:
        """What compiled code calls; without a part of its own, what is made."""
        if self._part is None:
            self._part = self._make_part() if self._make_part else self.made
        return self._part

    @property
    def _numba_type_(self) -> Any:
        """What numba asks a value for that a function reads of its module."""
        from numba.core.registry import cpu_target

        found = getattr(self.part, "_numba_type_", None)
        if found is None:  # an intrinsic or an external function
            context: Any = cpu_target.typing_context
            context.refresh()  # it may have been declared since the last function was compiled
            found = context.resolve_value_type(self.part)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """Call what is made."""
        return (self._made or self.made)(*arguments)

    def __getattr__(self, name: str) -> Any:
        """What it has under a name."""
        if name.startswith("__"):  # Python and its libraries look for them on everything
            raise AttributeError(name)
        return getattr(self.made, name)

    def __reduce__(self) -> Any:
        """Pickled as what is made."""
        return _itself, (self.made,)


def _itself(made: Any) -> Any:
    return made


@final
class Kernels:
    """Functions of a module that are called from Python, each made when it is first asked for.

    Parameters
    ----------
    module : module
        In which they are `Deferred`.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """What is made of the function of a name; asked again, an ordinary attribute."""
        found = getattr(self._module, name).made
        setattr(self, name, found)
        return found
