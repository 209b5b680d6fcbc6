"""Log loss and normalised entropy, as scores are and after logistic recalibration."""

from __future__ import annotations

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional, both, prevalence, ratio


def log_loss(counts: Floats, log_odds: Floats) -> Functional:
    """The mean of ``-log`` of the probability that a score states for the label, in nats.

    Parameters
    ----------
    counts : shape (2, B).
    log_odds : what each cell states, shape (B,). They are finite: the middle of a cell clips the
        scores in it.

    Examples
    --------
    >>> log_loss(np.array([[1.0], [1.0]]), np.zeros(1)).value.round(6).tolist()
    [0.693147]
    """
    # -log expit(x) and -log(1 - expit(x))
    losses = both(np.logaddexp(0.0, -log_odds), np.logaddexp(0.0, log_odds))[np.newaxis]
    return ratio(counts, losses, np.ones_like(losses))


def normalised_entropy(counts: Floats, log_odds: Floats) -> Functional:
    """The log loss over that of stating the prevalence for all (He et al. 2014, equation 1)."""
    return _over_entropy(counts, log_loss(counts, log_odds))


def _over_entropy(counts: Floats, loss: Functional) -> Functional:
    share = prevalence(counts)
    entropy = scipy.special.entr(share.value) + scipy.special.entr(1 - share.value)
    known = np.where(entropy > 0, entropy, np.nan)
    value = loss.value / known
    # the entropy's slope in the prevalence is log((1 - o) / o)
    slope = -value * -scipy.special.logit(share.value)
    change = loss.gradient + slope[:, np.newaxis, np.newaxis] * share.gradient
    return Functional(value, change / known[:, np.newaxis, np.newaxis])
