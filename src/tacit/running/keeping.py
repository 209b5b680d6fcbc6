"""What a party keeps between its letters, where its process does not live as long as the run."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tacit.crypto.homomorphic_keys import Introduction, Meeting, Member
from tacit.crypto.identities import Identity, Roster
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocols.encrypted_steps import Seat
from tacit.protocols.flipped import Flipped
from tacit.protocols.messages import MessageError
from tacit.protocols.two_round_auc import Turns
from tacit.protocols.values import Kind
from tacit.running.debits import Account
from tacit.running.spending import Payment


def cost_values(cost: Cost) -> dict[str, Any]:
    """A cost as values that can be sent."""
    adjacency = None if cost.adjacency is None else cost.adjacency.value
    return {
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        "adjacency": adjacency,
        "rho": cost.rho,
    }


def cost_of(values: dict[str, Any]) -> Cost:
    """The cost that ``cost_values`` gave.

    Raises
    ------
    MessageError : for values that are no cost.
    """
    try:
        adjacency = None if values["adjacency"] is None else Adjacency(values["adjacency"])
        return Cost(values["epsilon"], values["delta"], adjacency, values["rho"])
    except (KeyError, TypeError, ValueError) as error:
        raise MessageError(f"not a cost: {error}") from None


def _identity_parts(identity: Any) -> dict[str, Any]:
    return {"private": identity.to_bytes()}


def _key_parts(key: Any) -> dict[str, Any]:
    return {"data": key.private_bytes_raw()}


OWN = (Account, Payment, Flipped, Seat, Member, Meeting, Introduction, Roster)

KEPT = (
    Kind(Cost, cost_values, lambda **values: cost_of(values)),
    Kind(Turns, Turns._asdict, Turns),
    Kind(Identity, _identity_parts, Identity.from_bytes),
    Kind(X25519PrivateKey, _key_parts, X25519PrivateKey.from_private_bytes),
    *(Kind.of(own) for own in OWN),
)
"""The classes whose values a party's state may hold."""

LASTING = (Flipped,)
"""Notes that outlive a run: what was released once and may be used again at no cost."""
