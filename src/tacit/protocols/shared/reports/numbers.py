"""How many records will report: a first round where the number of cells is to suit it."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from tacit.data.clients import Clients
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Protocol, Query, Reply, step
from tacit.protocol.devices import counts_in


@step()
def count_records(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the number of records.

    It costs nothing: a client sends one report a record afterwards, so that number is public at the
    adjacencies of such reports, which replace a record or its score. The server learns it.
    """
    return {"records": clients.sizes}


def reporting_records(protocol: Protocol, clients: int) -> Generator[Query, Reply, int]:
    """How many records all clients say that they have; of devices, how many are expected.

    Raises
    ------
    ValueError : for numbers below 0.
    """
    reply = yield Query(count_records, protocol)
    if counts_in(reply) is not None:
        return clients
    records = np.asarray(reply["records"])
    if records.min() < 0:
        raise ValueError(f"numbers of records must be at least 0, got {records.min()}")
    return int(records.sum())
