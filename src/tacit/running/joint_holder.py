"""A party's records in its own process: what it answers about them, and what it refuses.

A party answers the steps of the protocol that it agreed to, each once, as long as they spend no
more than the agreed guarantee, and after its ledger holds what they spend; whoever asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.sealed import Receiver, seal
from tacit.crypto.secure_sum import new_session
from tacit.data.clients import Clients, Ragged
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.noise import NoiseSource, NoNoise, SystemNoise
from tacit.protocols.ask_messages import decode_ask
from tacit.protocols.conversation import Ask, Memory, Protocol, View
from tacit.protocols.hidden_ranks import RANKS, rank_codes, rank_together
from tacit.protocols.messages import decode, encode, reply_of
from tacit.protocols.paired_ustatistic import PairedUStatistic, compute_pairs
from tacit.protocols.score_range import check_scores_in_unit_interval
from tacit.running.debits import Debit, Guard
from tacit.running.joint_engine import SharedRun, held, summands_of
from tacit.running.joint_ranking import mid_ranks_of, rank_keys, ranking
from tacit.running.joint_work import PairWork, Terms, box_place
from tacit.running.spending import exceeds

Words = NDArray[np.uint64]
Boxes = dict[str, NDArray[np.uint8]]

JOINT_STEPS = (compute_pairs, rank_together)
"""Steps that parties compute together; a party answers all others by itself."""


class Holder:
    """One client's records under one protocol, for one run.

    Parameters
    ----------
    protocol : what the client agreed to.
    clients : its records, a batch of one.
    index : its place among all clients.
    silent : draw no noise, to check the arithmetic; never for a release.
    guard : is told of every debit before anything is computed; ``debits.unrecorded`` writes nothing
        down, and is for clients that do not exist.
    """

    def __init__(
        self, protocol: Protocol, clients: Clients, index: int, silent: bool, guard: Guard
    ) -> None:
        self.index = index
        self.receiver = Receiver.new()
        self._protocol, self._clients, self._silent = protocol, clients, silent
        self._guard, self._session = guard, new_session()
        self._memory, self._spent = Memory(), NOTHING
        self._answered: list[str] = []
        self._receipt = b""

    @property
    def noise(self) -> NoiseSource:
        """Where the party's noise comes from."""
        return NoNoise() if self._silent else SystemNoise()

    def answer(self, message: bytes) -> bytes:
        """The party's own reply to an ask.

        Raises
        ------
        MessageError : for bytes that are no ask of this protocol.
        ValueError : for a step answered before, a guarantee that would be exceeded, or an ask for
            anything but the party's own reply.
        DeclinedError : where the ledger does not allow it.
        """
        ask = self._paid(message, together=False)
        reply = ask.step.answer(self._clients, ask, self.noise, self._memory)
        return encode(reply_of(reply, 0))

    def work(self, message: bytes) -> PairWork | RankWork:
        """The party's part in a joint step, which is paid for with that.

        Raises as ``answer`` does, and for scores that the step refuses.
        """
        ask = self._paid(message, together=True)
        return self._pair_work(ask) if ask.step is compute_pairs else self._rank_work()

    def _pair_work(self, ask: Ask) -> PairWork:
        protocol: PairedUStatistic = ask.settings
        noise = protocol.pair_noise(float(ask.shared["epsilon"]))
        terms = Terms(protocol.kernel, noise, protocol.pairs_a_record, self._silent)
        return PairWork(terms, protocol.rows(self._clients))

    def _rank_work(self) -> RankWork:
        check_scores_in_unit_interval(self._clients)
        scores = self._clients.scores[self._clients.ascending]
        return RankWork(self.index, self.receiver, rank_codes(scores), self._memory)

    def _paid(self, message: bytes, together: bool) -> Ask:
        """An ask that is allowed, with its cost in the ledger."""
        ask = decode_ask(message, self._protocol)
        joint = ask.step in JOINT_STEPS
        if joint is not together or ask.view is not (View.JOINT if joint else View.EACH):
            raise ValueError(
                f"step {ask.step.name!r} {'is' if joint else 'is not'} computed together, "
                f"and was asked for the view {ask.view.value!r}"
            )
        if ask.step.name in self._answered:
            raise ValueError(f"step {ask.step.name!r} was answered before")
        cost = ask.step.spends(self._clients, ask, self._memory)
        spent = self._spent + cost
        if exceeds(spent, self._protocol.guarantee):
            raise ValueError(
                f"step {ask.step.name!r} would spend {spent}, agreed was {self._protocol.guarantee}"
            )
        self._debit(ask, sha256(message).digest(), cost)
        self._spent = spent
        return ask

    def _debit(self, ask: Ask, request: bytes, cost: Cost) -> None:
        turn, name = len(self._answered), ask.step.name
        self._answered.append(name)
        debit = Debit(self._session, turn, name, request, cost, cost, self._receipt)
        made = self._guard(debit)
        if made is not None:
            self._receipt = made.receipt


