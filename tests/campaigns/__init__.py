"""Campaigns, run by hand: many random attempts, each of which can be replayed by its seed and number."""
