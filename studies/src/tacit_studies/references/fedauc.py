"""Numbers printed in Sun et al., "Differentially Private AUC Computation in Vertical Federated
Learning" (Sun et al. 2022a), as its tables give them.

A dictionary's keys are a table's rows and a tuple follows its columns; None stands for an empty
cell. Epochs are numbered from 0 in the order of the columns.
"""

from __future__ import annotations

SMALL_SET = (117_317, 341_090)
"""Table 4: positives and negatives of the small evaluation set."""

LARGE_SET = (1_173_981, 3_410_081)
"""Table 4: positives and negatives of the large evaluation set."""

SMALL_AUC = (0.749383, 0.766477, 0.770219)
"""Table 5: the exact AUC of every epoch (scikit-learn), small set."""

LARGE_AUC = (0.750509, 0.768045, 0.772007)
"""Table 6: the exact AUC of every epoch (scikit-learn), large set."""

Stds = dict[str, tuple[float | None, ...]]

TABLE_1_CLIENTS = (10, 458, 4_584, 45_840)

TABLE_1: dict[float, Stds] = {
    1.0: {
        "RR": (2.17e-3,),
        "GlobalLaplace": (1.22e-4, 8.48e-4, 2.39e-3, 8.08e-3),
        "LocalLaplace (IID)": (1.13e-4, 9.64e-4, 2.26e-3, 7.39e-3),
        "LocalLaplace (Non-IID)": (8.98e-5, 5.29e-4, 1.86e-3, 5.45e-3),
        "adaptive (IID)": (5.15e-5, 3.92e-4, 1.22e-3, 3.80e-3),
        "adaptive (Non-IID)": (2.93e-5, 1.22e-4, 3.92e-4, 1.03e-3),
    },
    2.0: {
        "RR": (1.02e-3,),
        "GlobalLaplace": (5.85e-5, 4.15e-4, 1.28e-3, 3.95e-3),
        "LocalLaplace (IID)": (5.74e-5, 4.72e-4, 1.21e-3, 4.09e-3),
        "LocalLaplace (Non-IID)": (4.59e-5, 2.91e-4, 9.45e-4, 3.09e-3),
        "adaptive (IID)": (2.60e-5, 1.84e-4, 6.48e-4, 1.66e-3),
        "adaptive (Non-IID)": (1.59e-5, 6.01e-5, 1.52e-4, 5.54e-4),
    },
    4.0: {
        "RR": (3.49e-4,),
        "GlobalLaplace": (2.92e-5, 2.09e-4, 6.58e-4, 1.88e-3),
        "LocalLaplace (IID)": (3.11e-5, 1.94e-4, 5.80e-4, 1.86e-3),
        "LocalLaplace (Non-IID)": (2.49e-5, 1.48e-4, 4.44e-4, 1.53e-3),
        "adaptive (IID)": (1.36e-5, 8.20e-5, 2.87e-4, 9.08e-4),
        "adaptive (Non-IID)": (7.80e-6, 2.81e-5, 8.72e-5, 2.77e-4),
    },
    8.0: {
        "RR": (4.41e-5,),
        "GlobalLaplace": (1.54e-5, 9.82e-5, 3.31e-4, 1.05e-3),
        "LocalLaplace (IID)": (1.51e-5, 1.06e-4, 3.27e-4, 8.52e-4),
        "LocalLaplace (Non-IID)": (1.06e-5, 6.99e-5, 2.19e-4, 7.50e-4),
        "adaptive (IID)": (7.01e-6, 4.55e-5, 1.37e-4, 4.61e-4),
        "adaptive (Non-IID)": (3.89e-6, 1.36e-5, 4.34e-5, 1.38e-4),
    },
}
"""Standard deviations of the AUC by epsilon and method; randomised response has one for all K."""

TABLE_2_CLIENTS = (10, 1_000, 100_000, 458_407)

TABLE_2: dict[float, Stds] = {
    1.0: {
        "GlobalLaplace": (4.84e-5, 5.26e-4, 4.45e-3, 1.10e-2),
        "LocalLaplace (IID)": (4.81e-5, 4.66e-4, 4.25e-3, 6.44e-3),
        "LocalLaplace (Non-IID)": (3.40e-5, 2.98e-4, 2.76e-3, 6.08e-3),
    },
    2.0: {
        "GlobalLaplace": (2.61e-5, 2.58e-4, 2.37e-3, 5.65e-3),
        "LocalLaplace (IID)": (2.61e-5, 2.48e-4, 2.10e-3, 2.87e-3),
        "LocalLaplace (Non-IID)": (1.48e-5, 1.51e-4, 1.38e-3, 3.20e-3),
    },
    4.0: {
        "GlobalLaplace": (1.30e-5, 1.21e-4, 1.21e-3, 2.68e-3),
        "LocalLaplace (IID)": (1.23e-5, 1.20e-4, 1.14e-3, 1.56e-3),
        "LocalLaplace (Non-IID)": (6.63e-6, 7.22e-5, 6.20e-4, 1.69e-3),
    },
    8.0: {
        "GlobalLaplace": (6.29e-6, 5.94e-5, 6.12e-4, 1.34e-3),
        "LocalLaplace (IID)": (5.79e-6, 6.32e-5, 5.07e-4, 8.09e-4),
        "LocalLaplace (Non-IID)": (3.98e-6, 3.70e-5, 3.44e-4, 8.53e-4),
    },
}
"""Standard deviations with exact class sizes; the columns are 45,840, 458.4, 4.6 and 1 records."""

