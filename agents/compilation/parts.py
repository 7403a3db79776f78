"""Functions that compiled code calls, compiled as parts of what calls them: never by themselves, and never for Python.

Of every function numba makes machine code, with everything that it calls in it, and a wrapper that takes its arguments
out of Python's objects. Whoever is called by compiled code alone needs neither: LLVM optimises all parts of an entry
together, once, instead of each one again in everything that it is a part of. For the tables of a run, of some fifty
arrays, wrapper and machine code are most of what compiling takes.
"""

from __future__ import annotations

from typing import Any, final

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, compile_result
from numba.core.environment import lookup_environment


@final
class PartLibrary(JITCodeLibrary):
    """LLVM's code of a part and of all that it calls, to be linked into others."""

    @property
    def codegen(self) -> Any:
        """What sets the environment of a function that has an address, which a part has not."""
        return _WithoutAddresses

    def _optimize_final_module(self) -> None:
        """Left to whatever it is a part of."""

    def _finalize_final_module(self) -> None:
        """Make ready for linking, as in numba, but do not hand over to what makes machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """Name and LLVM's code, which is all that there is."""
        return self.name, self._get_module_for_linking().as_bitcode()

    @classmethod
    def stored(cls, codegen: Any, name: str, code: bytes) -> PartLibrary:
        """What was serialised."""
        library = cls(codegen, name)
        library._final_module = library._shared_module = binding.parse_bitcode(code)
        library._finalize_final_module()
        return library


class _WithoutAddresses:
    @staticmethod
    def set_env(_name: str, _environment: Any) -> None:
        """Left to whatever it is a part of."""


@final
class EntryLibrary(JITCodeLibrary):
    """Code of a function that Python or the address of a callback enters, with all its parts."""

    def _finalize_specific(self) -> None:
        """Make machine code, and tell the parts in it their environments."""
        super()._finalize_specific()
        codegen: Any = self._codegen
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                codegen.set_env(environment.env_name, environment)


class PartCompiler(CompilerBase):
    """numba's compiler for a part."""

    def define_pipelines(self) -> list[Any]:
        """numba's passes, into a `PartLibrary`."""
        self.state.flags.no_cpython_wrapper = True
        return _into(PartLibrary, self.state)


class EntryCompiler(CompilerBase):
    """numba's compiler for a function that is entered."""

    def define_pipelines(self) -> list[Any]:
        """numba's passes, into an `EntryLibrary`."""
        return _into(EntryLibrary, self.state)


def _into(library: type[JITCodeLibrary], state: Any) -> list[Any]:
    state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
    state.library.enable_object_caching()
    return [DefaultPassBuilder.define_nopython_pipeline(state)]


def loaded_part(
    context: Any,
    code: tuple[str, bytes],
    descriptor: Any,
    environment: Any,
    signature: Any,
    objectmode: bool,
    lifted: Any,
    annotation: str,
    reload_init: Any,
    referenced: Any,
) -> Any:
    """What numba keeps of a compiled part, from what it makes of that for storing (`CompileResult._reduce`)."""
    for prepare in reload_init:
        prepare()
    library = PartLibrary.stored(context.codegen(), *code)
    return compile_result(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=context.get_executable(library, descriptor, environment),
        fndesc=descriptor,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        reload_init=reload_init,
        referenced_envs=referenced,
    )
