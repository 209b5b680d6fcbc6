"""The keys and certificates of a deployment: of parties, nodes and the coordinator's server.

Certificates for one server: an authority for it alone, whose certificate every party stores.

The keys of a deployment: identities sign messages, and node keys open the server's door.

An identity says who answers, and is what the plan names. A node key only lets a SuperNode connect
to its SuperLink. The two are separate, so that the operator of the network cannot answer for a
party.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.crypto.identities import Identity
from tacit.running.files import write_private, write_public
from tacit.running.session.service import read_identity


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
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
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
        key = serialization.load_ssh_public_key(path.read_bytes())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise KeyFileError(f"{path} holds no public node key")
    return _public_line(key)


def _node_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_ssh_private_key(path.read_bytes(), None)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise KeyFileError(f"{path} holds no node key")
    return key


def _public_line(key: ec.EllipticCurvePublicKey) -> bytes:
    return (
        key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b"\n"
    )


def _check_private(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise KeyFileError(f"{path} may be read by its owner only: chmod 600, it has mode {mode:o}")


VALID = timedelta(days=825)
"""How long certificates are valid; many TLS libraries refuse a longer time."""
LOOPBACK = ("localhost", "127.0.0.1")
"""Names and addresses at which programs of the server's own machine reach it."""
CURVE = ec.SECP384R1()


@dataclass(frozen=True)
class Certificates:
    """The files of a server's TLS.

    Parameters
    ----------
    authority : the authority's certificate, which every party receives.
    certificate : the server's own.
    key : the server's private key.
    """

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def within(cls, folder: Path, private: Path) -> Certificates:
        """Where a coordinator keeps them: the authority in the open, the rest in private."""
        return cls(folder / "ca.crt", private / "server.pem", private / "server.key")

    @property
    def exist(self) -> bool:
        """Whether all three files are there."""
        return all(path.is_file() for path in (self.authority, self.certificate, self.key))


def make_certificates(files: Certificates, hosts: Sequence[str]) -> None:
    """Write a new authority and a server certificate that it signed.

    The authority's private key is not stored: no other certificate can be signed with it. New
    certificates therefore mean a new authority, which the parties have to be given again.

    Parameters
    ----------
    files : the files to write; existing ones are replaced.
    hosts : names and addresses under which parties reach the server; loopback is always added.
    """
    now = datetime.now(UTC)
    authority_key, server_key = (ec.generate_private_key(CURVE) for _ in range(2))
    authority = _authority(authority_key, now)
    certificate = _server(server_key, authority, authority_key, (*hosts, *LOOPBACK), now)
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    write_private(files.key, _private_pem(server_key))
    write_public(files.certificate, pem)
    write_public(files.authority, authority.public_bytes(serialization.Encoding.PEM))


def hosts_of(certificate: Path) -> tuple[str, ...]:
    """The names and addresses that a certificate is for.

    Raises
    ------
    ValueError : for a file that is no certificate.
    """
    parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(name.value) for name in names)


def ends_of(certificate: Path) -> datetime:
    """The time until which a certificate is valid.

    Raises
    ------
    ValueError : for a file that is no certificate.
    """
    return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tacit federation authority")])
    return (
        _builder(name, name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA384())
    )


def _server(
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
    now: datetime,
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tacit federation server")])
    names = x509.SubjectAlternativeName([_general(host) for host in dict.fromkeys(hosts)])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(name, authority.subject, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(names, critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA384())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    key_identifier = x509.SubjectKeyIdentifier.from_public_key(key)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID)
        .add_extension(key_identifier, critical=False)
    )


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
