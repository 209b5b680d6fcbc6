"""Short codes that people compare by phone, for contents of any length.

A code is a slow hash: scrypt (RFC 7914) with N = 2^17, r = 8, p = 1 takes 128 MiB and about 0.4
seconds. An attacker can do one of two things, and the two codes have their lengths for these.

**A second content for a given code.** A thief of an invitation makes keys until their code is that
of the true site's keys. The true keys are random, and he cannot choose them. So t evaluations
succeed with probability t / 2^b. ``site_code`` has b = 48 bits, 12 hexadecimal digits: certain
success takes 2^48 x 0.4 s, 3.6 million years of one core, and 2^30 evaluations (14 years)
succeed with probability 2^-18. A fast hash of as many bits would fall in days.

**Two contents with one code, both the attacker's.** A coordinator that lies shows one roster to one
site and another roster to the rest; it chooses keys in both. Of t evaluations for each, some pair
agrees with probability about t^2 / 2^b (the birthday bound). ``federation_code`` has b = 80 bits,
20 digits: the pair takes 2 x 2^40 evaluations, about 28,000 years of one core, each with 128
MiB. With 48 bits it would take 2 x 2^24 evaluations, 155 days. Commitments to nonces (Vaudenay
2005) would allow fewer digits. They need every site on line at once, before anyone may compare.
"""

from __future__ import annotations

import hashlib

GROUP = 4
"""Hexadecimal digits of a group."""
SITE_BYTES, FEDERATION_BYTES = 6, 10
COST, BLOCK, MEMORY = 2**17, 8, 2**28


def site_code(content: bytes) -> str:
    """The code of what a site and a coordinator told each other: 48 bits, three groups.

    It resists a second content for a given code, not two contents of one attacker.

    Examples
    --------
    >>> site_code(b"keys")
    '09c5-1154-13b9'
    """
    return _grouped(_slow_hash(content, b"tacit site code 1", SITE_BYTES))


def federation_code(content: bytes) -> str:
    """The code of a roster that one party chose and several compare: 80 bits, five groups.

    Examples
    --------
    >>> federation_code(b"roster")
    '5533-f6f3-40df-9c6c-3aa8'
    """
    return _grouped(_slow_hash(content, b"tacit federation code 1", FEDERATION_BYTES))


def is_code(typed: str, code: str) -> bool:
    """Whether a person typed a code, with any blanks, dashes and capitals.

    Examples
    --------
    >>> is_code("3F2A 91cc77d0", "3f2a-91cc-77d0")
    True
    """
    return _digits(typed) == _digits(code)


def _digits(text: str) -> str:
    return "".join(text.replace("-", "").split()).lower()


def _slow_hash(content: bytes, purpose: bytes, length: int) -> str:
    digest = hashlib.sha256(content).digest()
    key = hashlib.scrypt(digest, salt=purpose, n=COST, r=BLOCK, p=1, maxmem=MEMORY, dklen=length)
    return key.hex()


def _grouped(digits: str) -> str:
    return "-".join(digits[start : start + GROUP] for start in range(0, len(digits), GROUP))
