"""The names of all measures, and what they are called in texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

CALIBRATION = (
    "calibration_intercept",
    "calibration_slope",
    "intercept_beside_slope",
    "observed_over_expected",
    "ici",
    "e50",
    "e90",
    "emax",
    "brier",
    "scaled_brier",
)
LOSSES = (
    "log_loss",
    "normalised_entropy",
    "recalibrated_log_loss",
    "recalibrated_normalised_entropy",
    "calibration_ratio",
    *(f"calibration_ratio_of_decile_{number}" for number in range(1, 11)),
)
RANKING = (
    "prevalence",
    "partial_auc",
    "standardised_partial_auc",
    "sensitivity_at_specificity_0.9",
    "sensitivity_at_specificity_0.95",
    "specificity_at_sensitivity_0.9",
    "specificity_at_sensitivity_0.95",
    "threshold_for_specificity_0.9",
    "threshold_for_specificity_0.95",
    "threshold_for_sensitivity_0.9",
    "threshold_for_sensitivity_0.95",
)
SEPARATION = "kolmogorov_smirnov"
TRAFFIC = (
    SEPARATION,
    *(
        f"{name}_{share}"
        for share in ("0.01", "0.05", "0.1", "0.2")
        for name in ("gain_of_top", "lift_of_top", "threshold_for_share")
    ),
)
AT_THRESHOLD = (
    "net_benefit",
    "net_benefit_of_all",
    "sensitivity",
    "specificity",
    "positive_predictive_value",
    "negative_predictive_value",
    "positive_likelihood_ratio",
    "negative_likelihood_ratio",
)
SHORT = {"ks": SEPARATION}
"""Short names in wide use."""
ESSENTIAL = ("calibration_intercept", "calibration_slope", "brier")
"""What is printed by default, beside net benefits."""

LABELS = {
    "calibration_intercept": "calibration intercept (slope 1)",
    "intercept_beside_slope": "intercept beside the slope",
    "observed_over_expected": "observed / expected",
    "calibration_ratio": "calibration ratio (expected / observed)",
    "ici": "integrated calibration index (ICI)",
    "e50": "E50 of the smooth calibration curve",
    "e90": "E90 of the smooth calibration curve",
    "emax": "Emax of the smooth calibration curve",
    "brier": "Brier score",
    "scaled_brier": "scaled Brier score",
    "log_loss": "log loss (nats)",
    "recalibrated_log_loss": "log loss after recalibration (nats)",
    "recalibrated_normalised_entropy": "normalised entropy after recalibration",
    "partial_auc": "partial AUC (specificity 0.9 to 1)",
    "standardised_partial_auc": "standardised partial AUC (specificity 0.9 to 1)",
    "kolmogorov_smirnov": "Kolmogorov-Smirnov distance of the classes",
}
"""Texts that differ from the name with spaces."""


def names(thresholds: Sequence[float]) -> tuple[str, ...]:
    """The names of all measures with these thresholds, in the order of a file."""
    decisions = (f"{name}_at_{threshold:g}" for name in AT_THRESHOLD for threshold in thresholds)
    return (*CALIBRATION, *decisions, *RANKING, *LOSSES, *TRAFFIC)


def named(text: str) -> tuple[str, tuple[float, ...]] | None:
    """The measure that a text names, with the threshold of its decision; None for no measure.

    Parameters
    ----------
    text : the name in a file, or its words with spaces, in any case.

    Examples
    --------
    >>> named("net benefit at 0.20"), named("Calibration slope"), named("charm")
    (('net_benefit_at_0.2', (0.2,)), ('calibration_slope', ()), None)
    >>> named("KS")
    ('kolmogorov_smirnov', ())
    """
    spelled = re.sub(r"[\s_-]+", "_", text.strip().lower())
    name = SHORT.get(spelled, spelled)
    if name in names(()):
        return name, ()
    figure, _, at = name.rpartition("_at_")
    try:
        threshold = float(at)
    except ValueError:
        return None
    if figure not in AT_THRESHOLD or not 0 < threshold < 1:
        return None
    return f"{figure}_at_{threshold:g}", (threshold,)


def label(name: str) -> str:
    """What a measure is called in texts.

    Examples
    --------
    >>> label("net_benefit_at_0.2"), label("brier")
    ('net benefit at probability 0.2', 'Brier score')
    """
    spelled = re.sub(r"_at_(?=[0-9])", " at probability ", name)
    return LABELS.get(name, spelled.replace("_", " "))
