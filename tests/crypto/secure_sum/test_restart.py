"""Another attempt at a sum: only when the last can never be unmasked, with fresh keys, and
exact."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest

from tacit.crypto.identities import (
    ForgedError,
    MalformedError,
    RefusedError,
    ReplayError,
    RoundError,
    SumError,
    TooFewError,
    UnknownClientError,
)
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.consistency import NO_DIGEST, ended_statement
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.messages import EVERYBODY, Kind
from tacit.crypto.secure_sum.server import SumServer
from tacit.crypto.secure_sum.terms import SumRestart, SumTerms
from tests.crypto.secure_sum.transporting import HEADER, ROUNDS, Federation

CLIENTS = 5
SENT = np.random.default_rng(0).integers(-1000, 1001, (CLIENTS, 3))
RING = Neighbourhood(2, 2, 4, 1)


def given_up(federation: Federation, clients: Collection[int]) -> SumRestart:
    restart = SumRestart(federation.terms)
    for index in clients:
        restart.receive(index, federation.clients[index].give_up())
    return restart


def begun_again(
    federation: Federation, restart: SumRestart, clients: Collection[int]
) -> Federation:
    """The next attempt, which these clients join."""
    message, terms = restart.message(), restart.terms
    again = Federation.__new__(Federation)
    again.terms, again.identities = terms, federation.identities
    again.clients = [
        SumClient(federation.identities[index], terms, message, federation.clients[index])
        if index in clients
        else federation.clients[index]
        for index in range(terms.clients)
    ]
    again.server = SumServer(terms)
    again.sent = {index: [] for index in range(terms.clients)}
    again.given = [dict.fromkeys(clients, b"")]
    return again


def statements(terms: SumTerms, records: dict[int, bytes]) -> bytes:
    body = messages.pack_records(records)
    return messages.write(Kind.RESTART, terms.session, EVERYBODY, body)


def records_of(message: bytes) -> dict[int, bytes]:
    return messages.unpack_records(message[HEADER:], messages.ENDED_BYTES, CLIENTS)


@pytest.mark.parametrize("rounds", range(ROUNDS))
@pytest.mark.parametrize("around", [Neighbourhood.complete(CLIENTS), RING])
def test_an_attempt_that_nobody_revealed_in_is_begun_again_and_exact(
    rounds: int, around: Neighbourhood
) -> None:
    federation = Federation(CLIENTS, around=around)
    federation.carry(SENT, rounds=rounds)
    again = begun_again(federation, given_up(federation, range(CLIENTS)), range(CLIENTS))
    assert again.terms.attempt == 1
    result = again.sum(SENT)
    assert result.clients == tuple(range(CLIENTS))
    assert np.array_equal(result.total, SENT.sum(axis=0))


def test_who_left_an_attempt_may_join_the_next_where_tau_gave_it_up() -> None:
    """Too few vectors came; four of five give up, the fifth was asleep and joins by statements."""
    federation = Federation(CLIENTS)
    federation.carry(SENT, rounds=2)
    with pytest.raises(TooFewError, match="masked of at least 4 clients must come, got 3"):
        federation.round(SENT, [2, 2, 5, 5, 5])
    again = begun_again(federation, given_up(federation, range(1, 5)), range(CLIENTS))
    assert np.array_equal(again.sum(SENT).total, SENT.sum(axis=0))
    with pytest.raises(RoundError, match="client 0 cannot mask now: it is done"):
        federation.clients[0].mask(federation.given[-1][0], SENT[0])


def test_three_attempts_in_a_row() -> None:
    federation = Federation(CLIENTS)
    for attempt in range(1, 4):
        federation.carry(SENT, rounds=attempt)
        restart = given_up(federation, range(CLIENTS))
        federation = begun_again(federation, restart, range(CLIENTS))
        assert federation.terms.attempt == attempt
    assert np.array_equal(federation.sum(SENT).total, SENT.sum(axis=0))


def test_no_secret_of_an_attempt_outlives_its_statement() -> None:
    federation = Federation(CLIENTS)
    federation.carry(SENT, rounds=4)
    client = federation.clients[0]
    stored = client.state["held"]
    assert stored
    client.give_up()
    state = client.state
    assert [state[name] for name in ("sealing", "masking", "seed")] == [b""] * 3
    assert not state["secrets"]
    assert not state["held"]
    for step in ("reveal", "certify", "share"):
        with pytest.raises(RoundError, match=f"cannot {step} now: it is done"):
            getattr(client, step)(federation.given[-1][0])
    resumed = SumClient.resumed(federation.identities[0], federation.terms, state)
    with pytest.raises(RoundError, match="cannot give up an attempt that is over"):
        resumed.give_up()


def test_who_revealed_neither_gives_up_nor_joins_again() -> None:
    federation = Federation(CLIENTS)
    federation.carry(SENT, rounds=4)
    federation.round(SENT, [5, 4, 4, 4, 4])
    restart = given_up(federation, range(1, 5))
    with pytest.raises(RoundError, match="client 0 cannot give up an attempt that is over"):
        federation.clients[0].give_up()
    with pytest.raises(RefusedError, match="client 0 revealed its shares in the last attempt"):
        SumClient(federation.identities[0], restart.terms, restart.message(), federation.clients[0])


def test_no_two_sums_of_one_step_are_opened() -> None:
    """Four of five clients are summed, and revealed. The fifth, told to give up, is offered another
    attempt in which all five are summed; the difference would be its vector."""
    federation = Federation(CLIENTS)
    federation.carry(SENT, rounds=2)
    federation.carry(SENT, [2, 5, 5, 5, 5], rounds=3)
    assert federation.server.conclude().clients == (1, 2, 3, 4)
    statement = federation.clients[0].give_up()[HEADER:]
    terms = SumRestart(federation.terms).terms
    with pytest.raises(TooFewError, match="4 clients must have given up the last attempt, got 1"):
        SumClient(
            federation.identities[0],
            terms,
            statements(terms, {0: statement}),
            federation.clients[0],
        )
    for index in range(1, 5):
        with pytest.raises(RoundError, match="cannot give up an attempt that is over"):
            federation.clients[index].give_up()


def test_statements_of_others_or_of_another_attempt_are_refused() -> None:
    federation = Federation(CLIENTS)
    federation.carry(SENT, rounds=3)
    restart = given_up(federation, range(4))
    terms, real = restart.terms, records_of(restart.message())
    other = given_up(Federation(CLIENTS, identities=federation.identities), range(4))
    digest = real[0][1:33]
    later = ended_statement(terms.digest, terms.attempt, digest)
    wrong = [
        real | {3: real[2]},
        real | {3: records_of(other.message())[3]},
        real | {3: b"\x01" + digest + federation.identities[3].sign(later)},
        real | {3: bytes(33) + real[3][33:]},
        real | {3: real[3][:-1] + bytes([real[3][-1] ^ 1])},
    ]
    for records in wrong:
        with pytest.raises(ForgedError, match="the statement in the name of client 3: no sign"):
            SumClient(federation.identities[4], terms, statements(terms, records))
    for flag in (b"\0", b"\x02"):
        with pytest.raises(MalformedError, match="of client 3 holds no digest, but bytes of one"):
            message = statements(terms, real | {3: flag + real[3][1:]})
            SumClient(federation.identities[4], terms, message)
    fewer = {index: real[index] for index in range(3)}
    with pytest.raises(TooFewError, match="4 clients must have given up the last attempt, got 3"):
        SumClient(federation.identities[4], terms, statements(terms, fewer))
    SumClient(federation.identities[4], terms, statements(terms, real))


def test_another_attempt_has_the_terms_of_the_last() -> None:
    federation, other = Federation(CLIENTS), Federation(CLIENTS)
    restart = given_up(federation, range(CLIENTS))
    with pytest.raises(RefusedError, match="must have the terms of the last"):
        SumClient(federation.identities[0], restart.terms, restart.message(), other.clients[0])


def test_on_a_ring_all_that_were_announced_give_the_attempt_up() -> None:
    """The receivers of one client's shares may be the very ones that did not."""
    federation = Federation(CLIENTS, around=RING)
    federation.carry(SENT, rounds=3)
    restart = given_up(federation, range(4))
    with pytest.raises(TooFewError, match="client 4 has not given up the last attempt"):
        begun_again(federation, restart, range(4))
    restart.receive(4, federation.clients[4].give_up())
    begun_again(federation, restart, range(CLIENTS))


