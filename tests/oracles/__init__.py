"""An engine that was frozen, its logs, and the comparison of every later engine with both; see README.md."""
