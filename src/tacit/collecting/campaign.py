"""Campaigns: what a coordinator signs, so that devices and the collector agree on every number.

A signed document is its exact bytes, in JSON, with an Ed25519 signature; no one writes it again.
The campaign's digest is SHA-256 of its document. Every report carries the first bytes of it.

A campaign's conversation takes reports, and gives the next stage's query or the result. The
protocol's own conversation runs, as in a simulation: of every stage it sees how often each report
came. No other estimator is written here.

The central guarantee of a campaign's sealed batches holds where the bound applies. A record reports
once, into one batch, so the smallest batch bounds what the sealed batches together cost it. The
bound is about a multiset of reports by one randomiser (``tacit.privacy.shuffling``):

- the campaign has one stage, as the reports of a second one depend on those before;
- score and label are both protected: a report with a public label hides among its class only;
- a batch is in a fresh order, without tokens, which lie apart.
"""

from __future__ import annotations

import json
import tomllib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tacit.crypto.identities import Identity, is_signed
from tacit.privacy.cost import Adjacency
from tacit.privacy.shuffling import Shuffled, shuffled_epsilon
from tacit.protocol import devices
from tacit.protocol.conversation import Protocol
from tacit.protocol.devices import DeviceReports
from tacit.protocol.registry import protocol_of
from tacit.protocol.steps import Query
from tacit.results import evaluation as results
from tacit.results.run import Traffic


class CampaignError(ValueError):
    """A campaign, a stage or a folder of reports that cannot be what it says."""


class ReportError(ValueError):
    """A report that is not counted.

    Parameters
    ----------
    reason : one word for machines and counters.
    sentence : for readers.
    """

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


CAMPAIGN_FORMAT, STAGE_FORMAT = "tacit-campaign/1", "tacit-stage/1"
MAX_NAME = 100
MIN_DEVICES = 2
FIELDS = frozenset({"name", "protocol", "devices", "opens", "closes", "settings"})


