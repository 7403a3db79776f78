"""``python -m hushnet.simulator.docs FOLDER``."""

import sys

from .site import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
