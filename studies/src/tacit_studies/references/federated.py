"""Bounds, settings and claims of Cormode and Markov, "Federated Calibration and Evaluation of
Binary Classifiers" (PVLDB 2023; Cormode and Markov 2023).

The curves of its figures are pictures only: what stands here is what the text says about them. The
text of section 7.3, on Figure 5, was not at hand beyond its first sentences.
"""

from __future__ import annotations

FEDERATED, DISTRIBUTED, LOCAL = "secure-aggregation", "distributed-dp", "local-dp"
"""The paper's Federated, DistDP and LocalDP in the words of the tables."""

EPSILON: dict[str, float | None] = {FEDERATED: None, DISTRIBUTED: 1.0, LOCAL: 5.0}
"""Section 7, privacy settings."""

THRESHOLDS = tuple(step / 11 for step in range(1, 11))
"""Section 7.1: the ten thresholds of figures 2 and 3."""

HEIGHT = 10
"""Sections 7.1 and 7.2: the height in figures 3 and 4."""

Exponents = dict[str, float]

RATES_BOUND: dict[str, Exponents] = {
    FEDERATED: {"B": -1.0},
    DISTRIBUTED: {"eps": -2 / 3, "M": -2 / 3},
    LOCAL: {"eps": -2 / 3, "M": -1 / 3},
}
"""Table 1, first line: precision, recall and accuracy."""

AUC_BOUND: dict[str, Exponents] = {
    FEDERATED: {"B": -2.0},
    DISTRIBUTED: {"eps": -1.0, "M": -1.0},
    LOCAL: {"h": 1.0, "eps": -1.0, "M": -0.5},
}
"""Table 1, second line. ``(1/eps + 1/B)/M`` has these exponents where B is far above epsilon."""

ECE_BOUND: dict[str, Exponents] = {
    FEDERATED: {"M": -1 / 3},
    DISTRIBUTED: {"eps": 0.0, "M": -1 / 3},
    LOCAL: {"eps": -0.5, "M": -0.25},
}
"""Table 1, third line: the expected calibration error."""

FEDERATED_RATES = (14, 1e-4)
"""Section 7.1: at this height errors of precision, recall and accuracy stay below this."""

RATE_ERROR: dict[str, float] = {DISTRIBUTED: 1e-3, LOCAL: 5e-3}
"""Section 7.1: the error "around" which the best height lies."""

GOOD_HEIGHTS: dict[str, tuple[int, int]] = {DISTRIBUTED: (10, 12), LOCAL: (8, 8)}
"""Section 7.1: the heights with the least error, measured and predicted."""

RATES_BY_HEIGHT = -1.0
"""Theorem 2, which section 7.1 sees confirmed: ``1/B`` with ``B = 2**h``, in powers of B."""

RATES_BY_SIZE: dict[str, float] = {FEDERATED: 0.0, DISTRIBUTED: -1.0, LOCAL: -1.0}
"""Section 7.1 on Figure 3: no effect of M; ``1/M``, "by this factor", in both private models.

``1/M`` is not what Theorem 2 says of the local model, ``M**(-1/3)``; the noise of randomised
reports falls with the root of M (section 2.2)."""

ENOUGH_RECORDS: dict[str, int] = {DISTRIBUTED: 10_000, LOCAL: 100_000}
"""Section 7.1: good accuracy takes more records than this."""

AUC_BUCKETS = 100
AUC_ERROR: dict[str, float] = {FEDERATED: 1e-5, DISTRIBUTED: 1e-3, LOCAL: 5e-3}
"""Section 7.2: the error of the AUC at 100 buckets, and the levels at which noise keeps it."""

FLAT_FROM: dict[str, int] = {DISTRIBUTED: 40, LOCAL: 20}
"""Section 7.2: from so many buckets on more of them change little."""

UNIFORM_TO_QUANTILE = 10.0
"""Section 7.2: buckets of equal depth err less than those of equal width "by an order of
magnitude"."""
