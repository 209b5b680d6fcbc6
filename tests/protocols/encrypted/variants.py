"""Every form of an AUC of hidden counts, by name: masked values, and the paper's ciphertexts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.published.fhe.protocol import FheAUC

CHECKED = "bfv(adversary=malicious)"

VARIANTS: Mapping[str, Callable[..., Any]] = {
    "masked": EncryptedAUC,
    "masked, malicious": partial(EncryptedAUC, adversary="malicious"),
    "bfv": partial(FheAUC, scheme="bfv"),
    "malicious": partial(FheAUC, scheme=CHECKED),
    "ckks": partial(FheAUC, scheme="ckks"),
}
