"""The aggregator's side of an exact evaluation: on ciphertexts, and on masked values."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.homomorphic.keys import FIRST, Introduction, Meeting
from tacit.crypto.homomorphic.messages import EVERYBODY, Kind, read, write
from tacit.protocol.conversation import Query, Reply, Step
from tacit.protocols.encrypted.ciphertexts.steps import (
    introduce,
    open_answer,
    send_counts,
    share_keys,
)
from tacit.protocols.encrypted.classes.keys import pieces
from tacit.protocols.encrypted.classes.steps import open_masked_classes, send_masked_classes
from tacit.protocols.encrypted.confirming import confirm_answer, digest, joined
from tacit.protocols.encrypted.masked.aggregator import MaskedAggregator
from tacit.protocols.encrypted.masked.steps import (
    boxes_of,
    meet,
    open_masked,
    seal_secret,
    send_masked,
)
from tacit.protocols.encrypted.sessions import MALICIOUS, as_field, as_parts

Exchange = Generator[Query, Reply, Reply]
"""Queries and replies, and at the end what the parties say of the answer."""


def on_ciphertexts(protocol: Any) -> Exchange:
    """Introductions, keys, encrypted counts, the answer; nothing is decrypted on this side.

    Raises
    ------
    HomomorphicError : for messages that are not those of this session.
    """
    introductions = as_parts((yield Query(introduce, protocol))["introduction"])
    parsed = [Introduction.from_bytes(each) for each in introductions]
    session = Meeting.of(parsed, protocol.terms).session
    sent = yield Query(share_keys, protocol, broadcast={"introductions": introductions})
    keys = read(as_parts(sent["keys"])[FIRST], Kind.KEYS, session, FIRST)
    boxes = read(as_parts(sent["boxes"])[FIRST], Kind.BOX, session, EVERYBODY)
    if len(boxes) != len(parsed):
        raise HomomorphicError(f"there are {len(parsed)} boxes, got {len(boxes)}")
    counted = yield Query(send_counts, protocol, per_client={"box": as_field(boxes)})
    uploads = [
        read(message, Kind.COUNTS, session, index)
        for index, message in enumerate(as_parts(counted["counts"]))
    ]
    answers = protocol.scheme_aggregator(keys).answers(uploads)
    answer = write(Kind.ANSWER, session, EVERYBODY, answers)
    return (yield from opened(open_answer, protocol, answer))


def on_masked_values(protocol: Any) -> Exchange:
    """Introductions, a secret, masked counts, the answer.

    Raises
    ------
    HomomorphicError : for introductions that are not signed.
    MaskedValueError : for bytes that are no masked values of this session.
    """
    uploads, aggregator = yield from masked_uploads(protocol, send_masked)
    (answer,) = aggregator.answers([[message] for message in uploads])
    return (yield from opened(open_masked, protocol, answer))


def opened(step: Step, protocol: Any, answer: bytes) -> Exchange:
    """The answer, which parties open by this step; a malicious aggregator's once all confirm it.

    Raises
    ------
    HomomorphicError : for what is no tag.
    """
    if protocol.adversary != MALICIOUS:
        return (yield Query(step, protocol, broadcast={"answer": answer}))
    confirmed = yield Query(confirm_answer, protocol, broadcast={"digest": digest(answer)})
    tags = joined(as_parts(confirmed["tag"]))
    return (yield Query(step, protocol, broadcast={"answer": answer, "tags": tags}))


def on_masked_classes(protocol: Any) -> Exchange:
    """The same for every class in one session: a message has the masked counts of all classes.

    Raises
    ------
    HomomorphicError : for introductions that are not signed.
    MaskedValueError : for bytes that are no masked values of this session.
    """
    uploads, aggregator = yield from masked_uploads(protocol, send_masked_classes)
    count = len(protocol.classes)
    by_class = zip(*(pieces(message, count) for message in uploads), strict=True)
    answers = [aggregator.answers([[each] for each in sent])[0] for sent in by_class]
    return (yield Query(open_masked_classes, protocol, broadcast={"answer": b"".join(answers)}))


def masked_uploads(
    protocol: Any, send: Step
) -> Generator[Query, Reply, tuple[list[bytes], MaskedAggregator]]:
    """Introductions, a secret, and what parties send masked by this step; the session's aggregator.

    Raises
    ------
    HomomorphicError : for introductions that are not signed.
    """
    introductions = as_parts((yield Query(meet, protocol))["introduction"])
    known = [Introduction.unpacked(each) for each in introductions]
    session = Meeting.of(known, protocol.terms).session
    sent = yield Query(seal_secret, protocol, broadcast={"introductions": introductions})
    boxes = boxes_of(as_parts(sent["boxes"])[FIRST], len(known))
    counted = yield Query(send, protocol, per_client={"box": as_field(boxes)})
    return as_parts(counted["counts"]), MaskedAggregator(protocol.masked_scheme, session)
