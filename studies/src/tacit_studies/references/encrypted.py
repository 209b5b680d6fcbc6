"""Numbers printed by Baykara, Ünal and Akgün, "Enabling Privacy-preserving Model Evaluation in
Federated Learning via Fully Homomorphic Encryption" (Baykara et al. 2024).

Figures 2 and 3 are pictures only; what stands here of them is what the text of section VII-B says.
"""

from __future__ import annotations

from dataclasses import dataclass

Pair = tuple[float, float]
"""A mean and a standard deviation."""

EPSILONS = (1.0, 8.0)
"""Section VII-A: the budgets of DPAUC."""

PARTIES = 15
"""Section VII-A: parties in tables I and II and figure 2."""

SPLITS = 4
"""Section VII-B: S."""


@dataclass(frozen=True)
class Cell:
    """One line of table I or II.

    Parameters
    ----------
    encrypted : the paper's own method, whose deviation is 0.
    dpauc : DPAUC at each of ``EPSILONS``.
    """

    encrypted: float
    dpauc: tuple[Pair, Pair]


@dataclass(frozen=True)
class Block:
    """The lines of one size of data.

    Parameters
    ----------
    records : the size.
    exact : the AUC by scikit-learn.
    cells : by number of decision points, N.
    """

    records: int
    exact: float
    cells: dict[int, Cell]


TABLE_1 = (
    Block(
        100,
        0.765417,
        {
            25: Cell(0.764580, ((112.8856, 1029.426), (40.56802, 72.81583))),
            50: Cell(0.761465, ((66.11053, 3486.300), (-6.93354, 1280.965))),
            100: Cell(0.764411, ((192.3464, 4973.634), (29.72084, 4835.073))),
        },
    ),
    Block(
        1_000,
        0.752500,
        {
            25: Cell(0.752502, ((69.507704, 725.146), (0.786719, 0.212634))),
            50: Cell(0.752444, ((-8.473372, 1237.06), (2.572270, 19.06697))),
            100: Cell(0.752375, ((42.184663, 1757.05), (42.63417, 62.44075))),
        },
    ),
    Block(
        10_000,
        0.746184,
        {
            25: Cell(0.745805, ((0.792406, 0.236237), (0.746144, 0.028154))),
            50: Cell(0.746052, ((1.032923, 0.953103), (0.754784, 0.049641))),
            100: Cell(0.746266, ((-8.722478, 113.148), (0.741087, 0.107208))),
        },
    ),
    Block(
        458_407,
        0.745416,
        {
            25: Cell(0.744820, ((0.744391, 0.004721), (0.744792, 0.000549))),
            50: Cell(0.745283, ((0.745462, 0.010124), (0.745351, 0.001053))),
            100: Cell(0.745380, ((0.749182, 0.018712), (0.745672, 0.001883))),
        },
    ),
)
"""Table I, Criteo. The last size, printed as 4.58e5, is the evaluation set of Sun et al. 2022b."""

TABLE_2 = (
    Block(
        100,
        0.891600,
        {
            25: Cell(0.893400, ((63.00177, 723.6120), (-0.97248, 28.83271))),
            50: Cell(0.888800, ((87.28492, 787.6992), (43.2448, 496.1687))),
            100: Cell(0.892600, ((244.4928, 2981.016), (-93.4737, 657.0762))),
        },
    ),
    Block(
        1_000,
        0.938588,
        {
            25: Cell(0.937070, ((8.817562, 408.6866), (0.991520, 0.320545))),
            50: Cell(0.938250, ((127.9842, 1369.205), (2.261357, 9.195085))),
            100: Cell(0.938700, ((253.1984, 2616.424), (8.875182, 50.45507))),
        },
    ),
    Block(
        10_000,
        0.911406,
        {
            25: Cell(0.909860, ((1.009118, 0.249137), (0.904852, 0.027761))),
            50: Cell(0.910900, ((1.387757, 1.807835), (0.914889, 0.057772))),
            100: Cell(0.911290, ((10.76247, 102.0806), (0.894566, 0.115002))),
        },
    ),
    Block(
        100_000,
        0.954052,
        {
            25: Cell(0.950080, ((0.947500, 0.022812), (0.950197, 0.003212))),
            50: Cell(0.952370, ((0.950787, 0.049092), (0.953180, 0.006660))),
            100: Cell(0.953422, ((0.980881, 0.103526), (0.953366, 0.011731))),
        },
    ),
)
"""Table II, CelebA."""

TABLE_3 = {"semi-honest": 6.81, "malicious": 13.62}
"""Table III: megabytes that a client sends, for any number of clients."""

TABLE_3_CLIENTS = (5, 10, 15)

SECONDS = {"semi-honest": 0.68, "malicious": 1.64}
"""Section VII-B: the aggregator's seconds at 100 parties and N = 100, on one core of an M2 Pro."""

POINTS = 100
"""N in figure 3."""
