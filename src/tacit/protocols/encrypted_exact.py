"""The encrypted AUC in exact integers (paper 3): both sides of a BFV evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.crypto.homomorphic import HomomorphicError
from tacit.crypto.homomorphic_bfv import (
    DEGREE,
    PLAIN_MODULI,
    BfvEvaluator,
    BfvKeyHolder,
    Words,
    bfv_parameters,
    random_residues,
)
from tacit.crypto.homomorphic_keys import key_seed, run_seed
from tacit.protocols.encrypted_checks import RUNS, CheatingError, Checks, agreed
from tacit.protocols.encrypted_packing import (
    TAG,
    Certain,
    Counts,
    Layout,
    Numbers,
    Scale,
    below,
)

NOTHING = Numbers(0, 0, 0)
"""No perturbation."""


@dataclass(frozen=True)
class ExactScheme:
    """What parties and aggregator agree on.

    Parameters
    ----------
    thresholds : N.
    scale : how answers are scaled and perturbed.
    checked : whether the aggregator may be malicious: two runs with checks, instead of one.
    shares : S, of each count in a checked run.
    perturbed : whether answers are perturbed.
    """

    thresholds: int
    scale: Scale
    checked: bool
    shares: int
    perturbed: bool

    @property
    def runs(self) -> int:
        """How often everything is done: with checks, or modulo each of several primes."""
        return RUNS if self.checked else self.scale.moduli

    @property
    def layout(self) -> Layout:
        """Where everything stands in a polynomial."""
        return Layout((self.thresholds + 1) * self.shares if self.checked else self.thresholds)


@dataclass(frozen=True, eq=False)
class ExactParty:
    """What all parties of a session share, and the aggregator does not have.

    Parameters
    ----------
    scheme : what was agreed.
    secret, session : the session's secret and name.
    parties : K.
    """

    scheme: ExactScheme
    secret: bytes
    session: bytes
    parties: int

    def evaluation_keys(self) -> list[bytes]:
        """What the aggregator is given; one set serves both runs."""
        return self._holder(0).evaluation_keys()

    def uploads(self, counts: Counts, parties: Sequence[int]) -> list[list[bytes]]:
        """The ciphertexts of every party of a batch, one a run.

        Each run's are encrypted before the next begins, since making a key takes the longest.
        """
        extras = [Numbers(self._extra(), self._extra(), self._extra()) for _ in parties]
        made: list[list[bytes]] = [[] for _ in parties]
        for run in range(self.scheme.runs):
            holder, modulus = self._holder(run), bfv_parameters(run).plain_modulus
            checks = self.checks(run) if self.scheme.checked else None
            for place, party in enumerate(parties):
                own = counts.of(place)
                polynomial = (
                    plain_polynomial(self.scheme.layout, own, modulus)
                    if checks is None
                    else checks.polynomial(own, extras[place], party, self.parties)
                )
                made[place].append(holder.encrypted(polynomial))
        return made

    def opened(self, answers: Sequence[bytes]) -> Certain:
        """The AUC, and how far the exact one may be from it.

        Raises
        ------
        HomomorphicError : for bytes that are no answers.
        CheatingError : where the answers fail a check.
        DataError : where a class is absent.
        """
        if len(answers) != self.scheme.runs:
            raise HomomorphicError(f"there are {self.scheme.runs} answers, got {len(answers)}")
        found = [self._numbers(run, answer) for run, answer in enumerate(answers)]
        numbers = agreed(found) if self.scheme.checked else joined(found)
        try:
            return self.scheme.scale.area(numbers, self.scheme.perturbed)
        except OverflowError as error:
            raise CheatingError(str(error)) from None

    def checks(self, run: int) -> Checks:
        """The secrets of a checked run."""
        seed = run_seed(self.secret, self.session, run)
        return Checks.derive(seed, run, self.scheme.thresholds, self.scheme.shares)

    def _numbers(self, run: int, answer: bytes) -> Numbers:
        places = self.scheme.layout.places
        if self.scheme.checked:
            return self.checks(run).opened(self._holder(run).decrypted(answer, places))
        return Numbers(*self._holder(run).decrypted(answer, places[:TAG]))

    def _holder(self, run: int) -> BfvKeyHolder:
        return BfvKeyHolder(bfv_parameters(run), key_seed(self.secret, self.session))

    def _extra(self) -> int:
        """A party's own part of a perturbation, of which the aggregator has none to give."""
        share = self.scheme.scale.width // self.parties
        return below(share + 1) if self.scheme.checked and self.scheme.perturbed else 0


