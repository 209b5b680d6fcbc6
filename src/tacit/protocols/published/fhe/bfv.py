"""The encrypted AUC in exact integers (Baykara et al. 2024): both sides of a BFV evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.crypto.homomorphic import bfv
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.homomorphic.keys import key_seed, run_seed
from tacit.protocols.encrypted.counts import Certain, Counts, Products
from tacit.protocols.published.fhe.checks import RUNS, CheatingError, Checks, agreed
from tacit.protocols.published.fhe.packing import TAG, Layout, Scale, uniform_below

NOTHING = Products(0, 0, 0)
"""No perturbation."""


@dataclass(frozen=True)
class ExactScheme:
    """The settings on which parties and aggregator agree.

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
        """The number of runs: two with checks, else one for each plain modulus."""
        return RUNS if self.checked else self.scale.moduli

    @property
    def layout(self) -> Layout:
        """The positions of all numbers in a polynomial."""
        return Layout((self.thresholds + 1) * self.shares if self.checked else self.thresholds)


@dataclass(frozen=True, eq=False)
class ExactParty:
    """What all parties of a session know, and the aggregator does not.

    Parameters
    ----------
    scheme : the agreed settings.
    secret, session : the session's secret and name.
    parties : K.
    """

    scheme: ExactScheme
    secret: bytes
    session: bytes
    parties: int

    def evaluation_keys(self) -> list[bytes]:
        """The evaluation keys for the aggregator; both runs use the same ones."""
        return self._secret_key(0).evaluation_keys()

    def uploads(self, counts: Counts, parties: Sequence[int]) -> list[list[bytes]]:
        """The ciphertexts of every party of a batch, one for each run.

        All ciphertexts of a run are made before the next run begins, since making a key takes the
        most time.
        """
        extras = [Products(self._extra(), self._extra(), self._extra()) for _ in parties]
        uploads: list[list[bytes]] = [[] for _ in parties]
        for run in range(self.scheme.runs):
            secret_key, modulus = self._secret_key(run), bfv.bfv_parameters(run).plain_modulus
            checks = self.checks(run) if self.scheme.checked else None
            for index, party in enumerate(parties):
                client_counts = counts.of(index)
                polynomial = (
                    plain_polynomial(self.scheme.layout, client_counts, modulus)
                    if checks is None
                    else checks.polynomial(client_counts, extras[index], party, self.parties)
                )
                uploads[index].append(secret_key.encrypted(polynomial))
        return uploads

    def decrypted(self, answers: Sequence[bytes]) -> Certain:
        """The AUC, and how far the exact one may be from it.

        Raises
        ------
        HomomorphicError : for bytes that are not answers.
        CheatingError : where the answers fail a check.
        DataError : where a class is absent.
        """
        if len(answers) != self.scheme.runs:
            raise HomomorphicError(f"there are {self.scheme.runs} answers, got {len(answers)}")
        run_numbers = [self._numbers(run, answer) for run, answer in enumerate(answers)]
        numbers = agreed(run_numbers) if self.scheme.checked else joined(run_numbers)
        try:
            return self.scheme.scale.area(numbers, self.scheme.perturbed)
        except OverflowError as error:
            raise CheatingError(str(error)) from None

    def checks(self, run: int) -> Checks:
        """The secrets of a checked run."""
        seed = run_seed(self.secret, self.session, run)
        return Checks.derive(seed, run, self.scheme.thresholds, self.scheme.shares)

    def _numbers(self, run: int, answer: bytes) -> Products:
        positions = self.scheme.layout.positions
        if self.scheme.checked:
            return self.checks(run).decrypted(self._secret_key(run).decrypted(answer, positions))
        return Products(*self._secret_key(run).decrypted(answer, positions[:TAG]))

    def _secret_key(self, run: int) -> bfv.BfvSecretKey:
        return bfv.BfvSecretKey(bfv.bfv_parameters(run), key_seed(self.secret, self.session))

    def _extra(self) -> int:
        """One party's part of a perturbation, where the parties perturb the answer."""
        part = self.scheme.scale.width // self.parties
        return uniform_below(part + 1) if self.scheme.checked and self.scheme.perturbed else 0


@dataclass(frozen=True, eq=False)
class ExactAggregator:
    """The aggregator: evaluation keys, ciphertexts, and its secrets.

    Parameters
    ----------
    scheme : the agreed settings.
    keys : the evaluation keys.
    """

    scheme: ExactScheme
    keys: Sequence[bytes]

    def answers(self, uploads: Sequence[Sequence[bytes]]) -> list[bytes]:
        """The answer to every run, under one secret multiplier.

        Parameters
        ----------
        uploads : for every party, its ciphertexts, one for each run.

        Raises
        ------
        HomomorphicError : for bytes that are not ciphertexts.
        """
        runs = self.scheme.runs
        if any(len(upload) != runs for upload in uploads):
            raise HomomorphicError(f"every party sends {runs} ciphertexts")
        multiplier = self.scheme.scale.multiplier()
        width = self.scheme.scale.width if self.scheme.perturbed else 1
        extra = (
            NOTHING
            if self.scheme.checked
            else Products(*(uniform_below(width) for _ in range(TAG)))
        )
        answers = []
        for run in range(runs):
            evaluator = bfv.BfvEvaluator(bfv.bfv_parameters(run), self.keys)
            total = evaluator.total([each[run] for each in uploads])
            mask = self.mask(run, extra)
            answers.append(evaluator.answer(total, multiplier, mask, self.scheme.checked))
        return answers

    def mask(self, run: int, extra: Products = NOTHING) -> bfv.Words:
        """Uniform numbers at every coefficient but those of the answer, shape (n,).

        The mask is a plaintext. Adding it does not change a ciphertext's noise, which the fresh
        noise hides; it makes the other coefficients uniform for every party that decrypts.

        Parameters
        ----------
        run : which plain modulus.
        extra : the aggregator's perturbations; 0 in a checked run, where the parties perturb.
        """
        modulus = bfv.bfv_parameters(run).plain_modulus
        mask = bfv.random_residues(bfv.DEGREE, modulus).copy()
        positions = list(self.scheme.layout.positions)
        mask[positions] = 0
        mask[positions[:TAG]] = [number % modulus for number in extra]
        return mask


def joined(run_numbers: Sequence[Products]) -> Products:
    """The numbers whose residues modulo each run's prime are given.

    Examples
    --------
    >>> big, small = 2**100 + 7, 5
    >>> residues = [Products(big % prime, small, big % prime) for prime in bfv.PLAIN_MODULI]
    >>> joined(residues) == Products(big, small, big)
    True
    """
    return Products(*(_joined_number(residues) for residues in zip(*run_numbers, strict=True)))


def _joined_number(residues: Sequence[int]) -> int:
    """The least number with these residues (Chinese remainder theorem)."""
    number, modulus = residues[0], bfv.PLAIN_MODULI[0]
    for prime, residue in zip(bfv.PLAIN_MODULI[1:], residues[1:], strict=False):
        number += modulus * ((residue - number) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    return number


def plain_polynomial(layout: Layout, counts: Counts, modulus: int) -> bfv.Words:
    """The polynomial of one party's counts, for an aggregator that follows the protocol."""
    polynomial = np.zeros(bfv.DEGREE, dtype=np.uint64)
    polynomial[layout.rising()] = counts.rising
    polynomial[layout.falling()] = counts.falling
    polynomial[layout.inside()] = counts.inside
    polynomial[list(layout.totals)] = -int(counts.positives[0]) % modulus, counts.negatives[0]
    return polynomial
