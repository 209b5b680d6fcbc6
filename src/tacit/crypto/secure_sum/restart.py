"""Another attempt at a secure sum: statements that the last one will never be unmasked.

The difference of two sums over different clients shows what single clients added. So a new attempt
begins only when the last one can no longer be unmasked: its clients erase their secrets, and sign
that they revealed nothing and never will. Every client verifies these statements itself.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from tacit.crypto.errors import MalformedError, ReplayError, TooFewError, UnknownClientError
from tacit.crypto.identities import Identity
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.consistency import NO_DIGEST, check_restart, ended_statement
from tacit.crypto.secure_sum.messages import DIGEST_BYTES, ENDED_BYTES, Kind
from tacit.crypto.secure_sum.terms import SumTerms


def ended_record(identity: Identity, terms: SumTerms, digest: bytes) -> bytes:
    """A client's signed statement that it reveals nothing in this attempt or an earlier one."""
    statement = ended_statement(terms.digest, terms.attempt, digest)
    return _packed(digest) + identity.sign(statement)


def _packed(digest: bytes) -> bytes:
    return bytes([bool(digest)]) + digest.ljust(DIGEST_BYTES, b"\0")


def check_ended(
    terms: SumTerms, restart: bytes, announced: AbstractSet[int], digest: bytes
) -> None:
    """Check that the attempt before these terms cannot be unmasked any more.

    Parameters
    ----------
    terms : those of the attempt that is to begin.
    restart : the server's message with the statements.
    announced : who was announced to this client in the last attempt; all clients where none was.
    digest : what this client signed then, or ``NO_DIGEST``.

    Raises
    ------
    ForgedError : for a statement that the client in whose name it is did not sign.
    RefusedError, TooFewError : when not enough clients gave the last attempt up.
    SumError : for any other message.
    """
    body = messages.read(restart, Kind.RESTART, terms.session, messages.EVERYBODY)
    records = messages.unpack_records(body, ENDED_BYTES, terms.clients)
    last = replace(terms, attempt=terms.attempt - 1)
    stated = {index: _stated(last, index, record) for index, record in records.items()}
    check_restart(terms.rule, announced, digest, stated)


def _stated(terms: SumTerms, index: int, record: bytes) -> bytes:
    """The digest in a verified statement."""
    digest = record[1 : 1 + DIGEST_BYTES] if record[0] else NO_DIGEST
    if record[: 1 + DIGEST_BYTES] != _packed(digest):
        raise MalformedError(f"the statement of client {index} holds no digest, but bytes of one")
    statement = ended_statement(terms.digest, terms.attempt, digest)
    signature = record[1 + DIGEST_BYTES :]
    terms.roster.verify(index, statement, signature, "statement")
    return digest


class SumRestart:
    """The server's side between two attempts: it collects statements.

    Parameters
    ----------
    terms : those of the attempt that failed.
    """

    def __init__(self, terms: SumTerms) -> None:
        self._last = terms
        self._came: dict[int, bytes] = {}

    @property
    def terms(self) -> SumTerms:
        """Those of the next attempt."""
        return replace(self._last, attempt=self._last.attempt + 1)

    def receive(self, sender: int, message: bytes) -> None:
        """Take a client's statement.

        Raises
        ------
        UnknownClientError : for a sender outside the roster, or another client's statement.
        ReplayError : for a second statement of the sender.
        ForgedError : for a statement that the sender did not sign.
        SumError : for any other message.
        """
        if not 0 <= sender < self._last.clients:
            raise UnknownClientError(
                f"a client's index must be below {self._last.clients}, got {sender}"
            )
        record = messages.read(message, Kind.ENDED, self._last.session, sender)
        if len(record) != ENDED_BYTES:
            raise MalformedError(f"a statement has {ENDED_BYTES} bytes, got {len(record)}")
        if sender in self._came:
            raise ReplayError(f"client {sender} sends ended a second time")
        _stated(self._last, sender, record)
        self._came[sender] = record

    def message(self) -> bytes:
        """The statements that came, for every client.

        Raises
        ------
        TooFewError : when fewer than tau came.
        """
        if len(self._came) < (needed := self._last.rule.certificate):
            raise TooFewError(
                f"{needed} clients must give up before another attempt, got {len(self._came)}"
            )
        body = messages.pack_records(self._came)
        return messages.write(Kind.RESTART, self._last.session, messages.EVERYBODY, body)
