"""Compiled functions: how they are made, stamped, stored and given addresses."""