@dataclass(frozen=True, eq=False)
class ExactAggregator:
    """The aggregator: evaluation keys, ciphertexts, and secrets of its own.

    Parameters
    ----------
    scheme : what was agreed.
    keys : the evaluation keys.
    """

    scheme: ExactScheme
    keys: Sequence[bytes]

    def answers(self, uploads: Sequence[Sequence[bytes]]) -> list[bytes]:
        """The answer to every run, under one secret multiplier.

        Parameters
        ----------
        uploads : a sequence of one ciphertext a run, for every party.

        Raises
        ------
        HomomorphicError : for bytes that are no ciphertexts.
        """
        runs = self.scheme.runs
        if any(len(upload) != runs for upload in uploads):
            raise HomomorphicError(f"every party sends {runs} ciphertexts")
        multiplier = self.scheme.scale.multiplier()
        width = self.scheme.scale.width if self.scheme.perturbed else 1
        extra = NOTHING if self.scheme.checked else Numbers(*(below(width) for _ in range(TAG)))
        answers = []
        for run in range(runs):
            evaluator = BfvEvaluator(bfv_parameters(run), self.keys)
            total = evaluator.total([each[run] for each in uploads])
            mask = self.mask(run, extra)
            answers.append(evaluator.answer(total, multiplier, mask, self.scheme.checked))
        return answers

    def mask(self, run: int, extra: Numbers = NOTHING) -> Words:
        """Uniform numbers at every coefficient but those of the answer, shape (n,).

        Adding a plaintext does not change a ciphertext's noise, which the fresh noise hides; it
        makes the other coefficients uniform, whoever decrypts.

        Parameters
        ----------
        run : which plain modulus.
        extra : the aggregator's own perturbations; in a checked run the parties bring them, and the
            aggregator's are 0.
        """
        modulus = bfv_parameters(run).plain_modulus
        mask = random_residues(DEGREE, modulus).copy()
        places = list(self.scheme.layout.places)
        mask[places] = 0
        mask[places[:TAG]] = [number % modulus for number in extra]
        return mask


def joined(found: Sequence[Numbers]) -> Numbers:
    """The numbers whose residues modulo each run's prime are given.

    Examples
    --------
    >>> big, small = 2**100 + 7, 5
    >>> residues = [Numbers(big % prime, small, big % prime) for prime in PLAIN_MODULI]
    >>> joined(residues) == Numbers(big, small, big)
    True
    """
    return Numbers(*(_joined_number(residues) for residues in zip(*found, strict=True)))


def _joined_number(residues: Sequence[int]) -> int:
    """The least number with these residues (Chinese remainder theorem)."""
    number, modulus = residues[0], PLAIN_MODULI[0]
    for prime, residue in zip(PLAIN_MODULI[1:], residues[1:], strict=False):
        number += modulus * ((residue - number) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    return number


def plain_polynomial(layout: Layout, counts: Counts, modulus: int) -> Words:
    """One party's counts where the aggregator follows the protocol."""
    held = np.zeros(DEGREE, dtype=np.uint64)
    held[layout.rising()] = counts.rising
    held[layout.falling()] = counts.falling
    held[layout.inside()] = counts.inside
    held[list(layout.totals)] = -int(counts.positives[0]) % modulus, counts.negatives[0]
    return held
