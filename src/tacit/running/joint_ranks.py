"""The aggregator's side of ranks: it carries boxes between the parties, all of them sealed."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from tacit.protocols.conversation import Ask
from tacit.running.joint_engine import JointError
from tacit.running.joint_frames import Frame
from tacit.running.joint_processes import JointReply, Parties

SESSION_BYTES = 16

SECONDS_A_SCORE = 0.01
"""How much longer parties may take to rank, for every score."""

Boxes = dict[int, dict[str, NDArray[np.uint8]]]


def answer_ranks(parties: Parties, ask: Ask) -> JointReply:
    """Let all parties learn the ranks of their own scores, as ``rank_together`` gives them.

    The first three of the parties rank on shares, with an honest majority; where there are two,
    both do.

    Raises
    ------
    JointError : when a party fails, ends, or does not answer in time.
    """
    parties.admit(ask)
    session = os.urandom(SESSION_BYTES).hex()
    sizes = np.diff(parties.offsets).tolist()
    ranking = list(parties.everybody)[: 3 if len(sizes) > 2 else 2]
    shown = parties.gather_from(parties.everybody, Frame.of("show key"), "key")
    keys = [str(shown[index].header["key"]) for index in parties.everybody]
    for index in parties.everybody:
        order = Frame.of("submit", session=session, keys=[keys[place] for place in ranking])
        parties.order(index, order)
    submitted = _boxes(parties, parties.gather(parties.everybody, "submitted"))
    exchanges = sum(sizes) * sum(sizes).bit_length()
    parties.introduce(session, ranking, exchanges)
    for rank, index in enumerate(ranking):
        arrays = {str(owner): _taken(submitted, owner, rank) for owner in parties.everybody}
        parties.order(index, Frame.of("rank", arrays, sizes=sizes, keys=keys))
    longest = parties.settings.timeout + SECONDS_A_SCORE * sum(sizes)
    done = parties.gather(ranking, "ranked", longest)
    found = _boxes(parties, done)
    for owner in parties.everybody:
        arrays = {
            str(rank): _taken({rank: found[index]}, rank, owner)
            for rank, index in enumerate(ranking)
        }
        parties.order(owner, Frame.of("place", arrays, session=session))
    parties.gather(parties.everybody, "placed")
    sessions = (parties.concluded(done, sum(sizes)),)
    return JointReply({"records": np.array(sum(sizes))}, parties.taken_sent(), sessions)


def _boxes(parties: Parties, frames: dict[int, Frame]) -> Boxes:
    """The boxes that each party handed in, counted as sent."""
    for index, frame in frames.items():
        parties.sent[index] += len(frame.body)
    return {index: frame.arrays() for index, frame in frames.items()}


def _taken(boxes: Boxes, sender: int, receiver: int) -> NDArray[np.uint8]:
    found = boxes[sender].get(str(receiver))
    if found is None or found.dtype != np.uint8:
        raise JointError(f"party {sender} handed in no box for party {receiver}")
    return found
