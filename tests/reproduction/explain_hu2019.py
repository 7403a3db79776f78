"""Why the noise of Hu et al. (2019), equation (16), hides nothing: run me, or read me.

A party releases D x + D xi with xi of covariance sigma^2 (D'D)^-1. Both terms lie in the range of D, so the released
vector does. An observer who has to tell D from a D' with one other column looks how far it is from either range: from
that of the true one by nothing but rounding, from the other by a share of its length that no sigma can lower.
"""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.feature_noise import range_root


def distances(sigma: float, *, rows: int = 50, columns: int = 5, seed: int = 0) -> tuple[float, float]:
    """Relative distance of one released vector from the range of D, and from that of a neighbouring D'."""
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(rows, columns))
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    neighbour = own.copy()
    neighbour[:, 0] += rng.normal(size=rows) / (2 * np.sqrt(rows))  # |D - D'| <= 1, as the definition asks
    released = own @ (rng.normal(size=columns) + sigma * range_root(own) @ rng.normal(size=columns))
    rest = [released - data @ np.linalg.lstsq(data, released, rcond=None)[0] for data in (own, neighbour)]
    near, far = (float(np.linalg.norm(part) / np.linalg.norm(released)) for part in rest)
    return near, far


if __name__ == "__main__":
    for sigma in (1.0, 1e3, 1e6):
        near, far = distances(sigma)
        print(f"sigma {sigma:g}: distance from the range of D {near:.0e}, of D' {far:.3f}")
