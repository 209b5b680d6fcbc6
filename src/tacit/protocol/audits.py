"""What a protocol declares for audits and for the laws.

What a protocol declares for an audit: attacked settings, guesses from messages, mistakes. What a
protocol declares for the laws: which do not apply, and what errors it promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats, Labels
from tacit.data.clients import Clients
from tacit.data.splitting import binormal_scores
from tacit.privacy import doubles
from tacit.privacy.cost import Cost

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol


Configurations = Mapping[str, Mapping[str, Any]]
"""Settings of a protocol, by the name of a case."""

DELTA = 0.05
"""Delta of audited Gaussian noise: far below it, no feasible number of draws comes near epsilon."""

SAMPLED_DRAWS = 6_000
"""Draws one at a time, of records that choose in private what they answer."""

AUC = 0.7455
"""AUC of the synthetic scores, as of the real ones in Sun et al. 2022."""

POSITIVE_FRACTION = 0.256
"""Fraction of positives among the synthetic records, as in Sun et al. 2022."""

DATA = 1
"""Second word of the seeds of records, which keeps them apart from the seeds of noise."""

COUNTS, SUMS, COMPOSITION, LOW_BITS = "counts", "sums", "composition", "low bits"
TOPICS = (COUNTS, SUMS, COMPOSITION, LOW_BITS)
"""What the trials of a self-test are about, in the order in which they are tried."""


@dataclass(frozen=True)
class AuditCase:
    """A protocol's settings, and the federation on which it is attacked.

    Parameters
    ----------
    name : the protocol.
    settings : its settings without epsilon.
    records : how many records there are, of one client unless ``apart``.
    apart : whether every record is one client.
    one_by_one : how many replies are drawn one at a time, where records choose in private what
        they answer, or replies are ciphertexts; 0 to draw many at once.
    tight : whether the declared epsilon should be within an attack's reach.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    records: int = 4
    apart: bool = False
    one_by_one: int = 0
    tight: bool = True

    def protocol(self, epsilon: float | None) -> Protocol:
        """The protocol at this epsilon, where it takes one.

        Raises
        ------
        SettingError : where it needs an epsilon and none is given.
        """
        # The registry imports the module of Protocol, which imports this one.
        from tacit.protocol.registry import protocol_of

        settings = {} if epsilon is None or not self.takes_epsilon else {"epsilon": epsilon}
        return protocol_of(self.name, {**self.settings, **settings})

    @property
    def takes_epsilon(self) -> bool:
        """Whether these settings have a privacy budget."""
        from tacit.protocol.registry import kind_of

        return bool(kind_of(self.name).takes_epsilon(self.settings))

    def clients(self, protocol: Protocol) -> Clients:
        """The federation, with scores in the protocol's domain."""
        return protocol.audit_federation(self.records, self.apart)


@dataclass(frozen=True)
class AttackSizes:
    """How much is attacked.

    Parameters
    ----------
    records : of attacks on one large data set.
    trials : small data sets, each with its own records and noise.
    """

    records: int = 20_000
    trials: int = 200


@dataclass(frozen=True)
class Guesses:
    """How often an attacker guessed right, and the guarantee that limits it.

    Parameters
    ----------
    attack : what the attacker guesses, from what.
    release : what was released.
    protected : whether something protects it.
    right, tries : the number of right guesses, and of all guesses.
    blind : the fraction of right guesses of an attacker who sees no release.
    guarantee : what limits the guesses of a label that a coin draws; None for no limit.
    trials : independent trials; None where every guess is one. Guesses from one release are not
        independent.
    """

    attack: str
    release: str
    protected: bool
    right: int
    tries: int
    blind: float
    guarantee: Cost | None = None
    trials: int | None = None


LabelAttack = Callable[["Protocol", AttackSizes, int], Iterator[Guesses]]
"""An attack on a protocol's messages, from sizes and a seed; its first rows are exact releases."""


@dataclass(frozen=True)
class AuditTrial:
    """A mechanism on which the audit itself is tried.

    Parameters
    ----------
    topic : one of ``TOPICS``.
    name : what it is.
    broken : whether it has a mistake.
    protocol : what it declares.
    noise : what it draws instead of the noise that it should draw.
    records : of its one client.
    system : whether it draws from the operating system: slowly and never the same, so that an
        attack on it is a control only, and not judged by how near it comes to what is declared.
    """

    topic: str
    name: str
    broken: bool
    protocol: Protocol
    noise: doubles.NoiseMaker = doubles.simulated
    records: int = 4
    system: bool = False


@dataclass(frozen=True)
class SelfTestCases:
    """What a protocol adds to the audit's self-test.

    Parameters
    ----------
    trials : sound mechanisms, and the same with a mistake each.
    attacked : protocols whose exact releases the attacks on labels must see through.
    """

    trials: tuple[AuditTrial, ...] = ()
    attacked: tuple[Protocol, ...] = ()


def synthetic_records(records: int, seed: int, positive_fraction: float) -> tuple[Floats, Labels]:
    """Binormal scores and labels in random order."""
    positives = round(records * positive_fraction)
    rng = np.random.default_rng([seed, DATA])
    scores, labels = binormal_scores(
        positives, records - positives, AUC, seed=int(rng.integers(2**32))
    )
    order = rng.permutation(records)
    return scores[order], labels[order]


REPEATS = 2500
"""Repetitions of a run by which its errors are judged: their standard deviation is then known to
1.4 %."""


@dataclass(frozen=True)
class LawTraits:
    """Which laws a protocol does not obey, each with the reason, and how the others run.

    A law applies where its text is empty. All apply by default.

    Parameters
    ----------
    indivisible : why a batch does not answer as its clients do one at a time.
    unordered : why the order of clients and records changes the figure.
    inexact : why a run without noise does not give ``Protocol.noiseless_value``.
    unmeasured_loss : why the privacy loss of a reply cannot be read from the noise that was drawn.
    few_records : why intervals cover less often on few records.
    unforecast : why what is forecast is not the error of these settings.
    loose : why the declared cost is larger than what a step spends.
    keeps_state : whether later steps read what clients noted, so that the privacy law has to keep
        their notes.
    min_clients : the fewest clients of a session.
    batches : the numbers of clients at a time that must give the same figure.
    copies : how many copies of each record the law on exactness takes.
    tolerance : by how much an exact figure may be off.
    spread : by how much the figures of two runs without noise may differ, where ciphertexts have
        errors.
    """

    indivisible: str = ""
    unordered: str = ""
    inexact: str = ""
    unmeasured_loss: str = ""
    few_records: str = ""
    unforecast: str = ""
    loose: str = ""
    keeps_state: bool = False
    min_clients: int = 1
    batches: tuple[int, ...] = (1, 2, 3)
    copies: int = 1
    tolerance: float = 1e-9
    spread: float = 0.0


@dataclass(frozen=True)
class ErrorCase:
    """A configuration whose stated errors and intervals are compared with those of many runs.

    Parameters
    ----------
    protocol : the configuration.
    repeats : how often it runs.
    noticed : whether noise that is 30 % off must fail the comparison.
    """

    protocol: Protocol
    repeats: int = REPEATS
    noticed: bool = False
