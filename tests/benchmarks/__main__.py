"""``python -m tests.benchmarks``."""

from .run import main

if __name__ == "__main__":
    main()