TABLE_3: dict[float, tuple[float, float, float]] = {
    0.1: (0.509429, 0.510137, 0.510237),
    0.5: (0.546986, 0.550344, 0.550862),
    1.0: (0.592421, 0.598951, 0.600010),
    2.0: (0.667666, 0.679436, 0.681911),
    4.0: (0.735230, 0.751306, 0.754892),
    10.0: (0.749343, 0.766438, 0.770177),
}
"""The AUC of flipped labels without debiasing, by epsilon and epoch."""

Pair = tuple[float, float]
"""A mean and a standard deviation."""

TABLE_5: dict[float, tuple[Pair, Pair, Pair]] = {
    0.1: ((0.745667, 2.41e-2), (0.765312, 2.40e-2), (0.777627, 2.62e-2)),
    0.25: ((0.749169, 8.69e-3), (0.767502, 8.76e-3), (0.771198, 7.57e-3)),
    0.5: ((0.749206, 5.39e-3), (0.767081, 4.79e-3), (0.769621, 4.56e-3)),
    1.0: ((0.749495, 2.11e-3), (0.766833, 2.09e-3), (0.770707, 2.23e-3)),
    2.0: ((0.749453, 9.43e-4), (0.766621, 8.76e-4), (0.770548, 1.01e-3)),
    3.0: ((0.749295, 5.46e-4), (0.766490, 4.62e-4), (0.770183, 6.14e-4)),
    4.0: ((0.749207, 3.75e-4), (0.766458, 3.33e-4), (0.770161, 3.21e-4)),
    5.0: ((0.749399, 2.05e-4), (0.766477, 2.14e-4), (0.770214, 1.33e-4)),
    10.0: ((0.749383, 1.77e-5), (0.766475, 1.84e-5), (0.770214, 1.67e-5)),
}
"""Randomised response on the small set, by epsilon and epoch."""

TABLE_6: dict[float, tuple[Pair, Pair, Pair]] = {
    0.1: ((0.751439, 7.52e-3), (0.768640, 6.96e-3), (0.774664, 6.48e-3)),
    0.25: ((0.750405, 2.90e-3), (0.767958, 2.85e-3), (0.771694, 3.26e-3)),
    0.5: ((0.750589, 1.32e-3), (0.768324, 1.62e-3), (0.772143, 1.39e-3)),
    1.0: ((0.750345, 5.51e-4), (0.767988, 7.27e-4), (0.771974, 8.11e-4)),
    2.0: ((0.750482, 3.03e-4), (0.768001, 3.03e-4), (0.772005, 3.60e-4)),
    3.0: ((0.750480, 1.53e-4), (0.768043, 1.82e-4), (0.772040, 1.73e-4)),
    4.0: ((0.750509, 9.45e-5), (0.768055, 1.11e-4), (0.772008, 1.20e-4)),
    5.0: ((0.750500, 5.87e-5), (0.768041, 6.73e-5), (0.772004, 6.11e-5)),
    10.0: ((0.750509, 5.37e-6), (0.768046, 5.83e-6), (0.772008, 5.04e-6)),
}
"""Randomised response on the large set, by epsilon and epoch."""

TABLE_7_CLIENTS = (10, 458, 1_000, 4_584, 45_840, 100_000, 458_407)

