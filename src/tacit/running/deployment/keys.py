"""The keys and certificates of a deployment: of parties, nodes and the coordinator's server.

Certificates for one server: an authority for it alone, whose certificate every party stores.

The keys of a deployment: identities sign messages, and node keys open the server's door.

An identity says who answers, and is what the plan names. A node key only lets a SuperNode connect
to its SuperLink. The two are separate, so that the operator of the network cannot answer for a
party.
"""

from __future__ import annotations

import ipaddress
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit import files
from tacit.crypto.identities import Identity
from tacit.running.session.service import read_identity


class KeyFileError(ValueError):
    """A key file that is not what it should be."""


def stored_identity(path: Path) -> Identity:
    """The identity in a file; a new one is made and written where there is none.

    Raises
    ------
    PlanError : for a file that holds no identity, or that others may read.
    """
    files.create_private(path, Identity.generate().to_bytes().hex().encode() + b"\n")
    return read_identity(path)


def stored_node_key(path: Path) -> Path:
    """The public part of the node key in a file; a new pair is made where there is none.

    Node keys are elliptic-curve keys on P-384 in OpenSSH's form, as Flower wants them.

    Raises
    ------
    KeyFileError : for a file without such a key, or that others may read.
    """
    form = serialization.PrivateFormat.OpenSSH
    files.create_private(path, _private_pem(ec.generate_private_key(CURVE), form))
    public = path.with_name(f"{path.name}.pub")
    files.write_public(public, public_node_key(path))
    return public


def public_node_key(path: Path) -> bytes:
    """The public part of the node key in a file, as one line.

    Raises
    ------
    KeyFileError : for a file without such a key, or that others may read.
    FileNotFoundError : where there is none.
    """
    files.check_private(path, KeyFileError)
    secret = partial(serialization.load_ssh_private_key, path.read_bytes(), None)
    key = _loaded(secret, ec.EllipticCurvePrivateKey, f"{path} holds no node key")
    return _public_line(key.public_key())


def checked_node_key(content: bytes, source: str | Path) -> bytes:
    """A public node key as one line, without its comment; errors name where it is from.

    Raises
    ------
    KeyFileError : for a content that is no public elliptic-curve key in OpenSSH's form.
    """
    public = partial(serialization.load_ssh_public_key, content)
    refusal = f"{source} holds no public node key"
    return _public_line(_loaded(public, ec.EllipticCurvePublicKey, refusal))


def _loaded(load: Callable[[], object], kind: Any, refusal: str) -> Any:
    """The key that is loaded, where it is one of this kind.

    Raises
    ------
    KeyFileError : otherwise, with a sentence.
    """
    try:
        key = load()
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, kind):
        raise KeyFileError(refusal)
    return key


def _public_line(key: ec.EllipticCurvePublicKey) -> bytes:
    return (
        key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b"\n"
    )