@pytest.mark.parametrize("shift", [0, 1])
def test_on_a_ring_a_statement_about_another_announcement_is_no_use(shift: int) -> None:
    federation = Federation(CLIENTS, around=RING)
    federation.carry(SENT, rounds=3)
    terms = SumRestart(federation.terms).terms
    real = records_of(given_up(federation, range(CLIENTS)).message())
    other = bytes([real[2][1] ^ shift]) + real[2][2:33]
    signed = federation.identities[2].sign(ended_statement(terms.digest, 0, other))
    message = statements(terms, real | {2: b"\x01" + other + signed})
    arguments = (federation.identities[0], terms, message, federation.clients[0])
    if shift:
        with pytest.raises(RefusedError, match="client 2 gave up an attempt that was announced"):
            SumClient(*arguments)
    else:
        SumClient(*arguments)


def test_on_a_ring_who_was_told_nobody_needs_everybody() -> None:
    federation = Federation(CLIENTS, around=RING)
    federation.carry(SENT, [5, 5, 5, 5, 1], rounds=2)
    for index in range(4):
        federation.clients[index].mask(federation.given[-1][index], SENT[index])
    restart = given_up(federation, range(4))
    with pytest.raises(TooFewError, match="client 4 has not given up the last attempt"):
        SumClient(federation.identities[4], restart.terms, restart.message())
    restart.receive(4, federation.clients[4].give_up())
    with pytest.raises(RefusedError, match="client 0 gave up an attempt that was announced"):
        SumClient(federation.identities[4], restart.terms, restart.message())