TABLE_7: dict[float, Stds] = {
    1.0: {
        "RR": (2.17e-3,),
        "GlobalLaplace": (1.22e-4, 8.48e-4, 1.24e-3, 2.39e-3, 8.08e-3, 1.24e-2, 2.77e-2),
        "LocalLaplace (IID)": (1.13e-4, 9.64e-4, 1.26e-3, 2.26e-3, 7.39e-3, 1.10e-2, 1.99e-2),
        "LocalLaplace (Non-IID)": (8.98e-5, 5.29e-4, 8.49e-4, 1.86e-3, 5.45e-3, 8.33e-3, 1.81e-2),
        "adaptive (IID)": (5.15e-5, 3.92e-4, None, 1.22e-3, 3.80e-3, None, None),
        "adaptive (Non-IID)": (2.93e-5, 1.22e-4, None, 3.92e-4, 1.03e-3, None, None),
    },
    2.0: {
        "RR": (1.02e-3,),
        "GlobalLaplace": (5.85e-5, 4.15e-4, 5.62e-4, 1.28e-3, 3.95e-3, 5.21e-3, 1.32e-2),
        "LocalLaplace (IID)": (5.74e-5, 4.72e-4, 5.78e-4, 1.21e-3, 4.09e-3, 5.24e-3, 8.86e-3),
        "LocalLaplace (Non-IID)": (4.59e-5, 2.91e-4, 4.93e-4, 9.45e-4, 3.09e-3, 4.38e-3, 9.96e-3),
        "adaptive (IID)": (2.60e-5, 1.84e-4, None, 6.48e-4, 1.66e-3, None, None),
        "adaptive (Non-IID)": (1.59e-5, 6.01e-5, None, 1.52e-4, 5.54e-4, None, None),
    },
    4.0: {
        "RR": (3.49e-4,),
        "GlobalLaplace": (2.92e-5, 2.09e-4, 3.26e-4, 6.58e-4, 1.88e-3, 3.22e-3, 7.02e-3),
        "LocalLaplace (IID)": (3.11e-5, 1.94e-4, 3.00e-4, 5.80e-4, 1.86e-3, 2.40e-3, 4.38e-3),
        "LocalLaplace (Non-IID)": (2.49e-5, 1.48e-4, 2.05e-4, 4.44e-4, 1.53e-3, 2.26e-3, 4.39e-3),
        "adaptive (IID)": (1.36e-5, 8.20e-5, None, 2.87e-4, 9.08e-4, None, None),
        "adaptive (Non-IID)": (7.80e-6, 2.81e-5, None, 8.72e-5, 2.77e-4, None, None),
    },
    8.0: {
        "RR": (4.41e-5,),
        "GlobalLaplace": (1.54e-5, 9.82e-5, 1.53e-4, 3.31e-4, 1.05e-3, 1.58e-3, 2.99e-3),
        "LocalLaplace (IID)": (1.51e-5, 1.06e-4, 1.40e-4, 3.27e-4, 8.52e-4, 1.35e-3, 2.29e-3),
        "LocalLaplace (Non-IID)": (1.06e-5, 6.99e-5, 1.14e-4, 2.19e-4, 7.50e-4, 1.16e-3, 2.22e-3),
        "adaptive (IID)": (7.01e-6, 4.55e-5, None, 1.37e-4, 4.61e-4, None, None),
        "adaptive (Non-IID)": (3.89e-6, 1.36e-5, None, 4.34e-5, 1.38e-4, None, None),
    },
}
"""Table 1 with three more numbers of clients."""

TABLE_8: dict[int, tuple[int, float, float]] = {
    1: (1, 1.0, 8.52e-6),
    5: (4, 0.8, 3.41e-5),
    10: (8, 0.8, 6.82e-5),
    50: (43, 0.86, 3.67e-4),
    100: (79, 0.79, 6.73e-4),
    500: (384, 0.768, 3.27e-3),
    1_000: (774, 0.774, 6.60e-3),
    5_000: (3_914, 0.7828, 0.0334),
    10_000: (7_519, 0.7519, 0.0641),
    50_000: (30_793, 0.6159, 0.2625),
    100_000: (52_268, 0.5227, 0.4455),
}
"""Positives among the records of the K highest scores, precision and recall, by K."""

TABLE_9_EXACT = (0.7494, 0.7665, 0.7702)

TABLE_9: dict[float, tuple[float, float, float]] = {
    1.0: (0.5374, 0.5416, 0.5420),
    2.0: (0.5725, 0.5795, 0.5830),
    3.0: (0.5976, 0.6105, 0.6130),
    4.0: (0.6239, 0.6367, 0.6387),
    5.0: (0.6413, 0.6569, 0.6607),
    6.0: (0.6571, 0.6732, 0.6786),
    7.0: (0.6698, 0.6870, 0.6903),
    8.0: (0.6797, 0.6976, 0.7022),
    9.0: (0.6885, 0.7060, 0.7115),
    10.0: (0.6952, 0.7124, 0.7191),
    50.0: (0.7454, 0.7625, 0.7663),
    100.0: (0.7484, 0.7654, 0.7692),
    1000.0: (0.7494, 0.7665, 0.7702),
}
"""The AUC of scores with Laplace noise, by epsilon and epoch."""

LARGE_TO_SMALL = 10**-0.5
"""Section 6.2.1: the large set's standard deviation is "approximately 1/sqrt(10)" of the other."""

BEST_ALPHA = (0.5, 0.6)
"""Section 6.2.2: the range of alpha in which the standard deviation is smallest."""
