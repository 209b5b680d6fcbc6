"""The searched clients answer as real ones do: keys, shares, signatures and all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.crypto.identities import Identity, Roster, SumError
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.graph import Neighbourhood, arrange
from tacit.crypto.secure_sum.messages import EVERYBODY, Kind
from tacit.crypto.secure_sum.terms import SumTerms, new_session
from tacit_studies.secure_sums.clients import HonestClients
from tacit_studies.secure_sums.lies import Liar
from tacit_studies.secure_sums.setting import Setting
from tacit_studies.secure_sums.strategy import Attempt, Story, truthful
from tests.crypto.secure_sum.transporting import HEADER

GRAPHS = {
    "complete": (4, Neighbourhood.complete(4, colluders=0)),
    "ring": (6, Neighbourhood(degree=2, threshold=2, min_clients=4, colluders=0)),
}
EMPTY = bytes(messages.SIGNATURE_BYTES)


class RealSum:
    """Real clients of one sum who all shared their secrets, told the rest by an attempt."""

    def __init__(self, clients: int, around: Neighbourhood) -> None:
        identities = [Identity.generate() for _ in range(clients)]
        roster = Roster(tuple(identity.public for identity in identities))
        self.terms = SumTerms(new_session(), roster, 1, largest=9, neighbourhood=around)
        self.clients = [SumClient(identity, self.terms) for identity in identities]
        keys = {k: one.advertise()[HEADER:] for k, one in enumerate(self.clients)}
        body = messages.pack_records(keys)
        self.adverts = self._written(Kind.ADVERTS, EVERYBODY, body)
        self.transcript = self.terms.transcript(body)
        shares = [one.share(self.adverts)[HEADER:] for one in self.clients]
        self.boxes = [messages.unpack_records(one, messages.BOX_BYTES, clients) for one in shares]
        self.sent, self.revealed = np.zeros((2, clients), dtype=np.bool_)
        self.shares = np.zeros((2, clients), dtype=np.int64)

    def setting(self) -> Setting:
        return Setting(self.terms.rule, self.terms.neighbourhood.threshold)

    def story(self, setting: Setting) -> Story:
        order = arrange(np.arange(setting.clients), self.transcript)
        return Story.in_order(setting, order, self.transcript)

    def answer(self, attempt: Attempt) -> None:
        signed = dict(self._masked(attempt))
        lists = {k: self._signed(attempt, k, signed) for k in signed}
        reported = {k: part for k, part in lists.items() if part}
        for k in reported:
            if attempt.revealing[k]:
                self._reveal(attempt, k, reported)

    def _masked(self, attempt: Attempt) -> dict[int, bytes]:
        signed = {}
        for k, client in enumerate(self.clients):
            owners = np.flatnonzero(attempt.delivered[k]).tolist()
            body = messages.pack_indices(np.flatnonzero(attempt.announced[k]).tolist())
            body += messages.pack_records({owner: self.boxes[owner][k] for owner in owners})
            try:
                answer = client.mask(self._written(Kind.DELIVERY, k, body), np.array([k]))
            except SumError:
                continue
            self.sent[k], signed[k] = True, answer[-messages.SIGNATURE_BYTES :]
        return signed

    def _signed(self, attempt: Attempt, k: int, signed: dict[int, bytes]) -> bytes:
        stayed = np.flatnonzero(attempt.stayed[k]).tolist()
        body = messages.pack_records({one: signed.get(one, EMPTY) for one in stayed})
        body += messages.pack_indices(np.flatnonzero(attempt.left[k]).tolist())
        try:
            return self.clients[k].certify(self._written(Kind.LISTS, EVERYBODY, body))[HEADER:]
        except SumError:
            return b""

    def _reveal(self, attempt: Attempt, k: int, signed: dict[int, bytes]) -> None:
        """With all signatures of those who are said to have stayed, of other lists too."""
        body = messages.pack_records({one: signed[one] for one in signed if attempt.stayed[k, one]})
        try:
            answer = self.clients[k].reveal(self._written(Kind.CERTIFICATE, EVERYBODY, body))
        except SumError:
            return
        self.revealed[k] = True
        records = messages.unpack_records(answer[HEADER:], messages.SHARE_BYTES, self.terms.clients)
        for owner, share in records.items():
            self.shares[share[0], owner] += 1

    def _written(self, kind: Kind, index: int, body: bytes) -> bytes:
        return messages.write(kind, self.terms.session, index, body)


@pytest.mark.parametrize("graph", GRAPHS)
def test_searched_clients_answer_as_real_ones(graph: str) -> None:
    rng = np.random.default_rng(6)
    seen: set[tuple[bool, bool]] = set()
    for number in range(60):
        real = RealSum(*GRAPHS[graph])
        setting = real.setting()
        attempt = truthful(real.story(setting), [0] if number % 3 == 0 else [])
        liar = Liar(setting, rng, targets=rng.choice(setting.clients, 2, replace=False))
        for _ in range(number % 4):
            attempt = liar.changed(attempt)
        real.answer(attempt)
        searched = HonestClients(setting).answer(attempt)
        assert (searched.masked.sent == real.sent).all()
        assert (searched.revealed == real.revealed).all()
        assert (np.stack([searched.seed_shares, searched.key_shares]) == real.shares).all()
        seen |= {(bool(real.sent.all()), bool(real.revealed.any()))}
    assert seen == {(True, True), (True, False), (False, True), (False, False)}, "too alike"


def test_a_client_is_in_no_sum_with_one_that_was_told_of_fewer() -> None:
    """Of three clients, all of whom must stay, client 0 gets the shares of client 2 only. With that
    client on its side, and the seed that client 1 would help to open, a server would read it."""
    real = RealSum(3, Neighbourhood.complete(3, colluders=0, min_clients=3))
    setting = real.setting()
    reported = truthful(real.story(setting))
    announced, delivered = reported.announced.copy(), reported.delivered.copy()
    announced[0, 1] = delivered[0, 1] = False
    real.answer(replace(reported, announced=announced, delivered=delivered))
    assert real.sent.all()
    assert not real.revealed.any()
    assert not real.shares.any()