class RankWork:
    """A party's scores among all parties'. Two or three of the parties rank them on shares.

    Parameters
    ----------
    index : the party's place among all.
    receiver : the key that messages for it are sealed for.
    codes : its scores as integers, ascending.
    memory : where its ranks are kept.
    """

    def __init__(
        self, index: int, receiver: Receiver, codes: NDArray[np.int64], memory: Memory
    ) -> None:
        self._index, self._receiver = index, receiver
        self._codes, self._memory = codes, memory

    def submitted(self, session: str, keys: Sequence[bytes]) -> Boxes:
        """The scores in shares, sealed for each of the parties that rank, whose keys these are."""
        parts = summands_of(rank_keys(self._codes, self._index), len(keys))
        boxes: Boxes = {}
        for rank, key in enumerate(keys):
            own = np.stack([parts[place] for place in held(rank, len(keys))])
            place = box_place(session, self._index, "scores", rank)
            boxes[str(rank)] = _boxed({"shares": own.view(np.int64)}, key, place)
        return boxes

    def ranked(
        self,
        run: SharedRun,
        session: str,
        boxes: Mapping[str, NDArray[np.uint8]],
        sizes: Sequence[int],
        keys: Sequence[bytes],
    ) -> Boxes:
        """Rank all scores, as one of the parties that do; shares of positions for every owner.

        Parameters
        ----------
        run : the computation of the parties that rank.
        session : its name.
        boxes : what every party submitted to this one.
        sizes : how many scores every party has.
        keys : for whom the results are sealed.
        """
        parts = [
            self._opened(boxes, session, owner, "scores", run.rank, size)
            for owner, size in enumerate(sizes)
        ]
        summands = list(np.concatenate(parts, axis=1))
        program = ranking(sizes)
        found = run.evaluated(("ranks", *sizes), program, [summands])
        ends = np.cumsum(sizes)
        made: Boxes = {}
        for owner, (size, end) in enumerate(zip(sizes, ends, strict=True)):
            place = box_place(session, run.rank, "positions", owner)
            own = found[np.newaxis, end - size : end].view(np.int64)
            made[str(owner)] = _boxed({"shares": own}, keys[owner], place)
        return made

    def placed(self, session: str, boxes: Mapping[str, NDArray[np.uint8]]) -> None:
        """Keep the own ranks, from the shares of those that ranked."""
        size = self._codes.size
        shares = [
            self._opened(boxes, session, rank, "positions", self._index, size)
            for rank in range(len(boxes))
        ]
        positions = np.sum(shares, axis=0, dtype=np.uint64)[0].view(np.int64)
        ranks = mid_ranks_of(self._codes, positions)
        offsets = np.array([0, size], dtype=np.int64)
        self._memory.keep(RANKS, Ragged(ranks, offsets))

    def _opened(
        self,
        boxes: Mapping[str, NDArray[np.uint8]],
        session: str,
        sender: int,
        kind: str,
        part: int,
        size: int,
    ) -> Words:
        name = str(sender)
        if name not in boxes:
            raise ValueError(f"party {sender} handed in no {kind}")
        place = box_place(session, sender, kind, part)
        found = decode(self._receiver.opened(boxes[name].tobytes(), place)).get("shares")
        if not isinstance(found, np.ndarray) or found.dtype != np.int64 or found.ndim != 2:
            raise ValueError(f"party {sender} handed in no shares of {kind}")
        if found.shape[1] != size:
            raise ValueError(f"party {sender} handed in {found.shape[1]} {kind} instead of {size}")
        return np.ascontiguousarray(found).view(np.uint64)


def _boxed(arrays: dict[str, Any], key: bytes, place: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(seal(encode(arrays), key, place), dtype=np.uint8)
