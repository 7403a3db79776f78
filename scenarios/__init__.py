"""Scenarios that ship with hushnet; ``hushnet run NAME`` finds them by file name."""
