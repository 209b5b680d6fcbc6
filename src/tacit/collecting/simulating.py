"""Payloads as devices would send them, from the client steps: for tests, vectors and benchmarks."""

from __future__ import annotations

from tacit.collecting.campaign import Terms
from tacit.data.clients import Clients
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query
from tacit.protocol.devices import Payloads
from tacit.protocols.shared.reports.turns import at_their_turn


def device_payloads(terms: Terms, query: Query, clients: Clients, noise: NoiseSource) -> Payloads:
    """What devices send that speak in a stage, one record each, shape (M, bytes).

    Parameters
    ----------
    terms : of the campaign.
    query : of the stage.
    clients : made up, one record each; all of them speak in this stage. No ledger is debited.
    noise : of a seed, or the system's where a test is about it.
    """
    state = ClientState()
    if terms.reports.first_turns:
        rounds = terms.reports.stage_of(query) or 0
        query = at_their_turn(clients, query, state, rounds)
    return terms.reports.payloads(query, query.step.answer(clients, query, noise, state))
