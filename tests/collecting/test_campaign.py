"""Campaigns: what is signed, what is refused, and that nothing changes under a name."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.collecting.campaign import Campaign, CampaignError, Signed, Terms
from tacit.collecting.folder import Folder
from tacit.crypto.identities import Identity
from tacit.protocol.registry import protocol_of
from tests.collecting.support import LOCAL_TREE, new_folder, terms_of

TOML = """
name = "a trial"
protocol = "score-histogram"
devices = 100
opens = 2026-01-01T00:00:00Z
closes = 2026-02-01T00:00:00Z
[settings]
trust = "local"
epsilon = 1.0
height = 3
scale = "even"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "campaign.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_the_terms(tmp_path: Path) -> None:
    terms = Terms.from_toml(written(tmp_path, TOML))
    assert terms.devices == 100
    assert terms.protocol == protocol_of(LOCAL_TREE[0], {**LOCAL_TREE[1], "epsilon": 1.0})


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ('name = "a trial"', 'name = ""', "name must have 1 to 100 characters"),
        ("devices = 100", "devices = 1", "devices must be at least 2, got 1"),
        ("closes = 2026-02-01", "closes = 2025-02-01", "closes must be after opens"),
        ("T00:00:00Z\ncloses", "T00:00:00\ncloses", "opens must be a date and time"),
        ("devices = 100", "devices = 100\nspeed = 3", r"unknown fields \['speed'\]"),
        ("devices = 100", f"devices = {'[' * 5000}", "campaign.toml: maximum recursion depth"),
        ("devices = 100", "", r"missing fields \['devices'\]"),
        ('trust = "local"', 'trust = "secure-sum"', "has no reports of single devices"),
        ("height = 3", "height = 9", "height must be at most 7"),
        ("epsilon = 1.0", "epsilon = -1.0", "epsilon must be positive and finite, got -1.0"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, before: str, after: str, error: str) -> None:
    path = written(tmp_path, TOML.replace(before, after))
    with pytest.raises(ValueError, match=error):
        Folder(tmp_path / "campaign").signed(Terms.from_toml(path))


def test_a_campaign_is_signed_once_and_never_changes(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    digest = folder.campaign.digest
    assert Folder(folder.path).signed(terms_of()).digest == digest
    changed = replace(
        terms_of(), protocol=protocol_of(LOCAL_TREE[0], {**LOCAL_TREE[1], "epsilon": 3.0})
    )
    with pytest.raises(CampaignError, match="with other epsilon, settings; devices refuse"):
        Folder(folder.path).signed(changed)


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    assert folder.coordinator_key.stat().st_mode & 0o077 == 0
    assert folder.tokens
    assert (folder.path / "keys" / "tokens.key").stat().st_mode & 0o077 == 0


def forged(signed: Signed) -> str:
    return replace(signed, document=signed.document.replace(b"2.0", b"9.0")).to_json()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"document": 3}', "null", "[" * 100_000])
def test_what_is_no_signed_document_is_refused(text: str) -> None:
    with pytest.raises(CampaignError, match="no signed document"):
        Signed.from_json(text)


def test_a_changed_document_is_refused(tmp_path: Path) -> None:
    signed = new_folder(tmp_path).campaign.signed
    with pytest.raises(CampaignError, match="signature"):
        Signed.from_json(forged(signed))


def test_a_document_of_another_format_is_no_campaign() -> None:
    signed = Signed.by(Identity.generate(), {"format": "tacit-campaign/2"})
    with pytest.raises(CampaignError, match="format must be 'tacit-campaign/1'"):
        Campaign(signed)


def test_the_document_says_what_a_device_computes(tmp_path: Path) -> None:
    content: dict[str, Any] = json.loads(new_folder(tmp_path).campaign.signed.document)
    assert content["report"]["kind"] == "unary"
    assert content["epsilon"] == 2.0
    assert content["protects"] == "replace"
    assert datetime.fromtimestamp(content["opens"], UTC).year == 2020
