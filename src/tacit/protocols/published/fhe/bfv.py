"""The encrypted AUC in exact integers (Baykara et al. 2024): both sides of a BFV evaluation.

**Checks that a malicious aggregator does not pass.** Spec section 3b, in a field. Counts are
multiplied by r3..r10, split into additive shares of the field's size, permuted, and masked at every
coefficient by masks that sum to zero over the parties. Of the answer, parties recover
``A = c X + u``, ``B = c Y + v`` and ``G = c Z + w``, with the aggregator's c and the parties' small
perturbations u, v, w. Both runs, over different primes with independent secrets, must give the same
A, B and G.

An aggregator cannot read ciphertexts. It can evaluate polynomials of degree at most 2 in their
contents (more leaves no noise budget), chosen without knowledge of the secrets. Three arguments
cover these:

- The tag is correct only if every party's polynomial was added exactly once: the parties' shares of
  the tag are uniform and sum to it. A wrong sum passes with probability at most 2 / t
  (Schwartz-Zippel), t about 2^60.
- If an aggregator scales or shifts numbers differently, or by anything but one c, there is a
  multiple of ``r3 / r5`` or of another independent multiplier in A, B or G. A run then gives a
  uniform residue. With probability at most 4 / t it agrees with the other run's, and is small. The
  half-range is bound to the denominator as the numerator is: ``r9 r4`` times the one plus
  ``r10 r6`` times the other. Products of counts of different cells, which carry the right
  multipliers, are in coefficients of the square that hold at least J / 2 products of independent
  slots (the tests count them), most of which have a share among their factors.
- One c that wraps around both primes alike: all pairs ``(c X, c Y)`` modulo ``t t'`` form a lattice
  of determinant ``t t' > 2^119``. A pair in the accepted square of side 2^58 that is not parallel
  to ``(X, Y)``, itself shorter than 2^48, would span an area below that: there is none. With a
  parallel pair c is small, and ``c Z`` with it.

So a forged AUC, or half-range, is accepted with probability below 2^-57 an attempt, and a session
has one attempt with each party. The aggregator can still choose the size of c, and with it the
weight of the parties' perturbations: parties refuse an answer that these may have moved by more
than 2^-20 of the denominator (``Scale.area``). The checks do not detect a change without effect,
such as a change to the copies of a count that is zero at all parties: acceptance then shows the
aggregator that it changed such a count, in both runs.

An aggregator that could scale single slots, which this packing gives no means to, would have to
guess the slots of a threshold in both runs: ``(S! (S N - S)! / (S N)!)^2`` (Baykara et al. 2024,
appendix C), N counting the totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import shake_256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Flags, Integers
from tacit.crypto.homomorphic import schemes
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.homomorphic.keys import key_seed, run_seed
from tacit.protocols.encrypted.masked_scheme import Certain, Products
from tacit.protocols.published.fhe import packing

RUNS = 2
SHARES = 4
"""S, of each count in a checked run."""
MULTIPLIERS = 8
Elements = NDArray[np.object_]
"""Field elements as Python's integers, whose products do not overflow."""


