"""Planted protocols: whole own protocols with a privacy mistake each, and honest ones, judged by ``run`` alone.

`hushnet.simulator.run` replays an own protocol before an epsilon of it is called verified. Each protocol here is
written as a user would write it, from the documentation, and varies one honest step in one place (`base`); it is tried
under every mechanism, sampling and adjacency that applies. A mistake is *caught* where nothing is verified: the run is
refused, or the verified epsilon is infinite. Neither `check_contract` nor an audit is asked, other than of the mistakes
in ``tests/privacy/mutations``, which are planted in the package's own code.

``python -m tests.privacy.planted`` prints what came of all of them; ``RESULTS.md`` has the last pass that was kept.
"""

from __future__ import annotations

from .adjacencies import ADJACENCY
from .draws import NOISE, SAMPLES
from .gradients import TOLERANCE, WORST
from .harness import KINDS, Case, Kind, Outcome, Variant, ask
from .honest import HONEST
from .mechanisms import MECHANISM
from .objectives import OBJECTIVE
from .shared_objects import SHARED_OBJECT
from .worlds import EXEMPT, SHARED_PARTS, WORLD

CASES: list[Case] = [
    *TOLERANCE,
    *SAMPLES,
    *NOISE,
    *WORLD,
    *EXEMPT,
    *SHARED_PARTS,
    *ADJACENCY,
    *OBJECTIVE,
    *WORST,
    *SHARED_OBJECT,
    *MECHANISM,
    *HONEST,
]

__all__ = ["CASES", "KINDS", "Case", "Kind", "Outcome", "Variant", "ask"]
