"""FedAUC of Sun, Yang, Yao, Xie, Wu and Wang, 2022 (Sun et al. 2022a; docs, sections 1b to 1d).

The server ranks the scores of all clients. Each client adds noise to the number of its positives
and to the sum of their ranks, at the fraction of its budget that its allocation gives to each
(Algorithm 4, section 5), and the server puts the sums in the rank form of the AUC (Equation 7).
Adjacency: one record's label flips. The server sees every client's scores and its noisy pair. The
paper's other protocol flips labels at random (Algorithms 1 to 3), from which every client computes
its pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import tacit.protocol as tp
from tacit.counts import allocating, rank_noise
from tacit.privacy import doubles
from tacit.privacy.cost import check_fraction
from tacit.privacy.exact import gaussian_delta
from tacit.protocol import audits
from tacit.protocols.fedauc import protocol


@dataclass(frozen=True)
class Laplace(tp.Choice):
    """Laplace noise, of pure epsilon."""

    word = "laplace"


@dataclass(frozen=True)
class Gaussian(tp.Choice):
    """Gaussian noise.

    Parameters
    ----------
    delta : the chance that epsilon fails, between 0 and 1; it has to be given.

    Raises
    ------
    ValueError : for a chance outside this range.
    """

    delta: float = 0.0

    word = "gaussian"

    def __post_init__(self) -> None:
        check_fraction("the delta, as in gaussian(delta=1e-6),", self.delta)


@dataclass(frozen=True)
class DiscreteLaplace(tp.Choice):
    """Laplace noise of whole numbers; not in the paper."""

    word = "discrete-laplace"


@dataclass(frozen=True)
class Staircase(tp.Choice):
    """Whole staircase noise, as ``FedAUC`` adds; not in the paper."""

    word = rank_noise.STAIRCASE


@dataclass(frozen=True)
class Fixed(tp.Choice):
    """One fraction of epsilon for every client (section 5.2).

    Parameters
    ----------
    alpha : the rank sum's fraction of epsilon, between 0 and 1.
    sensitivity : ``"local"``, the client's largest rank, or ``"global"``, M - 1 for every client.

    Raises
    ------
    ValueError : for another fraction or sensitivity.
    """

    alpha: float = 0.5
    sensitivity: str = "local"

    word = "fixed"

    def __post_init__(self) -> None:
        check_fraction("alpha", self.alpha)
        if self.sensitivity not in ("local", "global"):
            raise ValueError(f"sensitivity must be local or global, got {self.sensitivity!r}")


@dataclass(frozen=True)
class Orthogonal(tp.Choice):
    """Ranks from the client's mean rank, and one fraction for every client (section 5.3).

    Parameters
    ----------
    beta : the count's fraction of epsilon, between 0 and 1.

    Raises
    ------
    ValueError : for another fraction.
    """

    beta: float = 0.5

    word = "orthogonal"

    def __post_init__(self) -> None:
        check_fraction("beta", self.beta)


@dataclass(frozen=True)
class Adaptive(tp.Choice):
    """Ranks from the client's mean rank, and the client's own best fraction (section 5.3)."""

    word = "adaptive"


@dataclass(frozen=True)
class Influence(tp.Choice):
    """The allocation of ``FedAUC``, to compare the paper's mechanisms with it."""

    word = "influence"


