"""The tasks that a scenario may choose from: one registration each, and what every one of them says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, final

import numpy as np
from pydantic import Field

from ..errors import InputError
from ..kinds import KindOf
from ..models import LinearModel, ModelParameters
from ..parameters import Parameters
from .extent import Extent, Files
from .outline import Outline
from .task import Task


class TaskKind(Parameters, ABC):
    """Parameters of a task, of which a scenario chooses one by ``kind``."""

    draws_data: ClassVar[bool]
    """Whether every data seed draws data anew, so that a tuning on other seeds sees other data; else a seed only deals
    the rows of one data set, and the trials of a tuning keep away from the reported runs' test rows. Every task has to
    say."""
    published: ClassVar[bool] = False
    """Whether its files are a published data set: whoever runs it again gets them where they are published, under their
    licence, so no copy is kept."""
    target: ClassVar[str] = "common"
    """Whether what is to be learned is ``common`` to all agents, or ``personal``."""
    model: ModelParameters = Field(default_factory=LinearModel)
    """What agents learn."""

    @abstractmethod
    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""

    @abstractmethod
    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task; from the files if their folders are given, else from the parameters alone."""

    @abstractmethod
    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Draw or read the data, and deal them to agents.

        The generator draws what is drawn: data, who gets which rows, and which are test rows. Without a data directory
        that of the environment variable HUSHNET_DATA is used; ``path`` is relative to the base. Raises `InputError` if
        a file is missing or not what it should be, or rows cannot be dealt so; with file, line and value.
        """

    @final
    def width(self, extent: Extent) -> int:
        """Number of a model's parameters; of one that has no such loss, which is refused later, one a feature."""
        try:
            model, _ = self.model.bind(extent.dimension, self.outline().loss, extent.classes)
        except InputError:
            return extent.dimension
        return extent.dimension if model is None else model.width

    @final
    def with_model(self, task: Task, *, rng: np.random.Generator) -> Task:
        """Give a built task the model that the parameters name, with drawn first parameters that all agents share.

        Raises `InputError` if the model has no loss of the task's labels.
        """
        found, loss = self.model.bind(task.train.features.shape[1], task.loss, task.classes)
        if found is None:
            return task
        return replace(task, loss=loss, model=found, first=found.first(rng))


TASKS = KindOf("task", TaskKind, says=("draws_data",))
TaskParameters = Annotated[TaskKind, TASKS]


def is_published(kind: object) -> bool:
    """True if the task of a name reads a published data set; False for an unknown name."""
    found = TASKS.get(kind) if isinstance(kind, str) else None
    return found is not None and issubclass(found, TaskKind) and found.published
