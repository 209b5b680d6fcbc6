"""What coordinator and site send each other before the first run, as files of JSON.

An *invitation* goes from the coordinator to one site: the plan, the coordinator's identity, the
certificate of its server's authority, the server's address, and a secret of this invitation. An
*answer* goes back: the site's public keys. A *roster* is the plan with the keys of all sites and a
number that rises from roster to roster, signed by the coordinator's identity.

Files travel by mail, where they may be read, lost, repeated and replaced. Two codes,
compared by phone, detect a replacement:

- ``Answer.code`` covers the whole invitation and the site's keys. If both ends show the same code,
  the site has the coordinator's own certificate, identity and plan, and the coordinator has the
  site's own keys.
- ``roster_code`` covers the names and keys of all sites and all settings. If all sites see the
  same code, and each finds its own key under its own name, then no name among them stands for a key
  that the coordinator invented.

The secret shows that an answer was made by a reader of the invitation, and opens the roster at the
server. A thief of an invitation has it too, so nothing else rests on it.

Short codes that people compare by phone, for contents of any length.

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

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import scrypt, sha256
from typing import Any, NamedTuple

from tacit.crypto.identities import KEY_BYTES, SIGNATURE_BYTES, Identity, is_signed
from tacit.running.session.plan_file import Plan

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
    return _code(content, b"tacit site code 1", SITE_BYTES)


def federation_code(content: bytes) -> str:
    """The code of a roster that one party chose and several compare: 80 bits, five groups.

    Examples
    --------
    >>> federation_code(b"roster")
    '5533-f6f3-40df-9c6c-3aa8'
    """
    return _code(content, b"tacit federation code 1", FEDERATION_BYTES)


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


def _code(content: bytes, purpose: bytes, length: int) -> str:
    """So many bytes of a slow hash of a content, in groups of hexadecimal digits."""
    digest = sha256(content).digest()
    key = scrypt(digest, salt=purpose, n=COST, r=BLOCK, p=1, maxmem=MEMORY, dklen=length)
    digits = key.hex()
    return "-".join(digits[start : start + GROUP] for start in range(0, len(digits), GROUP))


INVITATION, ANSWER, ROSTER = "tacit-invitation/1", "tacit-answer/1", "tacit-roster/3"
SECRET_BYTES = 32
DIGEST_BYTES = 32
LENGTHS = {
    "coordinator": KEY_BYTES,
    "identity": KEY_BYTES,
    "signature": SIGNATURE_BYTES,
    "secret": SECRET_BYTES,
    "invitation": DIGEST_BYTES,
    "proof": DIGEST_BYTES,
}
"""Bytes of the fields that are bytes."""
MAX_LETTER = 2**20
"""Bytes above which a file is not read."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):\d{1,5}")


def host_of(address: str) -> str:
    """The host in an address."""
    return address.rpartition(":")[0].strip("[]")


