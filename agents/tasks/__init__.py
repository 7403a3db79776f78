"""What agents learn from: one file per task, each a class of parameters that builds a `base.Task`.

Every task class has ``build(*, rng, data_dir, base=None) -> Task``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..parameters import Parameters
from .csv_table import CsvTable
from .linear_classification import LinearClassification
from .movielens import MovieLens
from .synthetic_ratings import SyntheticRatings

TASKS: dict[str, type[Parameters]] = {
    "linear_classification": LinearClassification,
    "movielens": MovieLens,
    "synthetic_ratings": SyntheticRatings,
    "csv": CsvTable,
}
TaskParameters = Annotated[
    LinearClassification | MovieLens | SyntheticRatings | CsvTable,
    Field(discriminator="kind"),
]
