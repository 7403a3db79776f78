"""The scenario language: from YAML to a checked `hushnet.simulator.scenario.Scenario`, or one sentence why not."""
