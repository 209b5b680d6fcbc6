"""How parties come to share a secret that the aggregator relays and cannot read."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tacit.crypto.homomorphic import engine, keys
from tacit.crypto.homomorphic.keys import Introduction, Meeting, Member, key_seed, run_seed
from tacit.crypto.identities import Identity, Roster

TERMS = b"terms"


def members(count: int = 3) -> tuple[list[Member], Meeting]:
    made = [Member.new(TERMS) for _ in range(count)]
    return made, Meeting.of([member.introduction for member in made], TERMS)


def test_every_party_opens_its_own_box_and_no_other() -> None:
    parties, meeting = members()
    secret = os.urandom(32)
    boxes = parties[0].boxes(meeting, secret)
    assert boxes[0] == b""
    assert [parties[k].decrypted(meeting, boxes[k]) for k in (1, 2)] == [secret, secret]
    with pytest.raises(engine.HomomorphicError, match="not encrypted by the first party"):
        parties[1].decrypted(meeting, boxes[2])
    assert all(secret not in box for box in boxes)


def test_a_box_of_another_party_or_an_earlier_session_is_refused() -> None:
    (parties, meeting), (again, later) = members(), members()
    assert later.session != meeting.session
    forged, old = (parties[index].boxes(meeting, os.urandom(32))[1] for index in (2, 0))
    for member, session, box in ((parties[1], meeting, forged), (again[1], later, old)):
        with pytest.raises(engine.HomomorphicError, match="not encrypted by the first party"):
            member.decrypted(session, box)


def test_an_aggregator_in_the_middle_is_noticed() -> None:
    """Its own agreement key bears no identity's signature; its identity is in no roster."""
    parties, _ = members()
    spoken = [member.introduction for member in parties]
    middle = Member.new(TERMS).introduction
    swapped = replace(spoken[1], agreement=middle.agreement)
    with pytest.raises(engine.HomomorphicError, match="not signed by its identity"):
        Meeting.of([spoken[0], swapped, spoken[2]], TERMS)
    roster = Roster(tuple(each.identity for each in spoken))
    assert Meeting.of(spoken, TERMS, roster).session
    for wrong in ([spoken[0], middle, spoken[2]], spoken[:2], spoken[::-1]):
        with pytest.raises(engine.HomomorphicError, match="not those of the roster"):
            Meeting.of(wrong, TERMS, roster)


def test_left_out_doubled_alone_or_under_other_terms() -> None:
    parties, meeting = members()
    with pytest.raises(engine.HomomorphicError, match="introduction is missing"):
        meeting.index_of(Member.new(TERMS))
    spoken = [member.introduction for member in parties]
    for introductions, terms, says in (
        ([spoken[0], spoken[0]], TERMS, "introduced twice"),
        (spoken[:1], TERMS, "at least 2 parties, got 1"),
        (spoken, b"other terms", "signed for other terms"),
    ):
        with pytest.raises(engine.HomomorphicError, match=says):
            Meeting.of(introductions, terms)


def test_invalid_agreement_key_is_refused() -> None:
    identity, zero, nonce = Identity.generate(), bytes(32), bytes(16)
    signature = identity.sign(keys._signed(TERMS, zero, nonce))
    weak, first = Introduction(identity.public, zero, nonce, signature), Member.new(TERMS)
    meeting = Meeting.of([first.introduction, weak], TERMS)
    with pytest.raises(engine.HomomorphicError, match="agreement key of party 1 is not valid"):
        first.boxes(meeting, os.urandom(32))


def test_seeds_differ_by_purpose_run_and_session() -> None:
    secret = os.urandom(32)
    one, two = bytes(16), b"x" * 16
    made = [run_seed(secret, name, run) for name in (one, two) for run in (0, 1)]
    made += [key_seed(secret, one)[:32], key_seed(secret, two)[:32]]
    assert len(set(made)) == 6
