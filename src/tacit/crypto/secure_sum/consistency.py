"""What a client requires of the server's lists before it signs them, and before it reveals shares.

A server that gives clients different lists could collect shares of both secrets of one
client, or choose who "left" so that the masks of a small group fall away. With K clients, of whom
at most b collude with the server, a client therefore answers only what

    tau = floor((K + b) / 2) + 1

clients signed alike. Two different lists would take ``2 (tau - b)`` honest signers; there are
``K - b`` of them, each signs one list an attempt, and ``2 tau > K + b``: one list at most is ever
certified. ``K`` and ``b`` are those of the whole agreement. Functions here are pure: the client of
a sum calls them, and so does the search that looks for strategies against them.

======================  =====================================================================
A client                only when
======================  =====================================================================
masks its vector        ``check_delivery``: the shares that it got are those of exactly its
                        neighbours among the clients that are announced as having shared
signs the lists         ``check_lists``: it is in them, they make up who was announced, enough
                        stayed, everybody who stayed signed the same digest, and those who
                        left do not cut the ring
reveals shares          ``check_certificate``: tau of those who stayed signed the same lists
joins another attempt   ``check_restart``: enough clients will never reveal in the last one
======================  =====================================================================
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256

from tacit.crypto.identities import RefusedError, TooFewError
from tacit.crypto.secure_sum.graph import Indices, certificate_size, min_in_windows, neighbours
from tacit.crypto.secure_sum.messages import pack_indices

NO_DIGEST = b""
"""Digest of a client that sent no masked vector in this attempt."""


@dataclass(frozen=True)
class ListRule:
    """The numbers by which a client judges lists.

    Parameters
    ----------
    clients : the number K of clients in the whole agreement.
    colluders : the number b of them that may collude with the server.
    min_clients : the least number of vectors in a sum.
    degree : neighbours of a client on the ring; ``clients - 1`` or more is the complete graph.
    window_excess : members of a sum that any two disjoint windows of ``degree / 2`` positions of
        the ring must exceed, so that one of them is honest.
    """

    clients: int
    colluders: int
    min_clients: int
    degree: int
    window_excess: int

    @property
    def certificate(self) -> int:
        """tau, the signatures by which lists are certified."""
        return certificate_size(self.clients, self.colluders)

    @property
    def is_complete(self) -> bool:
        """Whether each client masks with all others; then tau shares reconstruct a secret."""
        return self.degree >= self.clients - 1


def digest_of(
    terms_digest: bytes, attempt: int, adverts_transcript: bytes, announced: Collection[int]
) -> bytes:
    """The digest d of what a client knew when it masked its vector, 32 bytes.

    Parameters
    ----------
    terms_digest : 32 bytes, of all terms.
    attempt : which attempt at the sum, from 0.
    adverts_transcript : 32 bytes, of all advertised keys.
    announced : the clients that shared their secrets (U2), as the server announced.
    """
    head = b"tacit sum announced 2" + terms_digest + struct.pack("<I", attempt)
    return sha256(head + adverts_transcript + pack_indices(announced)).digest()


def announced_statement(digest: bytes) -> bytes:
    """What a client signs besides its masked vector: the digest d."""
    return b"tacit sum masked under 2" + digest


def lists_statement(digest: bytes, stayed: Collection[int], left: Collection[int]) -> bytes:
    """What a client signs once an attempt: the digest d, who stayed (U) and who left (D)."""
    lists = sha256(pack_indices(stayed) + pack_indices(left)).digest()
    return b"tacit sum lists 2" + digest + lists


def ended_statement(terms_digest: bytes, attempt: int, digest: bytes) -> bytes:
    """What a client signs when it gives up an attempt, ``digest`` being its d or ``NO_DIGEST``.

    It says: under these terms I revealed no share in this attempt or an earlier one, and shall
    reveal none.
    """
    head = b"tacit sum unrevealed 2" + terms_digest + struct.pack("<I", attempt)
    return head + bytes([bool(digest)]) + digest


def check_delivery(
    rule: ListRule,
    index: int,
    arranged: Indices,
    announced: AbstractSet[int],
    owners: Collection[int],
) -> None:
    """Check whose shares a client got, before it masks its vector.

    Parameters
    ----------
    rule : what was agreed.
    index : the client.
    arranged : all clients that advertised keys, in the order of the ring.
    announced : who is said to have shared its secrets.
    owners : whose shares came.

    Raises
    ------
    RefusedError : when the client is not announced itself, somebody without keys is, or the shares
        are not those of exactly its neighbours among the announced.
    """
    around, came = set(neighbours(arranged, index, rule.degree).tolist()), set(owners)
    _refuse({index} - announced, "sent its shares, but is not announced")
    _refuse(announced - set(arranged.tolist()), "is announced, but advertised no keys")
    _refuse(came - around, f"is no neighbour of client {index}")
    _refuse((around & announced) - came, "is announced, but its shares never came")
    _refuse(came - announced, "sent shares, but is not announced")


def _refuse(clients: AbstractSet[int], what: str) -> None:
    """Refuse an answer that these clients would be part of; the first is named."""
    if clients:
        raise RefusedError(f"client {min(clients)} {what}")


def check_lists(
    rule: ListRule,
    index: int,
    arranged: Indices,
    announced: AbstractSet[int],
    stayed: AbstractSet[int],
    left: AbstractSet[int],
    signers: Collection[int],
) -> None:
    """Check who is said to have stayed and left, before a client signs it.

    Parameters
    ----------
    rule : what was agreed.
    index : the client.
    arranged : all clients that advertised keys, in the order of the ring.
    announced : who was announced to this client as having shared its secrets (U2).
    stayed : whose masked vectors are to be summed (U).
    left : who shared its secrets and sent no masked vector (D).
    signers : the other clients whose signatures of this client's digest d it has verified.

    Raises
    ------
    RefusedError : when the lists contradict each other or what was announced, somebody who stayed
        signed another digest, or those who left cut the ring.
    TooFewError : when fewer vectors than agreed would be summed.
    """
    _refuse(
        stayed & left,
        "is listed both as having sent a vector and as having left: "
        "shares of its seed and of its key together would reveal its vector",
    )
    _refuse({index} - stayed, "sent its vector, but is not listed as having sent it")
    _refuse(announced - stayed - left, "is listed neither as having sent nor as having left")
    _refuse((stayed | left) - announced, "takes part, but was not announced")
    if len(stayed) < rule.min_clients:
        raise TooFewError(
            f"a sum must be over at least {rule.min_clients} clients, got {len(stayed)}"
        )
    _check_signers(index, stayed, signers)
    check_windows(rule, arranged, stayed)


def _check_signers(index: int, stayed: AbstractSet[int], signers: Collection[int]) -> None:
    """Everybody whose vector is summed masked it under the same keys and the same announcement."""
    what = f"did not sign the keys and clients that client {index} received"
    _refuse(stayed - {index, *signers}, what)


def check_windows(rule: ListRule, arranged: Indices, stayed: AbstractSet[int]) -> None:
    """Check that those who left, and those who collude, do not cut the ring.

    Without the clients that left or collude, a ring whose clients have k neighbours falls apart
    only at two gaps of k/2 positions or more (Bell et al. 2020, section 3).

    Raises
    ------
    RefusedError : when two disjoint windows of k/2 positions hold too few clients of the sum.
    """
    if rule.degree >= arranged.size - 1:
        return
    present = [member in stayed for member in arranged.tolist()]
    least = min_in_windows(present, rule.degree // 2)
    if least <= rule.window_excess:
        raise RefusedError(
            f"two windows of {rule.degree // 2} neighbours must hold more than "
            f"{rule.window_excess} clients of the sum, got {least}: a part of it could be unmasked"
        )


def check_certificate(rule: ListRule, stayed: AbstractSet[int], signers: Collection[int]) -> None:
    """Check who signed the same lists, before a client reveals its shares.

    Parameters
    ----------
    rule : what was agreed.
    stayed : who stayed, by the lists that the client signed.
    signers : whose signatures of these lists it has verified.

    Raises
    ------
    RefusedError : for a signer that did not stay.
    TooFewError : for fewer than tau signers.
    """
    _refuse(set(signers) - stayed, "signed lists, but is not listed as having stayed")
    if len(set(signers)) < rule.certificate:
        raise TooFewError(
            f"{rule.certificate} clients must have signed the same lists, got {len(set(signers))}"
        )


def check_restart(
    rule: ListRule, announced: AbstractSet[int], digest: bytes, ended: Mapping[int, bytes]
) -> None:
    """Check that nothing of an attempt can be unmasked any more, before a client joins the next.

    On the complete graph tau shares reconstruct a secret, and after tau statements at most
    ``K - tau + b < tau`` clients can still reveal one. On a ring the few receivers of one client's
    secrets may be among those, so everybody that was announced to the client must have given up.
    Honest clients that revealed had one digest, which ``tau - b`` honest clients signed; anyone who
    signed it joins no other attempt, as those that revealed were announced to it. The others are
    too few to certify a list.

    Parameters
    ----------
    rule : what was agreed.
    announced : the clients that the server announced to this client in the last attempt; all
        clients of the agreement, if it announced none.
    digest : what this client signed in the last attempt, or ``NO_DIGEST``.
    ended : by client, the digest in its verified ``ended_statement`` of the last attempt.

    Raises
    ------
    TooFewError : when fewer than tau clients gave the attempt up; on a ring, when not all did.
    RefusedError : on a ring, for a statement about another announcement.
    """
    if len(ended) < rule.certificate:
        raise TooFewError(
            f"{rule.certificate} clients must have given up the last attempt, got {len(ended)}"
        )
    if rule.is_complete:
        return
    if missing := announced - ended.keys():
        raise TooFewError(f"client {min(missing)} has not given up the last attempt")
    others = {k for k in announced if ended[k] not in (digest, NO_DIGEST)}
    _refuse(others, "gave up an attempt that was announced otherwise")