@dataclass(frozen=True)
class Signed:
    """A document with its signature, as it is served.

    Parameters
    ----------
    document : the bytes that were signed, UTF-8.
    signature : 64 bytes.
    key : the signer's 32 public bytes.
    """

    document: bytes
    signature: bytes
    key: bytes

    @classmethod
    def by(cls, identity: Identity, content: Mapping[str, Any]) -> Signed:
        """Content signed by an identity."""
        text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        document = text.encode()
        return cls(document, identity.sign(document), identity.public)

    @classmethod
    def from_json(cls, text: bytes | str) -> Signed:
        """A signed document as ``to_json`` wrote it; its signature is checked.

        Raises
        ------
        CampaignError : for another form, or a signature that is not the key's.
        """
        try:
            entry = json.loads(text)
            made = cls(
                entry["document"].encode(), b64decode(entry["signature"]), b64decode(entry["key"])
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CampaignError("this is no signed document of a campaign") from None
        if not is_signed(made.key, made.document, made.signature):
            raise CampaignError("the signature of the document is not by its key")
        return made

    def to_json(self) -> str:
        """The document as a JSON text, and signature and key in base64."""
        entry = {"document": self.document.decode()} | {
            name: b64encode(getattr(self, name)).decode() for name in ("signature", "key")
        }
        return json.dumps(entry, ensure_ascii=False)

    @cached_property
    def content(self) -> dict[str, Any]:
        """The document's fields."""
        fields: dict[str, Any] = json.loads(self.document)
        return fields


@dataclass(frozen=True)
class Terms:
    """What a coordinator decides about a campaign.

    Parameters
    ----------
    name : under which devices remember it; at most ``MAX_NAME`` characters.
    protocol : with its settings, which must be for devices.
    devices : how many are expected; it decides numbers of cells and the length of the first stage.
    opens, closes : when reports are taken, in UTC.

    Raises
    ------
    CampaignError : for a field outside its range.
    """

    name: str
    protocol: Protocol
    devices: int
    opens: datetime
    closes: datetime

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 0 < len(self.name) <= MAX_NAME):
            raise CampaignError(f"name must have 1 to {MAX_NAME} characters, got {self.name!r}")
        if not (isinstance(self.devices, int) and self.devices >= MIN_DEVICES):
            raise CampaignError(f"devices must be at least {MIN_DEVICES}, got {self.devices!r}")
        for name in ("opens", "closes"):
            when = getattr(self, name)
            if not isinstance(when, datetime) or when.tzinfo is None:
                raise CampaignError(f"{name} must be a date and time with an offset, got {when!r}")
        if not self.opens < self.closes:
            raise CampaignError(f"closes must be after opens, got {self.closes} and {self.opens}")

    @classmethod
    def from_toml(cls, path: Path) -> Terms:
        """The terms of a file.

        Raises
        ------
        CampaignError : naming the file, for text that is no TOML, unknown or missing fields, or
            values that do not fit.
        """
        try:
            entry = tomllib.loads(path.read_text(encoding="utf-8"))
            _check_fields(entry)
            protocol = protocol_of(entry["protocol"], entry["settings"])
            return cls(entry["name"], protocol, entry["devices"], entry["opens"], entry["closes"])
        except (ValueError, TypeError, RecursionError) as error:
            raise CampaignError(f"{path}: {error}") from None

    @property
    def reports(self) -> DeviceReports:
        """What the protocol declares for so many devices."""
        return self.protocol.device_reports(self.devices)

    def to_content(self) -> dict[str, Any]:
        """The fields of the campaign's document, without what devices compute."""
        return {
            "format": CAMPAIGN_FORMAT,
            "name": self.name,
            "protocol": self.protocol.name,
            # tuples and lists are the same in a document
            "settings": json.loads(json.dumps(dict(self.protocol.settings))),
            "epsilon": self.protocol.guarantee.epsilon,
            "protects": _adjacency(self.protocol).value,
            "devices": self.devices,
            "opens": int(self.opens.timestamp()),
            "closes": int(self.closes.timestamp()),
            "stages": self.reports.stages,
            "first_turns": self.reports.first_turns,
        }


def _check_fields(entry: Mapping[str, Any]) -> None:
    """Refuse fields that a campaign does not have, and files without one that it has."""
    for what, names in (("unknown", entry.keys() - FIELDS), ("missing", FIELDS - entry.keys())):
        if names:
            raise CampaignError(f"there are {what} fields {sorted(names)}")


def _adjacency(protocol: Protocol) -> Adjacency:
    adjacency: Adjacency | None = getattr(protocol.guarantee, "adjacency", None)
    if adjacency is None or protocol.guarantee.delta:
        raise CampaignError("a campaign of devices needs a guarantee of epsilon alone")
    return adjacency


