"""What agents learn from: one file per task, each a class of parameters that builds a `base.Task`.

Every task class has ``build(*, rng, data_dir, base=None) -> Task``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..parameters import Parameters
from .adult import Adult
from .csv_table import CsvTable
from .libsvm_sets import A9a, Epsilon, Gisette
from .linear_classification import LinearClassification
from .mean_estimation import MeanEstimation
from .movielens import MovieLens
from .stand_ins import EpsilonLike, GisetteLike
from .synthetic_ratings import SyntheticRatings

TASKS: dict[str, type[Parameters]] = {
    "linear_classification": LinearClassification,
    "mean_estimation": MeanEstimation,
    "movielens": MovieLens,
    "synthetic_ratings": SyntheticRatings,
    "adult": Adult,
    "a9a": A9a,
    "epsilon": Epsilon,
    "epsilon_like": EpsilonLike,
    "gisette": Gisette,
    "gisette_like": GisetteLike,
    "csv": CsvTable,
}
TaskParameters = Annotated[
    LinearClassification
    | MeanEstimation
    | MovieLens
    | SyntheticRatings
    | Adult
    | A9a
    | Epsilon
    | EpsilonLike
    | Gisette
    | GisetteLike
    | CsvTable,
    Field(discriminator="kind"),
]
