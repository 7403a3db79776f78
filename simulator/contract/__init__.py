"""Tests of what a protocol promises: the contract for authors of plug-ins, and the replay that proves its privacy."""

from .bench import protocol_parameters
from .checks import check_contract
from .engine_checks import check_engines
from .small_worlds import check_replay
from .violation import ContractViolation

__all__ = ["ContractViolation", "check_contract", "check_engines", "check_replay", "protocol_parameters"]