def address_of(host: str, port: int) -> str:
    """Host and port in one text, with an address of IPv6 in brackets.

    Examples
    --------
    >>> address_of("::1", 8443)
    '[::1]:8443'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class LetterError(ValueError):
    """A file that is not the invitation, answer or roster that it should be."""


@dataclass(frozen=True)
class Invitation:
    """What a coordinator sends to one site.

    Parameters
    ----------
    site : the site's name in the plan.
    server : the server's address, as host:port.
    authority : the certificate of its authority, PEM.
    coordinator : the coordinator's public identity key, 32 bytes.
    plan : the text of the plan; keys of sites may still be missing in it.
    secret : 32 random bytes of this invitation.
    """

    site: str
    server: str
    authority: str
    coordinator: bytes
    plan: str
    secret: bytes = field(repr=False)

    @classmethod
    def of_bytes(cls, content: bytes) -> Invitation:
        """The invitation in a file.

        Raises
        ------
        LetterError : for a file that holds none.
        """
        fields = _fields(content, INVITATION, *cls.__dataclass_fields__)
        if not ADDRESS.fullmatch(fields["server"]):
            raise LetterError(f"an invitation names a HOST:PORT, got {fields['server']!r:.80}")
        return cls(**fields)

    def to_bytes(self) -> bytes:
        """The file."""
        return _file(INVITATION, asdict(self))

    @property
    def digest(self) -> bytes:
        """SHA-256 of the file."""
        return sha256(self.to_bytes()).digest()

    @property
    def token(self) -> str:
        """What opens the roster at the server; it does not reveal the secret."""
        return _proof(self.secret, b"tacit roster token 1").hex()


@dataclass(frozen=True)
class Answer:
    """What a site sends back.

    Parameters
    ----------
    site : its name.
    identity : its public identity key, 32 bytes.
    node_key : its public node key, one line in OpenSSH's form.
    invitation : the digest of the invitation.
    signature : by the identity, over all of these.
    proof : a keyed digest of all of these, by the invitation's secret.
    """

    site: str
    identity: bytes
    node_key: str
    invitation: bytes
    signature: bytes
    proof: bytes

    @classmethod
    def to(cls, invitation: Invitation, identity: Identity, node_key: str) -> Answer:
        """The answer of a site with these keys."""
        unsigned = cls(invitation.site, identity.public, node_key, invitation.digest, b"", b"")
        said, secret = unsigned._words(), invitation.secret
        return replace(unsigned, signature=identity.sign(said), proof=_proof(secret, said))

    @classmethod
    def of_bytes(cls, content: bytes) -> Answer:
        """The answer in a file.

        Raises
        ------
        LetterError : for a file that holds none.
        """
        return cls(**_fields(content, ANSWER, *cls.__dataclass_fields__))

    def to_bytes(self) -> bytes:
        """The file."""
        return _file(ANSWER, asdict(self))

    @property
    def code(self) -> str:
        """What both ends compare by phone."""
        return site_code(self._words())

    def _words(self) -> bytes:
        words = [ANSWER, self.site, self.identity.hex(), self.node_key, self.invitation.hex()]
        return json.dumps(words, separators=(",", ":")).encode()

    def check(self, invitation: Invitation) -> None:
        """Refuse an answer to another invitation, or one that its own keys did not sign.

        Raises
        ------
        LetterError : with what does not fit.
        """
        if (self.site, self.invitation) != (invitation.site, invitation.digest):
            raise LetterError(
                f"this answer of {self.site!r} is not to the invitation that is open for "
                f"{invitation.site!r}: it may be an older one"
            )
        said = self._words()
        if not hmac.compare_digest(self.proof, _proof(invitation.secret, said)):
            raise LetterError(f"this answer of {self.site!r} was changed, or made without its file")
        if not is_signed(self.identity, said, self.signature):
            raise LetterError(f"this answer of {self.site!r} is not signed by the key in it")


class NumberedPlan(NamedTuple):
    """What a roster says.

    Parameters
    ----------
    number : a later roster of the coordinator has a larger one.
    plan : the text of the plan, with all keys.
    authority : the certificates of the server's authorities, PEM: the one in use, and one that is
        to follow; empty leaves a site those that it has.
    """

    number: int
    plan: str
    authority: str = ""


def roster_of(numbered: NumberedPlan, identity: Identity) -> bytes:
    """The file of a plan with all keys, signed by the coordinator."""
    signature = identity.sign(_roster_words(numbered))
    fields = {**numbered._asdict(), "number": str(numbered.number), "signature": signature}
    return _file(ROSTER, fields)


def read_roster(content: bytes, coordinator: bytes) -> NumberedPlan:
    """What a roster's file says.

    Raises
    ------
    LetterError : for a file that holds none, or that the coordinator did not sign.
    """
    fields = _fields(content, ROSTER, *NumberedPlan._fields, "signature")
    if not NUMBER.fullmatch(fields["number"]):
        raise LetterError(f"a roster's number has 1 to 18 digits, got {fields['number']!r:.80}")
    numbered = NumberedPlan(int(fields["number"]), fields["plan"], fields["authority"])
    if not is_signed(coordinator, _roster_words(numbered), fields["signature"]):
        raise LetterError("the roster is not signed by the coordinator that sent the invitation")
    return numbered


def roster_code(plan: Plan) -> str:
    """What all sites of a plan compare: the agreement that they will sign, and their names.

    Raises
    ------
    PlanError : where a key is missing.
    """
    return federation_code(plan.words)


def _file(kind: str, fields: Mapping[str, Any]) -> bytes:
    """Texts, and bytes as hexadecimal digits."""
    texts = {name: each.hex() if isinstance(each, bytes) else each for name, each in fields.items()}
    return f"{json.dumps({'kind': kind, **texts}, indent=1)}\n".encode()


def _fields(content: bytes, kind: str, *names: str) -> dict[str, Any]:
    """A letter's fields: a site's name is checked, and those of ``LENGTHS`` are bytes."""
    what = kind.removeprefix("tacit-").partition("/")[0]
    try:
        fields: Any = json.loads(content) if len(content) <= MAX_LETTER else None
        # half of a pair of surrogates is in no text that can be signed or written
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not str(fields.get("kind")).startswith("tacit-"):
        raise LetterError(f"this file holds no {what} of tacit")
    if fields["kind"] != kind:
        raise LetterError(f"this file holds {fields['kind']!r:.40}, and {kind} is needed")
    if set(fields) != {"kind", *names} or not all(type(each) is str for each in fields.values()):
        raise LetterError(f"this {what} does not hold {', '.join(names)}, each as a text")
    if "site" in names and not NAME.fullmatch(fields["site"]):
        raise LetterError(f"an {what} names a site, got {fields['site']!r:.80}")
    for name in filter(LENGTHS.__contains__, names):
        digits, text = 2 * LENGTHS[name], fields[name]
        if not re.fullmatch(rf"[0-9a-f]{{{digits}}}", text):
            raise LetterError(f"{name} must be {digits} hexadecimal digits, got {text!r:.80}")
        fields[name] = bytes.fromhex(text)
    return {name: fields[name] for name in names}


def _roster_words(numbered: NumberedPlan) -> bytes:
    return json.dumps([ROSTER, *numbered], separators=(",", ":")).encode()


def _proof(secret: bytes, message: bytes) -> bytes:
    return hmac.digest(secret, message, "sha256")
