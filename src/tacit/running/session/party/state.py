"""What a party keeps between its messages, where its process does not live as long as the run."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tacit.crypto.identities import Identity, Roster
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol import fields
from tacit.protocol.conversation import Protocol
from tacit.protocol.values import Kind
from tacit.running.persons import CountedSeed
from tacit.running.session.party.debits import Account
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
        rho = None if values["rho"] is None else float(values["rho"])
        return Cost(float(values["epsilon"]), float(values["delta"]), adjacency, rho)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise fields.MessageError(f"not a cost: {error}") from None


def _identity_parts(identity: Any) -> dict[str, Any]:
    return {"private": identity.to_bytes()}


def _key_parts(key: Any) -> dict[str, Any]:
    return {"data": key.private_bytes_raw()}


SESSION_TYPES = (Account, CountedSeed, Payment, Roster)

SESSION_KINDS = (
    Kind(Cost, cost_values, lambda **values: cost_of(values)),
    Kind(Identity, _identity_parts, Identity.from_bytes),
    Kind(X25519PrivateKey, _key_parts, X25519PrivateKey.from_private_bytes),
    *map(Kind.of, SESSION_TYPES),
)
"""The classes whose values every client's state may hold."""


def state_kinds(protocol: Protocol) -> tuple[Kind, ...]:
    """The classes whose values the state of a client of this protocol may hold.

    Raises
    ------
    TypeError : for classes of one name, of which only one could be read again.
    """
    kinds = (*SESSION_KINDS, *map(Kind.of, protocol.state_types))
    names = [kind.name for kind in kinds]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TypeError(f"{protocol.name} notes values of two classes called {', '.join(twice)}")
    return kinds