@dataclass(frozen=True)
class Campaign:
    """A signed campaign.

    Parameters
    ----------
    signed : its document.
    """

    signed: Signed

    def __post_init__(self) -> None:
        if self.signed.content.get("format") != CAMPAIGN_FORMAT:
            raise CampaignError(
                f"format must be {CAMPAIGN_FORMAT!r}, got {self.signed.content.get('format')!r}"
            )

    @cached_property
    def terms(self) -> Terms:
        """What the coordinator decided."""
        entry = self.signed.content
        opens, closes = (datetime.fromtimestamp(entry[name], UTC) for name in ("opens", "closes"))
        protocol = protocol_of(entry["protocol"], entry["settings"])
        return Terms(entry["name"], protocol, entry["devices"], opens, closes)

    @property
    def digest(self) -> bytes:
        """SHA-256 of the document, 32 bytes."""
        return sha256(self.signed.document).digest()

    def stage_content(self, stage: int, instructions: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stage's document: what devices compute in it."""
        return {
            "format": STAGE_FORMAT,
            "campaign": self.digest.hex(),
            "stage": stage,
            "report": dict(instructions),
        }


LIARS = 0.01
"""The fraction of liars that an estimate says most about."""

TRUSTED = (
    "nothing proves that a report is honest: where 1 % of them were made up to move the "
    "estimate, it would move by {down:+.2g} to {up:+.2g}, to first order"
)


def stage_query(terms: Terms, before: Sequence[devices.Stage]) -> Query:
    """What devices are asked in the stage after these: the first where there is none before.

    Parameters
    ----------
    terms : of the campaign.
    before : the reports of every earlier stage.
    """
    ended = devices.conversed(terms.protocol, terms.reports, terms.devices, before)
    if isinstance(ended, devices.Concluded):
        raise CampaignError(f"the campaign has {len(before)} stages, and no more")
    return ended


def concluded(terms: Terms, stages: Sequence[devices.Stage]) -> devices.Concluded:
    """The result of all stages' reports.

    Raises
    ------
    CampaignError : for too few stages, or a last one with fewer than two reports.
    DataError, ValueError : as the protocol's estimator raises.
    """
    if len(stages) == terms.reports.stages and len(stages[-1]) < 2:
        raise CampaignError(f"an estimate needs two reports, got {len(stages[-1])}")
    ended = devices.conversed(terms.protocol, terms.reports, terms.devices, stages)
    if isinstance(ended, Query):
        raise CampaignError(
            f"an estimate needs the reports of {terms.reports.stages} stages, got {len(stages)}"
        )
    return ended


def evaluation_of(
    campaign: Campaign, stages: Sequence[devices.Stage], report_bytes: int
) -> results.Evaluation:
    """The result of a campaign in the form of every other result.

    Parameters
    ----------
    campaign : whose reports they are.
    stages : the reports of every stage.
    report_bytes : of one report of the last stage.
    """
    terms = campaign.terms
    ended = concluded(terms, stages)
    count = sum(map(len, stages))
    down, up = (LIARS * each for each in devices.influences_of(terms.reports, ended))
    return results.evaluation_of(
        terms.protocol,
        ended.result,
        spent=terms.protocol.guarantee,
        traffic=Traffic(len(stages), np.broadcast_to(np.int64(report_bytes), count)),
        clients=count,
        noise="system",
        before=(TRUSTED.format(down=down, up=up),),
        unit=terms.protocol.unit or "probability",
        federation=terms.name,
        time=datetime.now(UTC),
    )


DELTA = 1e-6
"""The delta at which epsilon is stated."""

HONEST = 0.9
"""Assumed fraction of honest reports in a batch: others do not hide a record."""

WORD_BITS = 64
"""Bits of the random word by which a report is placed."""


def shuffled_of(terms: Terms, sizes: Sequence[int], honest: float = HONEST) -> Shuffled | None:
    """The guarantee of sealed batches of these sizes; None for no batch, or where no bound applies.

    Parameters
    ----------
    terms : of the campaign.
    sizes : reports of every sealed batch.
    honest : the part of every batch's reports that is honest, above 0 and at most 1.
    """
    local = terms.protocol.guarantee
    if not sizes or terms.reports.stages > 1 or local.adjacency is not Adjacency.REPLACE:
        return None
    least = min(sizes)
    hiding = max(int(least * honest), 1)
    epsilon = shuffled_epsilon(local.epsilon, hiding, DELTA, _distance(max(sizes)))
    return Shuffled(epsilon, DELTA, len(sizes), sum(sizes), least, honest, local.epsilon)


def _distance(size: int) -> float:
    """How far a batch is from one of all reports in a uniform order, at most.

    Two words are equal with the probability 2**-64, and then these reports stay in their order. An
    honest report is refused with one below 2**-40, and then missing.
    """
    equal_words = size**2 / 2 * 2.0**-WORD_BITS  # the number of pairs, each with this chance
    return float(equal_words + size * 2.0**-devices.REFUSED_BITS)
