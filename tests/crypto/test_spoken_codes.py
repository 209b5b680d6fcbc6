"""Codes for the phone: their lengths, and what they tell apart."""

from __future__ import annotations

import re

import pytest

from tacit.running.deployment.letters import federation_code, is_code, site_code


def test_the_codes_have_the_bits_that_their_derivation_needs() -> None:
    """One changed bit and the purpose change a code."""
    site, other, federation = site_code(b"x"), site_code(b"y"), federation_code(b"x")
    assert re.fullmatch(r"([0-9a-f]{4}-){2}[0-9a-f]{4}", site)
    assert re.fullmatch(r"([0-9a-f]{4}-){4}[0-9a-f]{4}", federation)
    assert len({site, other, federation[:14]}) == 3


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("3f2a-91cc-77d0", True),
        (" 3F2A 91CC 77D0\n", True),
        ("3f2a91cc77d0", True),
        ("3f2a-91cc-77d1", False),
        ("3f2a-91cc", False),
        ("", False),
    ],
)
def test_a_typed_code_may_have_blanks_dashes_and_capitals(typed: str, same: bool) -> None:
    assert is_code(typed, "3f2a-91cc-77d0") is same