@dataclass(frozen=True)
class PublishedFedAUC(protocol.RankSums):
    """The AUC from noisy rank sums, as Sun et al. 2022a form it.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every label.
    mechanism : the noise, ``Laplace()`` or ``Gaussian(delta=...)``, and besides the paper's
        ``DiscreteLaplace()`` and ``Staircase()``; or their words.
    allocation : how a client divides its budget between the count and the rank sum:
        ``Adaptive()``, ``Orthogonal(beta=...)``, ``Fixed(alpha=..., sensitivity=...)``, and besides
        the paper's ``Influence()``; or their words.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> PublishedFedAUC(1.0, "gaussian(delta=1e-8)").guarantee
    Cost(epsilon=1.0, delta=1e-08, adjacency=<Adjacency.LABEL: 'label'>, rho=None)
    >>> PublishedFedAUC(1.0, allocation="fixed(sensitivity=global)").allocation
    Fixed(alpha=0.5, sensitivity='global')
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    mechanism: Laplace | Gaussian | DiscreteLaplace | Staircase | str = tp.setting(
        default=Laplace(),
        help="laplace, gaussian(delta=...), discrete-laplace or staircase; laplace by default",
    )
    allocation: Adaptive | Orthogonal | Fixed | Influence | str = tp.setting(
        default=Adaptive(),
        help="adaptive, orthogonal(beta=...), fixed(alpha=..., sensitivity=local or global) or "
        "influence; adaptive by default",
    )

    name = "published-fedauc"
    title_settings = ("mechanism", "allocation")
    threats = staticmethod(lambda settings: protocol.NOISY_SUMS)
    audit_settings = (
        {"mechanism": rank_noise.STAIRCASE},
        {"allocation": "fixed"},
        {"mechanism": f"gaussian(delta={audits.DELTA})"},
    )
    law_settings: ClassVar[audits.Configurations] = {
        "fedauc-laplace": {"allocation": "influence"},
        "fedauc-discrete-laplace": {"mechanism": "discrete-laplace", "allocation": "influence"},
        "fedauc-gaussian": {"mechanism": Gaussian(1e-6), "allocation": "influence"},
        "fedauc-adaptive": {},
        "fedauc-adaptive-staircase": {"mechanism": rank_noise.STAIRCASE},
        "fedauc-adaptive-gaussian": {"mechanism": Gaussian(1e-6)},
        "fedauc-orthogonal": {"allocation": Orthogonal(0.3)},
        "fedauc-local": {"allocation": Fixed(0.6)},
        "fedauc-global": {"allocation": Fixed(sensitivity="global")},
    }
    noticed = ("fedauc-adaptive", "fedauc-gaussian")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.mechanism, Gaussian):
            gaussian_delta(
                self.epsilon,
                self.mechanism.delta * allocating.FIRST_ROUND_FRACTIONS[1],
                rank_noise.PAIR,
            )

    @property
    def rank_noise(self) -> rank_noise.RankNoise:
        """The noise of a client's pair, at the whole budget."""
        delta = self.mechanism.delta if isinstance(self.mechanism, Gaussian) else 0.0
        word = self.mechanism if isinstance(self.mechanism, str) else self.mechanism.word
        return rank_noise.RankNoise(word, self.epsilon, delta)

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs each client at most."""
        return tp.Cost(self.epsilon, self.rank_noise.delta, tp.Adjacency.LABEL)

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record where labels may be flipped."""
        flips = isinstance(self.allocation, Influence)
        return super().replicate_size(clients) if flips else 8 * clients.count

    def divided(self, geometry: allocating.RankGeometry) -> allocating.Allocation | None:
        """As the setting says; None for ``Influence``."""
        chosen = self.allocation
        if isinstance(chosen, Fixed):
            is_global = chosen.sensitivity == "global"
            largest = 2 * (geometry.records - 1) if is_global else 0
            return allocating.Allocation.alike(
                geometry, fraction=1.0 - chosen.alpha, sensitivity=largest
            )
        if isinstance(chosen, Orthogonal):
            return allocating.orthogonal_allocation(geometry, chosen.beta)
        if isinstance(chosen, Adaptive):
            return allocating.adaptive_allocation(geometry, self.rank_noise)
        return None

    @classmethod
    def self_test_cases(cls) -> tp.SelfTestCases:
        """Rank sums and low bits, sound and with a mistake each."""
        sums, laplace = cls(1.0, Staircase()), cls(1.0, Laplace(), Fixed())
        halved = partial(doubles.ScaledNoise, 0.5)
        grid, bare = "Laplace noise on a grid, low bits", "floating-point noise, low bits"
        return tp.SelfTestCases(
            (
                tp.AuditTrial(audits.SUMS, "noisy rank sums", False, sums),
                tp.AuditTrial(audits.SUMS, "their noise halved", True, sums, halved),
                tp.AuditTrial(
                    audits.LOW_BITS, grid, False, laplace, doubles.GridNoise, system=True
                ),
                tp.AuditTrial(audits.LOW_BITS, bare, True, laplace),
            ),
            (cls(1.0, DiscreteLaplace()),),
        )

    @property
    def law_traits(self) -> tp.LawTraits:
        """With the influence allocation a small client flips its labels, and a large one does not.

        Its records are copied until it adds noise.
        """
        return tp.LawTraits(
            copies=protocol.ADDITIVE_COPIES if isinstance(self.allocation, Influence) else 1
        )


@dataclass(frozen=True)
class PublishedResponseAUC(protocol.RankSums):
    """The AUC from labels that are flipped at random, as Sun et al. 2022a form it.

    Every label is flipped once, with probability ``1 / (1 + exp(epsilon))`` (Algorithm 1). A later
    evaluation of the same labels uses them again and costs nothing. The server corrects the AUC of
    flipped labels for the flips (Algorithm 3).

    Parameters
    ----------
    epsilon : the privacy budget of all evaluations together, for every label.

    Raises
    ------
    ValueError : for an epsilon that is not positive.

    Examples
    --------
    >>> PublishedResponseAUC(1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.LABEL: 'label'>, rho=None)
    """

    epsilon: float = tp.setting(help=tp.EPSILON)

    name = "published-fedauc-response"
    threats = staticmethod(lambda settings: protocol.FLIPPED_LABELS)
    law_settings: ClassVar[audits.Configurations] = {"fedauc-published-response": {}}
    audit_records = 2
    """All labels are flipped alike."""
    noticed = ()
    """Scaled noise changes no flips; ``FedAUC`` has trials in which they are wrong."""
    law_traits = tp.LawTraits(
        inexact="flipped labels are debiased all the same", copies=protocol.ADDITIVE_COPIES
    )
