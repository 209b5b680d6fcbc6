"""Whatever bytes come, decoders raise their own error, quickly and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.homomorphic import keys as homomorphic_messages
from tacit.crypto.homomorphic.engine import HomomorphicError, restored
from tacit.crypto.homomorphic.keys import NO_SESSION, Introduction, Meeting, Member
from tacit.crypto.homomorphic.keys import Kind as HomomorphicKind
from tacit.crypto.identities import Identity, Roster, SumError
from tacit.crypto.masking import MaskedValueError
from tacit.crypto.secure_sum import messages as sum_messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.messages import Advert
from tacit.crypto.secure_sum.messages import Kind as Summed
from tacit.crypto.secure_sum.server import SumServer
from tacit.crypto.secure_sum.terms import SumTerms
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.encrypted.sessions import as_field
from tacit.protocols.published.fhe.protocol import FheAUC

ROOT = Path(__file__).parents[2]
SESSION = bytes(range(16))
TERMS = b"terms"
many = settings(max_examples=150, deadline=None)
some = settings(max_examples=40, deadline=None)


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[str, float, int]]:
    """How to change a message: where, as a share of its length, and to what."""
    kind = st.sampled_from(("byte", "number", "cut", "append", "repeat"))
    index = st.floats(0, 1, exclude_max=True)
    value = st.one_of(st.integers(0, 255), st.sampled_from((2**16, 2**31, 2**32 - 1)))
    return draw(st.lists(st.tuples(kind, index, value), min_size=1, max_size=4))


def changed(message: bytes, how: list[tuple[str, float, int]]) -> bytes:
    made = bytearray(message)
    for kind, share, value in how:
        index = int(share * len(made))
        if kind == "byte" and made:
            made[index] = value % 256
        elif kind == "number":
            made[index : index + 4] = value.to_bytes(4, "little")
        elif kind == "cut":
            del made[index:]
        elif kind == "append":
            made += bytes([value % 256]) * (value % 64)
        else:
            made[index:index] = made[: value % 256]
    return bytes(made)


def rechecked(message: bytes) -> bytes:
    """The message with a checksum that fits: it guards against accidents, not against intent."""
    body = message[: -homomorphic_messages.CHECKSUM_BYTES]
    return body + homomorphic_messages._checksum(body)


def parts_of(message: bytes) -> list[bytes] | None:
    try:
        return homomorphic_messages.read(message, HomomorphicKind.COUNTS, SESSION, 3)
    except HomomorphicError:
        return None


@many
@given(st.binary(max_size=200), changes(), st.booleans())
def test_homomorphic_messages(noise: bytes, how: Any, fitting: bool) -> None:
    message = homomorphic_messages.write(HomomorphicKind.COUNTS, SESSION, 3, [b"one", b"", noise])
    assert parts_of(message) == [b"one", b"", noise]
    assert parts_of(noise) is None
    other = rechecked(changed(message, how)) if fitting else changed(message, how)
    result = parts_of(other)
    if result is not None:
        assert homomorphic_messages.write(HomomorphicKind.COUNTS, SESSION, 3, result) == other
        assert fitting or other == message


MEMBERS = [Member.new(TERMS) for _ in range(2)]
MEETING = Meeting.of([member.introduction for member in MEMBERS], TERMS)
BOX = MEMBERS[0].boxes(MEETING, bytes(32))[1]


@many
@given(st.binary(max_size=200), changes())
def test_introductions(noise: bytes, how: Any) -> None:
    """Changed ones are refused, by their form or by their signature."""
    valid = MEMBERS[1].introduction.to_bytes()
    for message in (noise, changed(valid, how), rechecked(changed(valid, how))):
        if message == valid:
            continue
        with pytest.raises(HomomorphicError):
            Meeting.of([MEMBERS[0].introduction, Introduction.from_bytes(message)], TERMS)


@many
@given(st.lists(st.binary(max_size=80), max_size=5))
def test_introductions_of_any_parts(parts: list[bytes]) -> None:
    message = homomorphic_messages.write(HomomorphicKind.INTRODUCTION, NO_SESSION, 0, parts)
    with pytest.raises(HomomorphicError):
        Meeting.of([MEMBERS[0].introduction, Introduction.from_bytes(message)], TERMS)


@many
@given(st.binary(max_size=200), changes())
def test_boxes(noise: bytes, how: Any) -> None:
    assert MEMBERS[1].decrypted(MEETING, BOX) == bytes(32)
    for message in (noise, changed(BOX, how), rechecked(changed(BOX, how))):
        if message == BOX:
            continue
        try:
            decrypted = MEMBERS[1].decrypted(MEETING, message)
        except HomomorphicError:
            continue
        assert decrypted == bytes(32)


@many
@given(st.binary(max_size=200), changes(), st.sampled_from(list(Summed)))
def test_sum_messages(noise: bytes, how: Any, kind: Summed) -> None:
    for message in (noise, changed(sum_messages.write(kind, SESSION, 3, noise), how)):
        try:
            body = sum_messages.read(message, kind, SESSION, 3)
        except SumError:
            continue
        assert sum_messages.write(kind, SESSION, 3, body) == message


@many
@given(st.binary(max_size=200), changes(), st.integers(0, 40))
def test_sum_records(noise: bytes, how: Any, size: int) -> None:
    records = sum_messages.pack_records({1: bytes(size), 7: bytes(size)})
    pair = sum_messages.pack_indices([1, 3]) + records
    for body in (noise, changed(records, how)):
        try:
            result = sum_messages.unpack_records(body, size, clients=9)
        except SumError:
            continue
        assert sum_messages.pack_records(result) == body
    for body in (noise, changed(pair, how)):
        try:
            first, rest = sum_messages.take_indices(body, clients=9)
            second, end = sum_messages.take_records(rest, size, clients=9)
        except SumError:
            continue
        written = sum_messages.pack_indices(first) + sum_messages.pack_records(second)
        assert written + end == body
    with pytest.raises(SumError):
        Advert.from_bytes(noise)


def a_sum() -> tuple[SumServer, list[SumClient]]:
    identities = [Identity.generate() for _ in range(3)]
    roster = Roster(tuple(identity.public for identity in identities))
    terms = SumTerms(SESSION, roster, 2, 100, Neighbourhood.complete(3))
    return SumServer(terms), [SumClient(identity, terms) for identity in identities]


@some
@given(st.integers(0, 26), st.none() | st.binary(max_size=300), changes())
def test_a_sum_with_one_hostile_message(number: int, noise: bytes | None, how: Any) -> None:
    """It ends in the sum, or by the module's own error; a changed vector may change the sum."""
    server, clients = a_sum()
    sent = count()

    def carried(message: bytes) -> bytes:
        if next(sent) != number:
            return message
        return changed(message, how) if noise is None else noise

    try:
        given_to = dict.fromkeys(range(3), b"")
        for step in ("advertise", "share", "mask", "certify", "reveal"):
            for index, client in enumerate(clients):
                arguments: list[Any] = [] if step == "advertise" else [carried(given_to[index])]
                arguments += [np.array([index, -1])] if step == "mask" else []
                server.receive(index, carried(getattr(client, step)(*arguments)))
            given_to = server.close_round() if step != "reveal" else {}
        total = server.conclude().total.tolist()
    except SumError:
        return
    assert next(sent) == 27
    assert total == [3, -3] or number in {10, 12, 14}


