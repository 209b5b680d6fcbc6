"""The keys of a deployment: identities sign messages, and node keys open the server's door.

An identity says who answers, and is what the plan names. A node key only lets a SuperNode connect
to its SuperLink. The two are separate, so that the operator of the network cannot answer for a
party.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from tacit.crypto.identities import Identity
from tacit.running.deployment.files import write_private, write_public
from tacit.running.session.party.service import read_identity


class KeyFileError(ValueError):
    """A key file that is not what it should be."""


def stored_identity(path: Path) -> Identity:
    """The identity in a file; a new one is made and written where there is none.

    Raises
    ------
    PlanError : for a file that holds no identity, or that others may read.
    """
    if not path.exists():
        write_private(path, Identity.generate().to_bytes().hex().encode() + b"\n")
    return read_identity(path)


def public_path(node_key: Path) -> Path:
    """Where the public part of a node key lies."""
    return node_key.with_name(f"{node_key.name}.pub")


def stored_node_key(path: Path) -> Path:
    """The public part of the node key in a file; a new pair is made where there is none.

    Node keys are elliptic-curve keys on P-384 in OpenSSH's form, as Flower wants them.

    Raises
    ------
    KeyFileError : for a file without such a key, or that others may read.
    """
    public = public_path(path)
    if not path.exists():
        key = ec.generate_private_key(ec.SECP384R1())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        write_private(path, secret)
    else:
        _check_private(path)
        key = _node_key(path)
    write_public(public, _public_line(key.public_key()))
    return public


def checked_node_key(path: Path) -> bytes:
    """A public node key as one line, without its comment.

    Raises
    ------
    KeyFileError : for a file that holds no public elliptic-curve key in OpenSSH's form.
    """
    try:
        key = load_ssh_public_key(path.read_bytes())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise KeyFileError(f"{path} holds no public node key")
    return _public_line(key)


def _node_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_ssh_private_key(path.read_bytes(), None)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise KeyFileError(f"{path} holds no node key")
    return key


def _public_line(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"


def _check_private(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise KeyFileError(f"{path} may be read by its owner only: chmod 600, it has mode {mode:o}")
