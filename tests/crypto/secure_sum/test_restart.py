"""Another attempt at a sum: only when the last can never be unmasked, with fresh keys, and
exact."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy

import numpy as np
import pytest

from tacit.crypto import identities as ids
from tacit.crypto.secure_sum import consistency, graph, messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.messages import Kind
from tacit.crypto.secure_sum.terms import SumRestart
from tests.crypto.secure_sum.transporting import HEADER, ROUNDS, Federation, flipped

CLIENTS = 5
SENT = np.random.default_rng(0).integers(-1000, 1001, (CLIENTS, 3))
RING = graph.Neighbourhood(2, 2, 4, 1)


def given_up(federation: Federation, clients: Collection[int] = range(CLIENTS)) -> SumRestart:
    restart = SumRestart(federation.terms)
    for index in clients:
        restart.receive(index, federation.clients[index].give_up())
    return restart


def joined(
    federation: Federation,
    index: int,
    message: bytes | Mapping[int, bytes],
    last: SumClient | None = None,
) -> SumClient:
    """A client in the next attempt, by a message or by the statements in it."""
    terms = SumRestart(federation.terms).terms
    sent = message if isinstance(message, bytes) else federation.written(Kind.RESTART, message)
    return SumClient(federation.identities[index], terms, sent, last)


def begun_again(
    federation: Federation, restart: SumRestart, clients: Collection[int] = range(CLIENTS)
) -> Federation:
    """The next attempt, which these clients join."""
    again, members = copy(federation), list(federation.clients)
    for index in clients:
        members[index] = joined(federation, index, restart.message(), members[index])
    again.begin(restart.terms, members)
    again.given = [dict.fromkeys(clients, b"")]
    return again


def records_of(message: bytes) -> dict[int, bytes]:
    return messages.unpack_records(message[HEADER:], messages.ENDED_BYTES, CLIENTS)


@pytest.mark.parametrize("rounds", range(ROUNDS))
@pytest.mark.parametrize("around", [graph.Neighbourhood.complete(CLIENTS), RING])
def test_an_attempt_that_nobody_revealed_in_is_begun_again_and_exact(
    rounds: int, around: graph.Neighbourhood
) -> None:
    """Twice, as that of the second attempt is another one's statement."""
    federation = Federation(CLIENTS, around=around).carry(SENT, rounds=rounds)
    for attempt in (1, 2):
        federation = begun_again(federation, given_up(federation))
        assert federation.terms.attempt == attempt
    result = federation.sum(SENT)
    assert result.clients == tuple(range(CLIENTS))
    assert np.array_equal(result.total, SENT.sum(axis=0))


def test_who_left_an_attempt_may_join_the_next_where_tau_gave_it_up() -> None:
    """Too few vectors came; four of five give up, the fifth was asleep and joins by statements."""
    federation = Federation(CLIENTS).carry(SENT, rounds=2)
    with pytest.raises(ids.TooFewError, match="masked of at least 4 clients must come, got 3"):
        federation.round(SENT, [2, 2, 5, 5, 5])
    again = begun_again(federation, given_up(federation, range(1, 5)))
    assert np.array_equal(again.sum(SENT).total, SENT.sum(axis=0))
    with pytest.raises(ids.RoundError, match="client 0 cannot mask now: it is done"):
        federation.answer(0)


def test_no_secret_of_an_attempt_outlives_its_statement() -> None:
    federation = Federation(CLIENTS).carry(SENT, rounds=4)
    client = federation.clients[0]
    assert client.state["shares"]
    client.give_up()
    state = client.state
    assert [state[name] for name in ("encryption", "masking", "seed")] == [b""] * 3
    assert not state["secrets"]
    assert not state["shares"]
    for step in ("reveal", "certify", "share"):
        with pytest.raises(ids.RoundError, match=f"cannot {step} now: it is done"):
            getattr(client, step)(federation.given[-1][0])
    resumed = SumClient.resumed(federation.identities[0], federation.terms, state)
    with pytest.raises(ids.RoundError, match="cannot give up an attempt that is over"):
        resumed.give_up()


def test_who_revealed_neither_gives_up_nor_joins_again() -> None:
    federation = Federation(CLIENTS).carry(SENT, rounds=4)
    federation.round(SENT, [5, 4, 4, 4, 4])
    restart = given_up(federation, range(1, 5))
    with pytest.raises(ids.RoundError, match="client 0 cannot give up an attempt that is over"):
        federation.clients[0].give_up()
    with pytest.raises(ids.RefusedError, match="client 0 revealed its shares in the last attempt"):
        begun_again(federation, restart)


