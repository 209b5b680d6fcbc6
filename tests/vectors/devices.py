"""The content of ``devices.json``: what devices send, for libraries in other languages.

Randomness is the bytes of 64-bit words in the order in which they are drawn, the least significant
byte first. Python's side is the client steps themselves, with these words for the system's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tacit.collecting.campaign import Campaign, Signed, Terms, stage_query
from tacit.collecting.log import Report
from tacit.crypto.identities import Identity
from tacit.data.clients import Clients
from tacit.privacy import exact
from tacit.privacy.noise import SystemNoise
from tacit.protocol.conversation import Query
from tacit.protocol.devices import Payloads
from tacit.protocol.registry import protocol_of
from tests.collecting.support import device_payloads, in_memory

Content = dict[str, Any]

COORDINATOR = Identity.from_bytes(bytes([19]) * 32)
TOKEN = bytes(range(16))
DEVICES = 20_000

CONFIGURATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("score-histogram", {"trust": "local", "epsilon": 1.0, "height": 5, "scale": "even"}),
    ("score-histogram", {"trust": "local", "epsilon": 0.5, "height": 2, "scale": "log-odds"}),
    ("hierarchical-auc", {"epsilon": 2.0}),
    ("two-round-auc", {"epsilon": 1.0}),
    ("two-round-auc", {"epsilon": 4.0, "mechanism": "bit", "scale": "real"}),
    ("ustatistic", {"kernel": "auc", "epsilon": 1.0}),
    ("ustatistic", {"kernel": "kendall(domain=scaled(bins=3))", "epsilon": 5.0}),
    ("ustatistic", {"kernel": "collision(values=0 0.25 0.5 1)", "epsilon": 1.0}),
)

RECORDS = ((0.0, 1, 0.5), (0.25, 0, 1.0), (0.5, 1, 0.0), (1.0, 0, 0.75), (1.0, 1, 0.999999))
DRAWS = 3
"""Number of draws of every record."""


def terms_of(name: str, settings: dict[str, Any]) -> Terms:
    """A campaign's terms that never change."""
    opens, closes = datetime(2026, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    return Terms(f"vectors of {name}", protocol_of(name, settings), DEVICES, opens, closes)


@contextmanager
def fixed_words(words: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Iterator[list[int]]:
    """These words for those of the system; yields a list that holds how many were drawn."""
    used = [0]

    def drawn(size: int) -> exact.Words:
        if used[0] + size > words.size:
            raise AssertionError("there are not enough words")
        used[0] += size
        return words[used[0] - size : used[0]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "words", drawn)
        yield used


def first_stage_payloads(terms: Terms) -> Payloads:
    """Reports of a first stage, always the same: its outputs in turn."""
    count = 400
    query = stage_query(terms, [])
    outputs = np.arange(count, dtype=np.int64) * 7 % 64
    wide = np.zeros((count, terms.reports.payload_bytes(query)), dtype=np.uint8)
    wide[:, 0] = outputs
    return wide


def asked(terms: Terms, before: Sequence[Payloads]) -> Query:
    """A stage's query, with published numbers of 9 digits: versions of NumPy differ in the last."""
    query = stage_query(terms, in_memory(before))
    rounded = {
        name: np.round(each, 9) if isinstance(each, np.ndarray) and each.dtype.kind == "f" else each
        for name, each in query.broadcast.items()
    }
    return replace(query, broadcast=rounded)


def payload_vectors() -> Iterator[Content]:
    """Randomness and a record in, a payload out, for every configuration and stage."""
    rng = np.random.default_rng(19)
    for name, settings in CONFIGURATIONS:
        terms = terms_of(name, settings)
        before: list[Payloads] = []
        for stage in range(terms.reports.stages):
            query = asked(terms, before)
            how = json.loads(json.dumps(dict(terms.reports.instructions(query))))
            cases = []
            for score, label, second in RECORDS:
                clients = Clients(
                    np.array([score]),
                    np.array([label], dtype=np.int8),
                    np.array([0, 1]),
                    second=np.array([second]),
                )
                for _ in range(DRAWS):
                    words = rng.integers(0, 2**64, 600, dtype=np.uint64)
                    with fixed_words(words) as used:
                        payload = device_payloads(terms, query, clients, SystemNoise())[0]
                    cases.append(
                        {
                            "record": {"score": score, "label": label, "second": second},
                            "randomness": words[: used[0]].astype("<u8").tobytes().hex(),
                            "payload": payload.tobytes().hex(),
                        }
                    )
            yield {
                "name": f"{name} {settings}, stage {stage}",
                "epsilon": terms.protocol.guarantee.epsilon,
                "instructions": how,
                "cases": cases,
            }
            before.append(first_stage_payloads(terms))


def report_vectors() -> Content:
    """Reports with their fields, and bytes that are none."""
    report = Report(bytes(range(8)), 1, TOKEN, b"\x03\x50\x00")
    message = report.to_bytes()
    what = "a report of a device"
    return {
        "valid": [
            {
                "hex": message.hex(),
                "campaign": report.campaign.hex(),
                "stage": report.stage,
                "token": TOKEN.hex(),
                "payload": report.payload.hex(),
            }
        ],
        "refused": [
            {"hex": (b"TXXX" + message[4:]).hex(), "error": f"these bytes are not {what}"},
            {"hex": (message[:4] + b"\x63" + message[5:]).hex(), "error": "version must be"},
            {"hex": message[:5].hex(), "error": "bytes, got 5"},
            {"hex": "", "error": "bytes, got 0"},
        ],
    }


def campaign_vectors() -> Content:
    """Signed documents, and what devices must refuse."""
    terms = terms_of(*CONFIGURATIONS[1])
    query = stage_query(terms, [])
    content = terms.to_content() | {"report": dict(terms.reports.instructions(query))}
    signed = Signed.by(COORDINATOR, content)
    campaign = Campaign(signed)
    later = asked(terms, [first_stage_payloads(terms)])
    stage = campaign.stage_content(1, terms.reports.instructions(later))
    other = Identity.from_bytes(bytes([20]) * 32)
    forged = Signed(signed.document.replace(b"vectors", b"Vectors"), signed.signature, signed.key)
    return {
        "coordinator": COORDINATOR.public.hex(),
        "campaign": signed.to_json(),
        "digest": campaign.digest.hex(),
        "name": terms.name,
        "stage": Signed.by(COORDINATOR, stage).to_json(),
        "refused": [
            {"campaign": forged.to_json(), "error": "not signed"},
            {"campaign": Signed.by(other, content).to_json(), "error": "not signed"},
            {
                "campaign": Signed.by(COORDINATOR, content | {"epsilon": 0.49}).to_json(),
                "error": "cost more than its epsilon",
            },
            {
                "campaign": Signed.by(
                    COORDINATOR, content | {"report": {"kind": "plain"}}
                ).to_json(),
                "error": "does not know",
            },
        ],
        "refused stages": [
            {
                "stage": Signed.by(COORDINATOR, stage | {"campaign": "00" * 32}).to_json(),
                "error": "no stage of this campaign",
            },
            {
                "stage": Signed.by(COORDINATOR, stage | {"stage": 2}).to_json(),
                "error": "stage must be",
            },
        ],
    }


def device_vectors() -> Content:
    """The content of the file."""
    return {
        "payloads": list(payload_vectors()),
        "reports": report_vectors(),
        "campaigns": campaign_vectors(),
    }
