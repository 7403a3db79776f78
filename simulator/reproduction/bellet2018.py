"""Bellet, Guerraoui, Taziki and Tommasi (2018): figures 1 to 4, table 1, theorems 1 and 2, proposition 2."""

from __future__ import annotations

from .bellet2018_claims import BUDGETS, CLAIMS
from .bellet2018_statements import STATEMENTS
from .bellet2018_table1 import CLAIMS as CLAIMS_ABOUT_TABLE_1
from .bellet2018_table1 import errors_over_updates
from .claims import Paper, PaperFigure

PAPER = Paper(
    name="bellet2018",
    authors="Bellet, Guerraoui, Taziki and Tommasi",
    year=2018,
    title="Personalized and private peer-to-peer machine learning",
    venue="AISTATS 2018",
    remarks=(
        "Confidences are c_i = m_i on the synthetic task (option `count`): c_i = m_i / max m with mu = 0.04, "
        "taken literally, has rows of its own at figures 2c and 3. MovieLens uses c_i = m_i / max m as printed.",
        "Points are uniform on the cube. Step sizes are spectral, as in the paper, and listed as assumed public.",
        "Private runs use the paper's L0 = 1 on the synthetic task; what can be verified stands beside what is "
        "claimed.",
    ),
    figures=(
        PaperFigure(
            "bellet2018-fig1",
            "Figure 1",
            "Coordinate descent against gossip ADMM, both from local models, p = 100.",
            "bellet2018-fig1",
            quick=("stop.activations=1000", "record.activations=50"),
            pictures=(
                "objective-vs-activations",
                "accuracy-vs-activations",
                "objective-vs-vectors",
                "accuracy-vs-vectors",
            ),
        ),
        PaperFigure(
            "bellet2018-fig2a",
            "Figure 2a",
            "Objective and accuracy of the private algorithm along its updates, from a constant start.",
            "bellet2018-fig2a",
        ),
        PaperFigure(
            "bellet2018-fig2a-updates",
            "Figure 2a, over T",
            "Final objective and accuracy against the number of updates that a budget is spread over; budgets of 5 and "
            "20 are ours.",
            "bellet2018-fig2a-updates",
            quick=(
                "sweep={T: {zip: {"
                + ", ".join(f"protocols.{key}.privacy.updates: [1, 2]" for key in (*BUDGETS, "by-m"))
                + "}}}",
            ),
        ),
        PaperFigure(
            "bellet2018-fig2b",
            "Figure 2b",
            "The private algorithm from a private warm start of epsilon 0.05, and from a constant; starts of 2.5 and "
            "10 in totals of 5 and 20 are ours.",
            "bellet2018-fig2b",
        ),
        PaperFigure(
            "bellet2018-fig2c",
            "Figure 2c",
            "Final accuracy against the dimension, by privacy budget, from a constant start (zero) where the paper has "
            "a private warm start, see figure 2b; updates are tuned.",
            "bellet2018-fig2c",
            quick=("sweep={task.dimension: [10, 100]}", "tune=null"),
        ),
        PaperFigure(
            "bellet2018-fig3",
            "Figure 3",
            "Final accuracy by the size of an agent's data, p = 100, from a constant start (zero); updates are tuned.",
            "bellet2018-fig3-tuned",
            quick=("tune=null",),
        ),
        PaperFigure(
            "bellet2018-fig4",
            "Figure 4",
            "Accuracy of local and of collaborative models from perturbed examples (local differential privacy), by "
            "dimension.",
            "bellet2018-fig4",
            quick=("sweep={task.dimension: [10, 100]}",),
        ),
        PaperFigure(
            "bellet2018-proposition2",
            "Proposition 2",
            "How a budget is spread over an agent's updates, when all their times are known in advance.",
            "bellet2018-proposition2",
            quick=("protocols.proposition2.privacy.oracle_schedule=false",),
        ),
        PaperFigure(
            "bellet2018-table1",
            "Table 1",
            "Test RMSE per user on MovieLens-100K.",
            "bellet2018-movielens",
            quick=("stop.updates=20", "record.activations=3772"),
            quick_seeds=1,
            data="ml-100k",
        ),
        PaperFigure(
            "bellet2018-table1-readings",
            "Table 1, other readings",
            "Test RMSE per user by how ALS-WR is regularised and features are scaled, which the paper leaves open.",
            "bellet2018-movielens-readings",
            quick=("stop.updates=20", "sweep={task.als_regularisation: [0.01], task.feature_scaling: [standard]}"),
            quick_seeds=1,
            data="ml-100k",
        ),
        PaperFigure(
            "bellet2018-table1-updates",
            "Table 1, private rows over T",
            "Test RMSE per user by the number T of updates that a budget is spread over, under six readings of the "
            "item features (regularisation of ALS-WR, and whether features are scaled); the paper prints neither.",
            "bellet2018-movielens-updates",
            quick=(
                "stop.updates=20",
                "sweep={reading: {zip: {task.als_regularisation: [0.01], task.feature_scaling: [standard]}, "
                "labels: [0.01 scaled]}, T: {zip: {"
                + ", ".join(f"protocols.{key}.privacy.updates: [1, 3]" for key in ("eps-1", "eps-0-5", "eps-0-1"))
                + "}}}",
            ),
            quick_seeds=1,
            data="ml-100k",
            table=errors_over_updates,
        ),
    ),
    claims=(*CLAIMS, *CLAIMS_ABOUT_TABLE_1),
    statements=STATEMENTS,
)