def _private_pem(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


VALID = timedelta(days=825)
"""How long certificates are valid; many TLS libraries refuse a longer time."""
EARLY = timedelta(hours=1)
"""By how much clocks may differ: a certificate is valid that long before it is used."""
OVERLAP = timedelta(days=30)
"""After what time a renewed certificate is used, unless another time is given."""
LOOPBACK = ("localhost", "127.0.0.1")
"""Names and addresses at which programs of the server's own machine reach it."""
CURVE = ec.SECP384R1()
AUTHORITY = "tacit federation authority"


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
    def renewed(self) -> Certificates:
        """Where the renewed ones wait."""
        folder = self.certificate.parent / "renewed"
        return Certificates.within(folder, folder)

    def offered(self) -> str:
        """The authorities that parties are to trust, PEM: this one, and a renewed one's."""
        there = [each.authority for each in (self, self.renewed) if each.exist]
        return "".join(path.read_text(encoding="ascii") for path in there)

    @property
    def served(self) -> x509.Certificate:
        """The server's certificate.

        Raises
        ------
        ValueError : for a file that is no certificate.
        """
        return x509.load_pem_x509_certificate(self.certificate.read_bytes())

    @property
    def exist(self) -> bool:
        """Whether all three files are there."""
        return all(path.is_file() for path in (self.authority, self.certificate, self.key))


def make_certificates(
    tls: Certificates, hosts: Sequence[str], begins: datetime | None = None
) -> None:
    """Write a new authority and a server certificate that it signed.

    The authority's private key is not stored: no other certificate can be signed with it. New
    certificates therefore mean a new authority, which the parties have to be given: by the roster
    (``renew``), or again.

    Parameters
    ----------
    tls : the files to write; existing ones are replaced.
    hosts : names and addresses under which parties reach the server; loopback is always added.
    begins : when they are used first; None means now.
    """
    now = begins or datetime.now(UTC)
    authority_key, server_key = (ec.generate_private_key(CURVE) for _ in range(2))
    names = [_general(host) for host in dict.fromkeys((*hosts, *LOOPBACK))]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    authority = _builder(AUTHORITY, authority_key, now, is_authority=True)
    certificate = (
        _builder("tacit federation server", server_key, now, is_authority=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(issuer, critical=False)
    )
    files.write_private(tls.key, _private_pem(server_key, serialization.PrivateFormat.PKCS8))
    for path, made in ((tls.certificate, certificate), (tls.authority, authority)):
        signed = made.sign(authority_key, hashes.SHA384())
        files.write_public(path, signed.public_bytes(serialization.Encoding.PEM))


def certified(tls: Certificates, hosts: Sequence[str], option: str) -> tuple[str, ...]:
    """The names and addresses of a server's certificate, which is made if there is none.

    Parameters
    ----------
    tls : the server's files.
    hosts : names and addresses that the certificate must have.
    option : by which a user gives them.

    Raises
    ------
    KeyFileError : without a certificate and hosts to make one for, and for other hosts.
    """
    if not tls.exist:
        if not hosts:
            raise KeyFileError(f"the server has no certificate yet, and it needs {option}")
        make_certificates(tls, hosts)
    known = names_of(tls.served)
    if not set(hosts) <= set(known):
        raise KeyFileError(
            f"the server has a certificate for {', '.join(known)}, not for {', '.join(hosts)}; "
            f"remove {tls.authority} to make another, and send it to every party, or invite all "
            "sites again"
        )
    return known


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The names and addresses that a certificate is for."""
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(name.value) for name in names)


def begins_of(certificate: x509.Certificate) -> datetime:
    """The time from which a certificate is used."""
    return certificate.not_valid_before_utc + EARLY


def trusted(authorities: str, now: datetime) -> str:
    """Of a federation's authorities, the one in use and those that are to follow, PEM.

    The dates in the certificates decide, by the reader's own clock. Who stole the key of an earlier
    server is therefore taken for the server until the next authority begins, and not after it.

    Raises
    ------
    KeyFileError : for a text that holds no certificates.
    """
    try:
        known = x509.load_pem_x509_certificates(authorities.encode())
    except ValueError:
        raise KeyFileError("the federation's authority is no certificate") from None
    latest = max((begins_of(each) for each in known if begins_of(each) <= now), default=None)
    kept = [each for each in known if latest is None or begins_of(each) >= latest]
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in kept).decode()


def renew(tls: Certificates, begins: datetime | None, now: datetime) -> datetime:
    """Make certificates that follow the server's, for the same names; when they are used first.

    Parameters
    ----------
    tls : the server's files.
    begins : when; None means after ``OVERLAP``, or before the present ones end.
    now : the time.

    Raises
    ------
    KeyFileError : without certificates that are valid, for others that wait already, and for a
        time that is over or after the end of the present ones.
    """
    last = tls.served.not_valid_after_utc - EARLY if tls.exist else now
    if last <= now:
        raise KeyFileError(
            f"no site can be reached by a certificate that is missing or has expired: remove "
            f"{tls.authority}, and make another with tacit keys --coordinator --host"
        )
    if tls.renewed.exist:
        raise KeyFileError(
            f"renewed certificates wait already, until {begins_of(tls.renewed.served)}: "
            f"remove {tls.renewed.authority.parent} to make others"
        )
    begins = begins or min(now + OVERLAP, last)
    if not now < begins <= last:
        first, end, given = (f"{time:%Y-%m-%d %H:%M}" for time in (now, last, begins))
        raise KeyFileError(
            f"the new certificates are used from a time after {first} and up to {end} UTC, "
            f"got {given}"
        )
    make_certificates(tls.renewed, names_of(tls.served), begins)
    return begins


def has_issued(served: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether a certificate names this authority's key as its issuer's."""
    issuer = served.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    subject = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return issuer.key_identifier == subject.key_identifier


def is_due(tls: Certificates, now: datetime) -> bool:
    """Whether renewed certificates wait whose time has come."""
    return tls.renewed.exist and begins_of(tls.renewed.served) <= now


def use_renewed(tls: Certificates, now: datetime) -> None:
    """Put renewed certificates in the place of a server's, once their time has come.

    They are copied before they are removed, so that a machine that stops here begins again.
    """
    if is_due(tls, now):
        waiting = tls.renewed
        files.write_private(tls.key, waiting.key.read_bytes())
        files.write_public(tls.certificate, waiting.certificate.read_bytes())
        files.write_public(tls.authority, waiting.authority.read_bytes())
        shutil.rmtree(waiting.authority.parent)


def _builder(
    subject: str, key: ec.EllipticCurvePrivateKey, now: datetime, is_authority: bool
) -> x509.CertificateBuilder:
    """A certificate of the authority's, with what all have."""
    constraints = x509.BasicConstraints(is_authority, path_length=0 if is_authority else None)
    uses = x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + VALID)
        .add_extension(identifier, critical=False)
        .add_extension(constraints, critical=True)
        .add_extension(uses, critical=True)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
