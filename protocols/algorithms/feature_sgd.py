"""Stochastic gradients over split features: the baseline that ADMM sharing is compared with (Hu et al. 2019).

After "FDML" (Hu, Niu, Yang, Zhou 2019): for a minibatch of rows, each party sends its scores D_m x_m, the centre adds
them up and sends back the slope of the loss of every row, and a party moves its own part of the model against

    (1/N) dF/dx_m = (1/B) sum_{k in batch} l'(s_k) d_mk + (lambda / N) x_m.

A batch takes two rounds, like an epoch of ADMM sharing, but moves B numbers a message instead of N. Batches run
through a common random order of the rows, again and again, wrapping around its end. Starts at zero, where the paper
starts at random; an epoch, a pass over all rows, is 2 N / B rounds.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.parameters import NotNegative, Positive, Size
from ..base import Layout, MessageKind, ProtocolParameters, PublicStart, Traits
from ..invariants import Declared, NoInvariant
from ..privacy.mechanisms import Release
from ..steps import Constants, Every, heard_sum, scores_of, slopes, sum_of_rows
from .split_features import CENTRE, SplitProtocol, roles, widths


class FeatureSgdParameters(ProtocolParameters):
    """Minibatch stochastic gradients over vertically split features, without noise (after Hu et al. 2019)."""

    kind: Literal["feature_sgd"]
    ridge: NotNegative = 1.0
    """lambda of the regulariser (lambda/2) |x|^2 beside the sum of the losses."""
    batch: Size = 1000
    """Rows B of a minibatch; at most all of them."""
    step_size: Positive = 0.5
    """Step along the mean gradient of a batch."""
    decay: NotNegative = 0.0
    """The t-th step is step_size / (1 + decay t)."""


class FeatureSgd(SplitProtocol):
    """Synchronous minibatch steps in a star; see the module's docstring."""

    Parameters = FeatureSgdParameters
    parameters: FeatureSgdParameters
    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True, instead="stale_feature_sharing")

    def prepare(self) -> None:
        """Columns and the common order of the rows."""
        super().prepare()
        self.rows = len(self.problem.task.train.labels)
        self.batch = min(self.parameters.batch, self.rows)
        stream = self.problem.stream
        self.order = np.arange(self.rows) if stream is None else stream("order of rows", CENTRE).permutation(self.rows)

    @property
    @override
    def epoch(self) -> float:
        """Rounds of an epoch: every batch takes two."""
        return 2 * self.rows / self.batch

    def layout(self) -> Layout:
        """A part of the model per party; B scores one way, B slopes the other."""
        agents = len(self.columns)
        return Layout(
            agent={"model": [len(held) for held in self.columns]},
            messages={
                "scores": MessageKind(widths(agents, centre=0, party=self.batch)),
                "slopes": MessageKind(widths(agents, centre=self.batch, party=0)),
            },
            roles=roles(agents),
        )

    def public_start(self) -> PublicStart:
        """Everything is zero."""
        return PublicStart()

    def release(self, me: Any) -> Release:
        """Scores and slopes leave as they are."""
        if me.agent == CENTRE:
            return Release.plain(me.agent, me.now, "the slopes depend on the labels, which nothing protects")
        return Release.plain(me.agent, me.now, "scores of the party's columns, without noise")

    def constants(self) -> Constants:
        """The common order of the rows, with a batch more, how many they are, and how many a batch has."""
        beyond = np.concatenate((self.order, self.order[: self.batch]))
        return Constants(run={"order": beyond, "size": self.rows, "batch": self.batch})

    def sends(self) -> dict[str, Every]:
        """Parties in odd rounds, the centre in even ones."""
        return {"scores": Every(2), "slopes": Every(2, 1)}

    @staticmethod
    def step(me: Any) -> None:
        """Parties step in odd rounds: the last batch's update and the next one's scores. The centre in even ones."""
        number, second = me.updates // 2, me.updates % 2 == 1
        if me.agent == CENTRE and second:
            me.message_slopes = slopes(me, heard_sum(me), rows_of(me, number))
        elif me.agent != CENTRE and not second:
            if number > 0:
                descend(me, number - 1)
            me.message_scores = scores_of(me, me.model, rows_of(me, number))

    def invariants(self) -> Declared:
        """None."""
        return NoInvariant("a party changes its own part of the model only, by a step that nothing undoes or answers")


def descend(me: Any, number: int) -> None:
    """the update of a batch, from the slopes that the centre sent."""
    gradient = sum_of_rows(me, me.heard_slopes[0], rows_of(me, number)) / me.batch
    gradient += me.ridge / me.size * me.model
    me.model -= me.step_size / (1 + me.decay * number) * gradient


def rows_of(me: Any, number: int) -> NDArray[np.int64]:
    """(B,) the rows of a batch."""
    batch = int(me.batch)
    first = number * batch % int(me.size)
    return me.order[first : first + batch].astype(np.int64)
