"""Whatever bytes come, decoders raise their own error, quickly and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.homomorphic import engine, keys
from tacit.crypto.homomorphic.keys import Introduction, Meeting, Member
from tests.crypto.changing import Change, changed, changes

ROOT = Path(__file__).parents[2]
SESSION = bytes(range(16))
many = settings(max_examples=150, deadline=None)


def rechecked(message: bytes) -> bytes:
    """The message with a checksum that fits: it guards against accidents, not against intent."""
    body = message[: -keys.CHECKSUM_BYTES]
    return body + keys._checksum(body)


def parts_of(message: bytes) -> list[bytes] | None:
    try:
        return keys.read(message, keys.Kind.COUNTS, SESSION, 3)
    except engine.HomomorphicError:
        return None


@many
@given(st.binary(max_size=200), changes(), st.booleans())
def test_homomorphic_messages(noise: bytes, how: list[Change], fitting: bool) -> None:
    message = keys.write(keys.Kind.COUNTS, SESSION, 3, [b"one", b"", noise])
    assert parts_of(message) == [b"one", b"", noise]
    assert parts_of(noise) is None
    other = rechecked(changed(message, how)) if fitting else changed(message, how)
    result = parts_of(other)
    if result is not None:
        assert keys.write(keys.Kind.COUNTS, SESSION, 3, result) == other
        assert fitting or other == message


MEMBERS = [Member.new(b"terms") for _ in range(2)]
MEETING = Meeting.of([member.introduction for member in MEMBERS], b"terms")
INTRODUCTION, BOX = MEMBERS[1].introduction.packed, MEMBERS[0].boxes(MEETING, bytes(32))[1]


def others(introduction: bytes, noise: bytes, how: list[Change]) -> set[bytes]:
    """Bytes that are no introduction of this identity; another one is another party's, and for
    that of zeros, which has low order, anybody can sign."""
    made = {noise, changed(introduction, how)} - {introduction}
    size, identity = len(introduction), introduction[:32]
    return {each for each in made if len(each) != size or each.startswith(identity)}


@many
@given(st.binary(max_size=200), changes())
def test_introductions_and_boxes(noise: bytes, how: list[Change]) -> None:
    """Changed introductions are refused by their form or by their signature."""
    assert MEMBERS[1].decrypted(MEETING, BOX) == bytes(32)
    for message in {noise, changed(BOX, how)} - {BOX}:
        with pytest.raises(engine.HomomorphicError):
            MEMBERS[1].decrypted(MEETING, message)
    for message in others(INTRODUCTION, noise, how):
        with pytest.raises(engine.HomomorphicError):
            Meeting.of([MEMBERS[0].introduction, Introduction.unpacked(message)], b"terms")


@many
@given(st.binary(max_size=200), st.sampled_from(("Ciphertext", "RelinKeys", "GaloisKeys")))
def test_bytes_without_a_header_never_reach_seal(noise: bytes, kind: str) -> None:
    """Not even its library is needed to refuse them."""
    with pytest.raises(engine.HomomorphicError, match="no complete SEAL object"):
        engine.restored(kind, None, noise)


def test_too_large_objects_never_reach_seal() -> None:
    with pytest.raises(engine.HomomorphicError, match="at most 33554432 bytes, got 33554433"):
        engine.restored("Ciphertext", None, bytes(2**25 + 1))
    header = bytearray(engine.HEADER_BYTES)
    header[engine.COMPRESSION] = 2
    packed = pa.compress(bytes(2**25 + 1), codec="zstd", asbytes=True)
    with pytest.raises(engine.HomomorphicError, match="an object has at most 33554432 bytes"):
        engine._contents(bytes(header) + packed)


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


@pytest.mark.parametrize("folder", ["crypto", "protocol", "protocols/encrypted"])
def test_no_decoder_can_load_objects_of_python(folder: str) -> None:
    sources = sorted((ROOT / "src/tacit" / folder).rglob("*.py"))
    text = "".join(source.read_text() for source in sources)
    assert len(sources) > 5
    assert not any(word in text for word in ("import pickle", "import marshal", "allow_pickle"))
