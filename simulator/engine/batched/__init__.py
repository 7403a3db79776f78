"""The batched engine: the event engine's events without an event for each, in windows that may be compiled.

`hushnet.simulator.engine.selection` decides whether a world can be run by it, and is its only user.
"""
