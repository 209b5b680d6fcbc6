"""What honest clients answer: ``tacit.crypto.secure_sum.consistency``, called for each of them.

To leave out a part of the rule, this module does not call a function, or calls it with numbers that
it cannot refuse; the rule itself has no switch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from tacit.crypto.identities import SumError
from tacit.crypto.secure_sum.consistency import (
    NO_DIGEST,
    ListRule,
    check_certificate,
    check_delivery,
    check_lists,
    check_restart,
    digest_of,
)
from tacit.crypto.secure_sum.graph import Indices
from tacit_studies.secure_sums.setting import Bools, Part, Setting
from tacit_studies.secure_sums.strategy import Attempt, Story
from tacit_studies.secure_sums.view import determined_sums

Members = frozenset[int]
Lists = tuple[bytes, bytes, bytes]
TERMS = bytes(32)
"""Placeholder for the digest of the terms: a search is about a single sum."""


@dataclass(frozen=True, eq=False)
class Masked:
    """What clients did until they sent their masked vectors.

    Parameters
    ----------
    sent : shape (K,), who sent a masked vector.
    partners : shape (K, K), row i is whose pair masks client i added; empty where it sent nothing.
    announced : the clients that shared, as announced to each client; empty where none was.
    digests : what each signed with its vector, or ``NO_DIGEST``.
    colluding : int64, shape (K,), how many colluders hold shares of each client's secrets.
    """

    sent: Bools
    partners: Bools
    announced: tuple[Members, ...]
    digests: tuple[bytes, ...]
    colluding: Indices


@dataclass(frozen=True, eq=False)
class Answers:
    """All that the server has from one attempt.

    Parameters
    ----------
    masked : what clients did until they sent their masked vectors.
    revealed : shape (K,), who revealed its shares.
    seed_shares, key_shares : int64, shape (K,), how many shares of each client's secrets the server
        has, with those that colluders hold.
    labels : int64, shape (K,), the determined sums; see ``determined_sums``.
    """

    masked: Masked
    revealed: Bools
    seed_shares: Indices
    key_shares: Indices
    labels: Indices


@dataclass(frozen=True, eq=False)
class HonestClients:
    """The honest clients of a setting. Their answers are cached, as the rule is a pure function.

    Parameters
    ----------
    setting : who they are, and what they check.
    """

    setting: Setting
    _said: dict[object, bool] = field(default_factory=dict, repr=False)
    _digests: dict[object, bytes] = field(default_factory=dict, repr=False)
    _uncut: set[object] = field(default_factory=set, repr=False)

    def answer(self, attempt: Attempt, joining: Bools | None = None, number: int = 0) -> Answers:
        """What the server gets in one attempt.

        Parameters
        ----------
        attempt : what it tells each client.
        joining : shape (K,), who takes part; None for everybody.
        number : the number of the attempt, from 0.
        """
        masked = self.mask(attempt, joining, number)
        signed = self._signed(attempt, masked)
        revealed = self._certified(attempt, signed, masked.digests) & attempt.revealing
        return self.readable_sums(masked, attempt.left, revealed)

    def mask(self, attempt: Attempt, joining: Bools | None = None, number: int = 0) -> Masked:
        """The first steps of an attempt, from advertised keys to masked vectors."""
        honest = self.setting.honest
        shared = self._shared(attempt, honest if joining is None else honest & joining)
        colluding = (attempt.around & shared[:, None] & ~honest).sum(-1)
        sent, announced = self._sent(attempt, shared)
        digests = self._signed_digests(attempt, sent, announced, number)
        return Masked(sent, attempt.delivered & sent[:, None], announced, digests, colluding)

    def readable_sums(self, masked: Masked, left: Bools, revealed: Bools) -> Answers:
        """What the revealed shares open; each client reveals the key shares of those who left.

        Parameters
        ----------
        masked : the first steps.
        left : shape (..., K, K), row i is who left, by what the server told client i.
        revealed : shape (..., K).
        """
        threshold, honest = self.setting.threshold, self.setting.honest
        shares = masked.partners | np.diag(masked.sent)
        shown = shares & revealed[..., None]
        keys = (shown & left).sum(-2) + masked.colluding
        seeds = (shown & ~left).sum(-2) + masked.colluding
        readable = masked.sent & (seeds >= threshold)
        labels = determined_sums(masked.partners, readable, ~honest | (keys >= threshold))
        return Answers(masked, revealed, seeds, keys, labels)

    def joining(self, ended: Bools, masked: Masked) -> Bools:
        """Who joins the next attempt, when these gave up the last; colluders always claim it."""
        setting = self.setting
        if Part.RESTART in setting.without:
            return setting.honest.copy()
        everybody = frozenset(range(setting.clients))
        given_up = {k: masked.digests[k] for k in np.flatnonzero(ended & setting.honest).tolist()}
        joins = np.zeros(setting.clients, dtype=np.bool_)
        for k in setting.members.tolist():
            digest, announced = (
                masked.digests[k],
                masked.announced[k] if masked.sent[k] else everybody,
            )
            digests = given_up | dict.fromkeys(setting.colluders, digest)
            joins[k] = _allowed(partial(check_restart, setting.rule, announced, digest, digests))
        return joins

    def _shared(self, attempt: Attempt, members: Bools) -> Bools:
        """Who shared its secrets: a client does if its list names it and enough others."""
        enough = self.setting.rule.min_clients
        listed = np.stack([_on(story, members.size) for story in attempt.stories])
        listed[listed.sum(-1) < enough] = False
        return members & listed[attempt.story, np.arange(members.size)]

    def _sent(self, attempt: Attempt, shared: Bools) -> tuple[Bools, tuple[Members, ...]]:
        setting = self.setting
        sent = np.zeros(setting.clients, dtype=np.bool_)
        read, announced = _reader(), [frozenset[int]()] * setting.clients
        # a share decrypts only if its owner encrypted it under the list that the receiver has
        alike = attempt.story[:, None] == attempt.story
        opens = attempt.around & (~setting.honest | (shared & alike))
        openable = ~(attempt.delivered & ~opens).any(-1)
        enough = attempt.delivered.sum(-1) + 1 >= setting.threshold
        for k in np.flatnonzero(shared & openable & enough).tolist():
            story = attempt.stories[attempt.story[k]]
            owners, sharers = read(attempt.delivered[k]), read(attempt.announced[k])
            if self.accepts_delivery(k, story, sharers, owners):
                sent[k], announced[k] = True, sharers
        return sent, tuple(announced)

    def accepts_delivery(self, k: int, story: Story, announced: Members, owners: Members) -> bool:
        """Whether client k masks its vector after these shares came."""
        if Part.DELIVERY in self.setting.without:
            return True
        rule = self.setting.rule
        return self._once(
            (k, story.transcript, announced, owners),
            lambda: check_delivery(rule, k, story.arranged, announced, owners),
        )

    def _signed_digests(
        self, attempt: Attempt, sent: Bools, announced: tuple[Members, ...], number: int
    ) -> tuple[bytes, ...]:
        digests = [NO_DIGEST] * self.setting.clients
        bound = Part.ANNOUNCED not in self.setting.without
        for k in np.flatnonzero(sent).tolist():
            listed = announced[k] if bound else frozenset[int]()
            transcript = attempt.stories[attempt.story[k]].transcript
            digests[k] = self._digest(transcript, listed, number)
        return tuple(digests)

    def _digest(self, transcript: bytes, announced: Members, number: int) -> bytes:
        known = (transcript, announced, number)
        if known not in self._digests:
            self._digests[known] = digest_of(TERMS, number, transcript, sorted(announced))
        return self._digests[known]

    def _signed(self, attempt: Attempt, masked: Masked) -> Bools:
        signed = np.zeros_like(masked.sent)
        read = _reader()
        alike = {digest: self.agreeing(masked, digest) for digest in set(masked.digests)}
        for k in np.flatnonzero(masked.sent).tolist():
            stayed, left = read(attempt.stayed[k]), read(attempt.left[k])
            story, agreeing = attempt.stories[attempt.story[k]], alike[masked.digests[k]]
            signed[k] = self.accepts_lists(k, story, masked.announced[k], stayed, left, agreeing)
        return signed

    def agreeing(self, masked: Masked, digest: bytes) -> Members:
        """Who signed this digest, or would: colluders sign any."""
        signers = {k for k, other in enumerate(masked.digests) if other == digest}
        return self.setting.colluders | signers

    def accepts_lists(
        self,
        k: int,
        story: Story,
        announced: Members,
        stayed: Members,
        left: Members,
        agreeing: Members,
    ) -> bool:
        """Whether client k signs these lists; ``agreeing`` signed its own digest, or would."""
        setting = self.setting
        signers = stayed if Part.DIGESTS in setting.without else agreeing
        message = (story.transcript, announced, stayed, left, signers)
        # whether leavers cut the ring depends on the lists only: computed once for each pair
        rule = self._ring_ignored if message in self._uncut else self._lists_rule
        accepted = self._once(
            (k, message),
            lambda: check_lists(rule, k, story.arranged, announced, stayed, left, signers),
        )
        if accepted:
            self._uncut.add(message)
        return accepted

    @cached_property
    def _lists_rule(self) -> ListRule:
        rule = self.setting.rule
        return replace(rule, window_excess=-1) if Part.WINDOWS in self.setting.without else rule

    @cached_property
    def _ring_ignored(self) -> ListRule:
        return replace(self._lists_rule, degree=self.setting.clients)

    def _certified(self, attempt: Attempt, signed: Bools, digests: tuple[bytes, ...]) -> Bools:
        groups: dict[Lists, set[int]] = {}
        for k in np.flatnonzero(signed).tolist():
            groups.setdefault(_lists(attempt, k, digests), set()).add(k)
        certified = np.zeros_like(signed)
        for signers in groups.values():
            stayed = frozenset(np.flatnonzero(attempt.stayed[min(signers)]).tolist())
            if self.accepts_certificate(stayed, frozenset(signers)):
                certified[list(signers)] = True
        return certified

    def accepts_certificate(self, stayed: Members, signers: Members) -> bool:
        """Whether lists that these honest clients signed are certified; colluders sign them too."""
        without, rule = self.setting.without, self.setting.rule
        if Part.CERTIFICATE in without:
            return True
        if Part.COLLUDERS in without:
            rule = replace(rule, colluders=0)
        helping = (signers | self.setting.colluders) & stayed
        return self._once((stayed, helping), lambda: check_certificate(rule, stayed, helping))

    def _once(self, key: object, check: Callable[[], None]) -> bool:
        if key not in self._said:
            if len(self._said) > 200_000:
                self._said.clear()
                self._uncut.clear()
            self._said[key] = _allowed(check)
        return self._said[key]


def _allowed(check: Callable[[], None]) -> bool:
    """Whether a check passes; any other error than a refusal is a fault of the search."""
    try:
        check()
    except SumError:
        return False
    return True


def _on(story: Story, clients: int) -> Bools:
    return np.isin(np.arange(clients), story.arranged)


def _lists(attempt: Attempt, k: int, digests: tuple[bytes, ...]) -> Lists:
    return digests[k], attempt.stayed[k].tobytes(), attempt.left[k].tobytes()


def _reader() -> Callable[[Bools], Members]:
    """A function that turns rows into sets, and equal rows into the same set."""
    known: dict[bytes, Members] = {}

    def read(row: Bools) -> Members:
        raw = row.tobytes()
        if raw not in known:
            known[raw] = frozenset(np.flatnonzero(row).tolist())
        return known[raw]

    return read
