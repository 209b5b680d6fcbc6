"""The searched clients answer as real ones do: keys, shares, signatures and all."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.crypto.identities import SumError
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.graph import Neighbourhood, arrange
from tacit.crypto.secure_sum.messages import Kind
from tacit_studies.secure_sums.clients import HonestClients
from tacit_studies.secure_sums.lies import Liar
from tacit_studies.secure_sums.setting import Setting
from tacit_studies.secure_sums.strategy import Attempt, Story, truthful
from tests.crypto.secure_sum.transporting import HEADER, Federation, revealed

GRAPHS = {
    "complete": (4, Neighbourhood.complete(4, colluders=0)),
    "ring": (6, Neighbourhood(degree=2, threshold=2, min_clients=4, colluders=0)),
}
EMPTY = bytes(messages.SIGNATURE_BYTES)


class RealSum:
    """Real clients of one sum who all shared their secrets, told the rest by an attempt."""

    def __init__(self, clients: int, around: Neighbourhood) -> None:
        self.federation = Federation(clients, length=1, largest=9, around=around)
        self.federation.carry(rounds=2)
        self.terms, self.clients = self.federation.terms, self.federation.clients
        self.transcript = self.federation.server._transcript
        shares = [self.federation.sent[k][1][HEADER:] for k in range(clients)]
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
            announced = np.flatnonzero(attempt.announced[k]).tolist()
            boxes = {owner: self.boxes[owner][k] for owner in owners}
            told = self.federation.written(Kind.DELIVERY, announced, boxes, index=k)
            try:
                answer = client.mask(told, np.array([k]))
            except SumError:
                continue
            self.sent[k], signed[k] = True, answer[-messages.SIGNATURE_BYTES :]
        return signed

    def _signed(self, attempt: Attempt, k: int, signed: dict[int, bytes]) -> bytes:
        stayed = {one: signed.get(one, EMPTY) for one in np.flatnonzero(attempt.stayed[k]).tolist()}
        left = np.flatnonzero(attempt.left[k]).tolist()
        try:
            return self.clients[k].certify(self.federation.written(Kind.LISTS, stayed, left))[
                HEADER:
            ]
        except SumError:
            return b""

    def _reveal(self, attempt: Attempt, k: int, signed: dict[int, bytes]) -> None:
        """With all signatures of those who are said to have stayed, of other lists too."""
        certificate = {one: signed[one] for one in signed if attempt.stayed[k, one]}
        try:
            answer = self.clients[k].reveal(self.federation.written(Kind.CERTIFICATE, certificate))
        except SumError:
            return
        self.revealed[k] = True
        for owner, share in revealed(answer, self.terms.clients).items():
            self.shares[share[0], owner] += 1


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