@pytest.mark.parametrize(
    ("sender", "change", "error", "sentence"),
    [
        (9, 0, UnknownClientError, "a client's index must be below 5, got 9"),
        (1, 0, UnknownClientError, "has the index 0 instead of 1"),
        (0, 1, MalformedError, "a statement has 97 bytes, got 96"),
        (0, 0, None, ""),
    ],
)
def test_a_server_takes_one_true_statement_of_each(
    sender: int, change: int, error: type[SumError] | None, sentence: str
) -> None:
    federation = Federation(CLIENTS)
    restart, message = SumRestart(federation.terms), federation.clients[0].give_up()
    message = message[: len(message) - change]
    if error is not None:
        with pytest.raises(error, match=sentence):
            restart.receive(sender, message)
        return
    restart.receive(sender, message)
    with pytest.raises(ReplayError, match="client 0 sends ended a second time"):
        restart.receive(sender, message)
    with pytest.raises(TooFewError, match="4 clients must give up before another attempt, got 1"):
        restart.message()


def test_a_statement_names_no_digest_before_a_vector_was_sent() -> None:
    federation = Federation(CLIENTS)
    federation.carry(SENT, rounds=2)
    record = federation.clients[0].give_up()[HEADER:]
    signed = ended_statement(federation.terms.digest, 0, NO_DIGEST)
    assert record[0] == 0
    assert federation.terms.roster.has_signed(0, signed, record[33:])


def test_every_pattern_of_losses_is_exact_after_a_restart() -> None:
    """Clients answer one to three rounds of the first attempt; those who are there again later give
    it up and are summed, if they are tau."""
    clients, tau = 4, 3
    sent = SENT[:clients]

    def tried(there: Sequence[int], rounds: int) -> None:
        federation = Federation(clients)
        federation.carry(sent, rounds=rounds)
        restart = given_up(federation, there)
        if len(there) < tau:
            with pytest.raises(TooFewError, match=f"{tau} clients must give up"):
                restart.message()
            return
        result = begun_again(federation, restart, there).sum(sent)
        assert result.clients == tuple(there)
        assert np.array_equal(result.total, sent[list(there)].sum(axis=0))

    for rounds in range(1, 5):
        for pattern in range(1, 2**clients):
            tried([index for index in range(clients) if pattern >> index & 1], rounds)