@dataclass(frozen=True, eq=False, repr=False)
class Checks:
    """The secrets of a run, which all parties derive and the aggregator does not know.

    Parameters
    ----------
    seed : 32 secret bytes of this session and run.
    modulus : t, the run's prime.
    multipliers : r3 to r10, independent and not 0.
    tag : the value that the answer must have at the position that no product reaches.
    bits : of each threshold and of the totals, whether F is split instead of T and of the positives
        inside the cells; shape (N + 1,).
    weights, offsets : of the shares of T or F, and of the positives inside; each row of weights
        sums to 1, of offsets to 0; shape (2, N + 1, S).
    order : the slot of every share, shape ((N + 1) S,).
    """

    seed: bytes
    modulus: int
    multipliers: tuple[int, ...]
    tag: int
    bits: Flags
    weights: Elements
    offsets: Elements
    order: Integers

    @classmethod
    def derive(cls, seed: bytes, run: int, thresholds: int) -> Checks:
        """The secrets of a run.

        Examples
        --------
        >>> checks = Checks.derive(bytes(32), run=0, thresholds=10)
        >>> set((checks.weights.sum(axis=-1) % checks.modulus).ravel())
        {1}
        """
        modulus, groups = schemes.PLAIN_MODULI[run], thresholds + 1
        split = [_elements(seed, label, 2 * groups * SHARES, modulus) for label in (b"ws", b"os")]
        weights, offsets = (_summing(part.reshape(2, groups, SHARES), modulus) for part in split)
        weights[..., -1] = (weights[..., -1] + 1) % modulus
        multipliers = 1 + _elements(seed, b"multipliers", MULTIPLIERS, modulus - 1)
        return cls(
            seed,
            modulus,
            tuple(int(each) for each in multipliers),
            int(_elements(seed, b"tag", 1, modulus)[0]),
            (_words(seed, b"bits", groups) & np.uint64(1)).astype(np.bool_),
            weights,
            offsets,
            np.argsort(_words(seed, b"order", groups * SHARES)).astype(np.int64),
        )

    @property
    def layout(self) -> packing.Layout:
        """The positions of all numbers in a polynomial."""
        return packing.Layout(self.order.size)

    def polynomial(
        self, counts: packing.Counts, extra: Products, party: int, parties: int
    ) -> schemes.Words:
        """The polynomial that a party encrypts.

        Parameters
        ----------
        counts : the party's counts.
        extra : the party's perturbations, the same in both runs.
        party : the party's index.
        parties : K.
        """
        layout, modulus = self.layout, self.modulus
        r3, r4, r5, r6, r7, r8, r9, r10 = self.multipliers
        positives, negatives = int(counts.positives), int(counts.negatives)
        first = _scaled(counts.rising, r3, positives * r5) % modulus
        second = _scaled(counts.falling, r4, negatives * r6) % modulus
        inside = _scaled(counts.inside, r9, positives * r10) % modulus
        terms = np.zeros(schemes.DEGREE, dtype=object)
        slots = self._slots(first, second, inside, party == 0)
        terms[layout.rising()], terms[layout.falling()], terms[layout.inside()] = slots
        terms[list(layout.totals)] = -positives * r7, negatives * r8
        u, v, w = extra
        party_tag = self.tag if party == 0 else 0
        added = r3 * r4 * u + r5 * r6 * v, r7 * r8 * v, r9 * r4 * w + r10 * r6 * v, party_tag
        terms[list(layout.positions)] = added
        terms[layout.used] += self._mask(party, parties)
        return (terms % modulus).astype(np.uint64)

    def decrypted(self, values: list[int]) -> Products:
        """The scaled numbers of an answer's four coefficients.

        Raises
        ------
        CheatingError : where the tag is not the run's.
        """
        if values[packing.TAG] != self.tag:
            raise packing.CheatingError(
                "the answer is refused: it is not made of every party's counts of this run, once"
            )
        r3, r4, r5, r6, r7, r8, r9, r10 = self.multipliers
        denominator = self._divided(values[1], r7 * r8)
        numerator = self._divided(values[0] - r5 * r6 * denominator, r3 * r4)
        tied = self._divided(values[2] - r10 * r6 * denominator, r9 * r4)
        return Products(numerator, denominator, tied)

    def _divided(self, number: int, divisor: int) -> int:
        """The quotient in the field."""
        return number * pow(divisor, -1, self.modulus) % self.modulus

    def _slots(self, first: Elements, second: Elements, inside: Elements, leads: bool) -> Elements:
        """Shares of one factor and copies of the other, permuted, with one party's offsets."""
        side = self.bits[:, None]
        left, right, third = (
            np.where(
                side == swapped,
                (factor[:, None] * self.weights[part] + leads * self.offsets[part]) % self.modulus,
                factor[:, None],
            )
            for factor, swapped, part in ((first, False, 0), (second, True, 0), (inside, False, 1))
        )
        slots = np.empty((3, left.size), dtype=object)
        slots[:, self.order] = left.ravel(), right.ravel(), third.ravel()
        return slots

    def _mask(self, party: int, parties: int) -> Elements:
        """Masks that sum to zero over all parties, and are uniform for any fewer of them.

        The parties form a ring, with a uniform vector between any two neighbours. A party's mask is
        the difference of the two vectors next to it.
        """
        sides = [b"mask %d" % index for index in (party, (party + 1) % parties)]
        size = self.layout.used.size
        vector, next_vector = (_elements(self.seed, side, size, self.modulus) for side in sides)
        return vector - next_vector


def agreed(run_numbers: list[Products]) -> Products:
    """The numbers on which all runs agree.

    Raises
    ------
    CheatingError : where they differ.
    """
    if any(pair != run_numbers[0] for pair in run_numbers[1:]):
        raise packing.CheatingError(
            "the answer is refused: the two runs disagree, so the aggregator did not compute as "
            "agreed"
        )
    return run_numbers[0]


def _words(seed: bytes, label: bytes, count: int) -> schemes.Words:
    """Uniform 64-bit words of a seed, for one purpose."""
    return np.frombuffer(shake_256(seed + label).digest(8 * count), dtype="<u8")


def _elements(seed: bytes, label: bytes, count: int, modulus: int) -> Elements:
    return schemes.residues(_words(seed, label, count), modulus).astype(object)


def _summing(shares: Elements, modulus: int) -> Elements:
    """Rows with the last entry replaced so that they sum to 0."""
    summing: Any = shares.copy()
    summing[..., -1] = -summing[..., :-1].sum(axis=-1) % modulus
    return summing