def test_no_two_sums_of_one_step_are_opened() -> None:
    """Four of five clients are summed, and revealed. The fifth, told to give up, is offered another
    attempt in which all five are summed; the difference would be its vector."""
    federation = Federation(CLIENTS).carry(SENT, rounds=2)
    federation.carry(SENT, [2, 5, 5, 5, 5], rounds=3)
    assert federation.server.conclude().clients == (1, 2, 3, 4)
    statement = federation.clients[0].give_up()[HEADER:]
    with pytest.raises(ids.TooFewError, match="4 clients must have given up the last attempt, got"):
        joined(federation, 0, {0: statement}, federation.clients[0])
    for index in range(1, 5):
        with pytest.raises(ids.RoundError, match="cannot give up an attempt that is over"):
            federation.clients[index].give_up()


def test_statements_of_others_or_of_another_attempt_are_refused() -> None:
    federation = Federation(CLIENTS).carry(SENT, rounds=3)
    restart = given_up(federation, range(4))
    terms, real = restart.terms, records_of(restart.message())
    other = given_up(Federation(CLIENTS, identities=federation.identities), range(4))
    digest = real[0][1:33]
    later = consistency.ended_statement(terms.digest, terms.attempt, digest)
    unsigned = "the statement in the name of client 3: no sign"
    undefined = "of client 3 holds no digest, but bytes of one"
    for record, error, says in (
        (real[2], ids.ForgedError, unsigned),
        (records_of(other.message())[3], ids.ForgedError, unsigned),
        (b"\x01" + digest + federation.identities[3].sign(later), ids.ForgedError, unsigned),
        (bytes(33) + real[3][33:], ids.ForgedError, unsigned),
        (flipped(real[3], -1), ids.ForgedError, unsigned),
        (b"\0" + real[3][1:], ids.MalformedError, undefined),
        (b"\2" + real[3][1:], ids.MalformedError, undefined),
    ):
        with pytest.raises(error, match=says):
            joined(federation, 4, real | {3: record})
    with pytest.raises(ids.TooFewError, match="4 clients must have given up the last attempt, got"):
        joined(federation, 4, {index: real[index] for index in range(3)})
    joined(federation, 4, real)


def test_another_attempt_has_the_terms_of_the_last() -> None:
    federation = Federation(CLIENTS)
    last = Federation(CLIENTS).clients[0]
    with pytest.raises(ids.RefusedError, match="must have the terms of the last"):
        joined(federation, 0, given_up(federation).message(), last)


def test_on_a_ring_all_that_were_announced_give_the_attempt_up() -> None:
    """The receivers of one client's shares may be the very ones that did not."""
    federation = Federation(CLIENTS, around=RING).carry(SENT, rounds=3)
    restart = given_up(federation, range(4))
    with pytest.raises(ids.TooFewError, match="client 4 has not given up the last attempt"):
        begun_again(federation, restart, range(4))
    restart.receive(4, federation.clients[4].give_up())
    begun_again(federation, restart)


def test_on_a_ring_who_was_told_nobody_needs_everybody() -> None:
    federation = Federation(CLIENTS, around=RING).carry(SENT, [5, 5, 5, 5, 1], rounds=2)
    for index in range(4):
        federation.answer(index)
    restart = given_up(federation, range(4))
    with pytest.raises(ids.TooFewError, match="client 4 has not given up the last attempt"):
        joined(federation, 4, restart.message())
    restart.receive(4, federation.clients[4].give_up())
    with pytest.raises(ids.RefusedError, match="client 0 gave up an attempt that was announced"):
        joined(federation, 4, restart.message())


def test_a_server_takes_one_true_statement_of_each() -> None:
    federation = Federation(CLIENTS)
    restart, message = SumRestart(federation.terms), federation.clients[0].give_up()
    for sender, wrong, error, says in (
        (9, message, ids.UnknownClientError, "a client's index must be below 5, got 9"),
        (1, message, ids.UnknownClientError, "has the index 0 instead of 1"),
        (0, message[:-1], ids.MalformedError, "a statement has 97 bytes, got 96"),
    ):
        with pytest.raises(error, match=says):
            restart.receive(sender, wrong)
    restart.receive(0, message)
    with pytest.raises(ids.ReplayError, match="client 0 sends ended a second time"):
        restart.receive(0, message)
    with pytest.raises(ids.TooFewError, match="4 clients must give up before another attempt, go"):
        restart.message()