@some
@given(st.binary(max_size=100), changes())
def test_an_aggregator_refuses_replies_that_are_no_messages(noise: bytes, how: Any) -> None:
    """Introductions, then keys and boxes, from hostile parties."""
    protocol = FheAUC(10, most_records=5000)
    valid = [Member.new(protocol.terms).introduction.to_bytes() for _ in range(2)]
    for bad in (noise, changed(valid[1], how)):
        conversation = protocol.conversation(2)
        next(conversation)
        if bad != valid[1]:
            with pytest.raises(HomomorphicError):
                conversation.send({"introduction": as_field([valid[0], bad])})
    conversation = protocol.conversation(2)
    next(conversation)
    conversation.send({"introduction": as_field(valid)})
    with pytest.raises(HomomorphicError):
        conversation.send({"keys": as_field([noise, b""]), "boxes": as_field([noise, b""])})


@some
@given(st.binary(max_size=2000), changes())
def test_an_aggregator_refuses_masked_values_that_are_none(noise: bytes, how: Any) -> None:
    """Introductions, boxes and words from hostile parties; any words of the field add up."""
    protocol = EncryptedAUC(10, most_records=5000)
    valid = [Member.new(protocol.terms).introduction.packed for _ in range(2)]
    for bad in (noise, changed(valid[1], how)):
        conversation = protocol.conversation(2)
        next(conversation)
        if bad != valid[1]:
            with pytest.raises(HomomorphicError):
                conversation.send({"introduction": as_field([valid[0], bad])})
    for boxes, words in ((noise, b""), (bytes(32), noise)):
        conversation = protocol.conversation(2)
        next(conversation)
        conversation.send({"introduction": as_field(valid)})
        with pytest.raises(MaskedValueError):
            conversation.send({"boxes": as_field([boxes, b""])})
            conversation.send({"counts": as_field([words, words])})


@many
@given(st.binary(max_size=200), st.sampled_from(("Ciphertext", "RelinKeys", "GaloisKeys")))
def test_bytes_without_a_header_never_reach_seal(noise: bytes, kind: str) -> None:
    """Not even its library is needed to refuse them."""
    with pytest.raises(HomomorphicError, match="no complete SEAL object"):
        restored(kind, None, noise)


def test_too_large_objects_never_reach_seal() -> None:
    with pytest.raises(HomomorphicError, match="at most 33554432 bytes, got 33554433"):
        restored("Ciphertext", None, bytes(2**25 + 1))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux only")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_hostile_seal_objects_in_a_process_of_their_own(seed: int) -> None:
    """A crash, a hang or a wild allocation ends that process, and any other error is named."""
    pytest.importorskip("tenseal")
    command = [sys.executable, "-m", "tests.crypto.homomorphic.seal_fuzz", str(seed), "80"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content.keys() == {"accepted", "refused"}, done.stderr
    assert content["refused"] > content["accepted"] > 0


def test_no_decoder_can_load_objects_of_python() -> None:
    sources = [
        *(ROOT / "src/tacit/crypto").rglob("*.py"),
        *(ROOT / "src/tacit/protocols/encrypted").rglob("*.py"),
        *(ROOT / "src/tacit/protocol").glob("*.py"),
    ]
    assert len(sources) > 15
    for source in sources:
        text = source.read_text()
        assert not any(word in text for word in ("import pickle", "import marshal", "allow_pickle"))