def _scaled(counts: Integers, multiplier: int, total: int) -> Elements:
    """Counts times a multiplier, followed by the totals' factor, shape (N + 1,)."""
    return np.append(counts.astype(object) * multiplier, total)


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
    perturbed : whether answers are perturbed.
    """

    thresholds: int
    scale: packing.Scale
    checked: bool
    perturbed: bool

    @property
    def runs(self) -> int:
        """The number of runs: two with checks, else one for each plain modulus."""
        return RUNS if self.checked else self.scale.moduli

    @property
    def layout(self) -> packing.Layout:
        """The positions of all numbers in a polynomial."""
        return packing.Layout((self.thresholds + 1) * SHARES if self.checked else self.thresholds)

    def perturbations(self, most: int, by_parties: bool) -> Products:
        """Uniform numbers from 0 to ``most``, or 0 where the other side perturbs, or none does.

        The parties perturb a checked run, each by its part, and the aggregator an unchecked one.
        """
        last = most if self.perturbed and self.checked == by_parties else 0
        return Products(*(packing.uniform_below(last + 1) for _ in range(packing.TAG)))


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
    secret: bytes = field(repr=False)
    session: bytes
    parties: int

    def evaluation_keys(self) -> list[bytes]:
        """The evaluation keys for the aggregator; both runs use the same ones."""
        return self._secret_key(0).evaluation_keys()

    def uploads(self, counts: packing.Counts, parties: Sequence[int]) -> list[list[bytes]]:
        """The ciphertexts of every party of a batch, one for each run.

        All ciphertexts of a run are made before the next run begins, since making a key takes the
        most time.
        """
        part = self.scheme.scale.width // self.parties
        extras = [self.scheme.perturbations(part, by_parties=True) for _ in parties]
        uploads: list[list[bytes]] = [[] for _ in parties]
        for run in range(self.scheme.runs):
            secret_key, modulus = self._secret_key(run), schemes.bfv_parameters(run).plain_modulus
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
        return self.scheme.scale.area(numbers, self.scheme.perturbed)

    def checks(self, run: int) -> Checks:
        """The secrets of a checked run."""
        seed = run_seed(self.secret, self.session, run)
        return Checks.derive(seed, run, self.scheme.thresholds)

    def _numbers(self, run: int, answer: bytes) -> Products:
        positions = self.scheme.layout.positions
        if self.scheme.checked:
            return self.checks(run).decrypted(self._secret_key(run).decrypted(answer, positions))
        return Products(*self._secret_key(run).decrypted(answer, positions[: packing.TAG]))

    def _secret_key(self, run: int) -> schemes.BfvSecretKey:
        return schemes.BfvSecretKey(
            schemes.bfv_parameters(run), key_seed(self.secret, self.session)
        )


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
        extra = self.scheme.perturbations(self.scheme.scale.width - 1, by_parties=False)
        answers = []
        for run in range(runs):
            evaluator = schemes.BfvEvaluator(schemes.bfv_parameters(run), self.keys)
            total = evaluator.total([each[run] for each in uploads])
            mask = self.mask(run, extra)
            answers.append(evaluator.answer(total, multiplier, mask, self.scheme.checked))
        return answers

    def mask(self, run: int, extra: Products = NOTHING) -> schemes.Words:
        """Uniform numbers at every coefficient but those of the answer, shape (n,).

        The mask is a plaintext. Adding it does not change a ciphertext's noise, which the fresh
        noise hides; it makes the other coefficients uniform for every party that decrypts.

        Parameters
        ----------
        run : which plain modulus.
        extra : the aggregator's perturbations; 0 in a checked run, where the parties perturb.
        """
        modulus = schemes.bfv_parameters(run).plain_modulus
        mask = schemes.random_residues(schemes.DEGREE, modulus).copy()
        positions = list(self.scheme.layout.positions)
        mask[positions] = 0
        mask[positions[: packing.TAG]] = [number % modulus for number in extra]
        return mask


def joined(run_numbers: Sequence[Products]) -> Products:
    """The numbers whose residues modulo each run's prime are given.

    Examples
    --------
    >>> big, small = 2**100 + 7, 5
    >>> residues = [Products(big % prime, small, big % prime) for prime in schemes.PLAIN_MODULI]
    >>> joined(residues) == Products(big, small, big)
    True
    """
    return Products(*(_joined_number(residues) for residues in zip(*run_numbers, strict=True)))


def _joined_number(residues: Sequence[int]) -> int:
    """The least number with these residues (Chinese remainder theorem)."""
    number, modulus = residues[0], schemes.PLAIN_MODULI[0]
    for prime, residue in zip(schemes.PLAIN_MODULI[1:], residues[1:], strict=False):
        number += modulus * ((residue - number) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    return number


def plain_polynomial(layout: packing.Layout, counts: packing.Counts, modulus: int) -> schemes.Words:
    """The polynomial of one party's counts, for an aggregator that follows the protocol."""
    polynomial = np.zeros(schemes.DEGREE, dtype=np.uint64)
    polynomial[layout.rising()] = counts.rising
    polynomial[layout.falling()] = counts.falling
    polynomial[layout.inside()] = counts.inside
    polynomial[list(layout.totals)] = -int(counts.positives) % modulus, counts.negatives
    return polynomial
