"""``python -m hushnet.simulator.cli``."""

from . import script

if __name__ == "__main__":
    script()
