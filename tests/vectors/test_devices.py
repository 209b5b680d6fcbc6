"""What devices send and read, of which libraries in other languages pass the same vectors.

Randomness is the bytes of 64-bit words in the order in which they are drawn, the least significant
byte first. Python's side is the client steps themselves, with these words for the system's.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import tacit.protocol as tp
from tacit.collecting.campaign import Campaign, Signed, Terms, stage_query
from tacit.collecting.log import Report
from tacit.crypto.identities import Identity
from tacit.privacy import exact
from tacit.protocol.devices import Payloads
from tests.collecting.support import device_payloads, in_memory
from tests.vectors import vectors

FILE = vectors("devices")
COORDINATOR = Identity.from_bytes(bytes([19]) * 32)


def first_stage_payloads(terms: Terms) -> Payloads:
    """Reports of a first stage, always the same: its outputs in turn."""
    payloads = np.zeros((400, terms.reports.payload_bytes(stage_query(terms, []))), dtype=np.uint8)
    payloads[:, 0] = np.arange(400) * 7 % 64
    return payloads


def asked(terms: Terms, before: Sequence[Payloads]) -> tp.Query:
    """A stage's query, with published numbers of 9 digits: versions of NumPy differ in the last."""
    query = stage_query(terms, in_memory(before))
    rounded = {
        name: np.round(each, 9) if isinstance(each, np.ndarray) and each.dtype.kind == "f" else each
        for name, each in query.broadcast.items()
    }
    return replace(query, broadcast=rounded)


@pytest.mark.parametrize("vector", FILE["payloads"], ids=lambda vector: vector["name"])
def test_a_record_and_randomness_give_a_payload(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = re.fullmatch(r"(\S+) (.*), stage (\d)", vector["name"])
    assert named is not None
    protocol, stage = tp.protocol_of(named[1], literal_eval(named[2])), int(named[3])
    years = (datetime(year, 1, 1, tzinfo=UTC) for year in (2026, 2100))
    terms = Terms("vectors", protocol, 20_000, *years)
    query = asked(terms, [first_stage_payloads(terms)] * stage)
    assert protocol.guarantee.epsilon == vector["epsilon"]
    instructions = terms.reports.instructions(query)
    assert json.loads(json.dumps(dict(instructions))) == vector["instructions"]
    for case in vector["cases"]:
        record, words = (
            case["record"],
            list(np.frombuffer(bytes.fromhex(case["randomness"]), "<u8")),
        )
        clients = tp.Clients(
            np.array([record["score"]]),
            np.array([record["label"]], dtype=np.int8),
            np.array([0, 1]),
            second=np.array([record["second"]]),
        )

        def drawn(size: int, words: list[np.uint64] = words) -> exact.Words:
            taken = words[:size]
            del words[:size]
            assert len(taken) == size
            return np.array(taken, dtype=np.uint64)

        monkeypatch.setattr(exact, "words", drawn)
        assert (
            device_payloads(terms, query, clients, tp.SystemNoise()).tobytes().hex()
            == (case["payload"])
        )
        assert not words


def test_reports_have_their_bytes() -> None:
    for entry in FILE["reports"]["valid"]:
        campaign, token, payload = (
            bytes.fromhex(entry[name]) for name in ("campaign", "token", "payload")
        )
        report, message = Report(campaign, entry["stage"], token, payload), entry["hex"]
        assert report.to_bytes().hex() == message
        assert Report.from_bytes(bytes.fromhex(message)) == report
    for entry in FILE["reports"]["refused"]:
        with pytest.raises(ValueError, match=entry["error"]):
            Report.from_bytes(bytes.fromhex(entry["hex"]))


def test_a_campaign_and_its_second_stage_are_signed_as_they_were() -> None:
    """What devices refuse is for their libraries to test."""
    entry = FILE["campaigns"]
    campaign = Campaign(Signed.from_json(entry["campaign"]))
    terms = campaign.terms
    instructions = terms.reports.instructions(stage_query(terms, []))
    content = terms.to_content() | {"report": dict(instructions)}
    assert Signed.by(COORDINATOR, content).to_json() == entry["campaign"]
    assert (campaign.digest.hex(), terms.name) == (entry["digest"], entry["name"])
    later = terms.reports.instructions(asked(terms, [first_stage_payloads(terms)]))
    stage = Signed.by(COORDINATOR, campaign.stage_content(1, later))
    assert (stage.to_json(), COORDINATOR.public.hex()) == (entry["stage"], entry["coordinator"])
