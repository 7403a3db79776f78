"""Engines that drive a world through the rules: SimPy event by event, or plans of many events."""
