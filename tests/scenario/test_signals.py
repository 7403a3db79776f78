"""A command ends when it is asked to, wherever Python is at that moment."""

from __future__ import annotations

import ctypes
import signal
import time

import pytest
from hushnet.simulator.signals import terminable

LONG = 30.0
"""Seconds that nothing here takes, unless an interrupt is lost."""


class Finalized:
    """Is sent a signal while it is removed."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)
        _ = [None for _ in range(3)]


def finalize(number):
    Finalized(number)


def call_back(number):
    @ctypes.CFUNCTYPE(None)
    def callback():
        signal.raise_signal(number)
        _ = [None for _ in range(3)]

    callback()


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["foreground", "background"])
def shell(request):
    """Commands that a shell runs in the background heed no Ctrl-C."""
    before = signal.signal(signal.SIGINT, request.param)
    yield request.param
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("where", [finalize, call_back])
def test_an_interrupt_that_python_drops_is_raised_again(where, number, shell, capfd):
    if number == signal.SIGINT and shell is signal.SIG_IGN:
        where(number)
        return

    def interrupted():
        where(number)
        time.sleep(LONG)

    with terminable() as asked, pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(asked) == (number == signal.SIGTERM)
    assert "ignored" not in capfd.readouterr().err


def test_other_errors_that_python_drops_are_said_as_ever(capfd):
    said = []

    class Failing:
        def __del__(self):
            raise ValueError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.unraisablehook", said.append)
        with terminable():
            Failing()
    assert [what.exc_type for what in said] == [ValueError]
