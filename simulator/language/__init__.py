"""The scenario language: from YAML to a checked `Scenario`, or one sentence why not."""
