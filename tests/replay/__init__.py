"""Runs made again and shown as they went."""
