"""What a run says that its members spent: what they debited, whatever was begun again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

import tacit
import tacit.protocol as tp
from tacit.privacy.cost import worst_case
from tacit.protocol.fields import decode, encode
from tacit.protocol.values import decode_values, encode_values
from tacit.running.session.coordinator import Coordinator, RunError
from tacit.running.session.debits import Debit, DeclinedError, unrecorded
from tacit.running.session.messages import (
    COORDINATOR,
    KIND_POSITION,
    Kind,
    MalformedMessageError,
    verified,
)
from tacit.running.session.party import Party
from tacit.testing.rehearsal import Keys, Rehearsal
from tests.federations import binormal_clients
from tests.laws import ONE_OF_EACH, PROTOCOLS

PARTIES = 5
CLIENTS = binormal_clients(30, 40, PARTIES)


def rehearsed(
    protocol: tacit.Protocol, faults: list[tacit.Fault], **options: Any
) -> tuple[Rehearsal, list[tacit.Cost]]:
    """A run that begins again where it must, and what each party debited."""
    debits: list[list[Debit]] = [[] for _ in range(PARTIES)]
    run = tacit.rehearse(
        protocol.trial_records(CLIENTS),
        protocol,
        faults,
        noise=lambda _: tp.NoNoise(),
        guards=[each.append for each in debits],
        min_clients=4,
        on_loss="restart",
        **options,
    )
    return run, [reduce(add, (debit.cost for debit in each), tp.NOTHING) for each in debits]


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_what_is_stated_is_what_members_debited_whatever_is_lost(name: str) -> None:
    """Each round of each conversation; in one of a sum two are lost, so that it is tried again.

    Of more than one sum every third round is lost: each round of a sum in one of them.
    """
    protocol = PROTOCOLS[name]
    whole, paid = rehearsed(protocol, [])
    assert whole.spent == worst_case(paid).figures
    rounds = 1 + max(number for _, number, _ in whole.messages)
    for turn in range(0, rounds, 3 if rounds > 8 else 1):
        summed = whole.messages["down", turn, 0][KIND_POSITION] in (Kind.SUM, Kind.ROUND)
        lost = (0, 3) if summed else (3,)
        try:
            run, paid = rehearsed(protocol, [tacit.Fault("drop", party, turn) for party in lost])
        except RunError as error:
            if isinstance(protocol, tacit.FheAUC):  # every party has to take part
                reasons = [str(refusal.reason) for refusal in error.refusals]
                assert reasons
                assert all("at least 5 of them were agreed, got 4" in why for why in reasons)
            else:  # too few for a sum, or a share of it was revealed: not tried again
                assert any(step.sums is not None for step in protocol.steps)
            continue
        most = worst_case(paid[party] for party in run.members)
        assert run.spent.adjacency == most.adjacency
        assert run.spent.epsilon == pytest.approx(most.epsilon)
        assert run.spent.delta == pytest.approx(most.delta)


@pytest.mark.parametrize("restarts", [False, True])
def test_labels_that_stay_flipped_are_stated_at_what_they_cost_once(restarts: bool) -> None:
    """The run that begins again uses them, and debits nothing."""
    protocol = PROTOCOLS["fedauc-response"]
    run, paid = rehearsed(protocol, [tacit.Fault("drop", 3, 1)], restarts=restarts)
    assert run.members == (0, 1, 2, 4)
    assert run.spent == protocol.guarantee.figures == paid[0]


def test_why_a_party_declined_a_run_that_broke_off_is_known_in_the_next() -> None:
    asked: list[Debit] = []

    def declines(debit: Debit) -> None:
        asked.append(debit)
        if len(asked) == 2:
            raise DeclinedError("its limit is reached")

    guards = [unrecorded, unrecorded, unrecorded, declines, unrecorded]
    protocol = PROTOCOLS["fedauc-adaptive"]
    run = tacit.rehearse(CLIENTS, protocol, guards=guards, min_clients=4, on_loss="restart")
    assert (run.members, run.declined) == ((0, 1, 2, 4), {3: "its limit is reached"})


# --- what parties say --------------------------------------------------------------------------


Values = dict[str, Any]
Lie = Callable[[int, Values], Values]
"""What a party says instead of its cost, by its index."""


def lied_to(name: str, lie: Lie, told: Lie = lambda _, fields: fields) -> Coordinator:
    """A run of three parties to its end, in which they say another cost than they debited.

    ``told`` are the fields that they send instead of their own.
    """
    keys = Keys.generate(3)
    agreement = keys.agreement(PROTOCOLS[name])
    clients = binormal_clients(30, 40, 3)
    parties = [
        Party(k, keys.parties[k], agreement, clients.part(k, k + 1), tp.NoNoise(), unrecorded)
        for k in range(3)
    ]
    coordinator = Coordinator(agreement, keys.coordinator)
    messages = coordinator.open()
    while messages:
        for index, message in messages.items():
            reply = verified(parties[index].answer(message), agreement, index, COORDINATOR)
            values = decode_values(reply.body)
            values["spent"] = lie(index, values["spent"])
            values["content"] = encode(told(index, decode(values["content"])))
            body = encode_values(values)
            signed = replace(reply, body=body).signed(agreement, keys.parties[index])
            coordinator.receive(index, signed)
        messages = coordinator.close()
    return coordinator


@pytest.mark.parametrize(
    ("said", "spent"),
    [
        ({"epsilon": 0.0, "adjacency": None}, tp.Cost(1.0, adjacency=tp.Adjacency.LABEL)),
        ({"epsilon": 0.5, "adjacency": "score"}, tp.UNPROTECTED),
        ({"epsilon": 1e200, "adjacency": "label"}, tp.Cost(1e200, adjacency=tp.Adjacency.LABEL)),
    ],
    ids=["less", "at an adjacency from which nothing follows", "beyond all numbers"],
)
def test_what_one_party_says_it_spent_hides_and_stops_nothing(said: Values, spent: tp.Cost) -> None:
    said |= {"delta": 0.0, "rho": None}
    run = lied_to("fedauc", lambda index, cost: said if index == 0 else cost)
    assert run.most_spent == spent
    assert run.server_result


def huge(index: int, fields: Values) -> Values:
    return {
        k: np.full_like(v, 1e300, dtype=float) if index == 0 and k == "positives" else v
        for k, v in fields.items()
    }


def doubled(_: int, fields: Values) -> Values:
    if "residuals" not in fields:
        return fields
    return {name: np.array([number, number]) for name, number in fields.items()}


def ragged(_: int, fields: Values) -> Values:
    return {name: tp.Ragged(each, np.array([0, each.shape[-1]])) for name, each in fields.items()}


def seats(records: int) -> Lie:
    """A party alone says how many it has; the server made as many seats, whatever that takes."""
    return lambda index, fields: fields | {"records": np.array(records)} if index == 0 else fields


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        ("noisy-scores", huge, "the server cannot compute with the replies: int too large"),
        ("fedauc", doubled, "cannot compute with the replies: they give several"),
        ("dpauc", ragged, "the server cannot compute with the replies"),
        ("paired-auc", seats(-1), "records.* got"),
        ("paired-auc", seats(2**39), "records.* got"),
    ],
)
def test_replies_that_do_not_compute_end_the_run_in_words(name: str, told: Lie, said: str) -> None:
    with pytest.raises(RunError, match=said):
        lied_to(name, lambda _, cost: cost, told)


@pytest.mark.parametrize(
    "said",
    [
        {"epsilon": float("nan")},
        {"epsilon": -1.0},
        {"epsilon": "much"},
        {"epsilon": 10**400},
        {"epsilon": 0.5, "adjacency": None},
        {"delta": 1.0},
        {"delta": None},
        {"adjacency": "village"},
        {"rho": "much"},
        {"rho": float("nan")},
        {"rho": -1.0},
    ],
    ids="-".join,
)
def test_what_is_no_cost_is_not_accepted(said: Values) -> None:
    with pytest.raises(MalformedMessageError):
        lied_to("fedauc", lambda _, cost: cost | {"epsilon": 1.0, "adjacency": "label"} | said)
