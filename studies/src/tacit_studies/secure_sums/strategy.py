"""What a server may tell each client: the messages of an attempt, one row for each client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from tacit.crypto.secure_sum.graph import Indices, arrange, neighbours
from tacit_studies.secure_sums.setting import Bools, Setting


@dataclass(frozen=True, eq=False)
class Story:
    """One list of advertised keys. Clients with different lists share no key and no mask.

    Parameters
    ----------
    transcript : 32 bytes, the digest of the list; every key and the ring's order depend on it.
    arranged : who is on the list, in the order of the ring.
    around : shape (K, K), whether the column's client is a neighbour of the row's.
    """

    transcript: bytes
    arranged: Indices
    around: Bools

    @classmethod
    def of(cls, setting: Setting, members: Iterable[int], number: int = 0) -> Story:
        """The list of these members; its number stands for anything else that changes its digest.

        A server can change the digest at will, through colluders' keys and keys that nobody
        verifies.
        """
        listed = np.array(sorted(members), dtype=np.int64)
        transcript = sha256(listed.tobytes() + number.to_bytes(8, "little")).digest()
        return cls.in_order(setting, arrange(listed, transcript), transcript)

    @classmethod
    def in_order(cls, setting: Setting, arranged: Indices, transcript: bytes) -> Story:
        """A list whose ring order is given."""
        around = np.zeros((setting.clients, setting.clients), dtype=np.bool_)
        for member in arranged.tolist():
            around[member, neighbours(arranged, member, setting.rule.degree)] = True
        return cls(transcript, arranged, around)


@dataclass(frozen=True, eq=False)
class Attempt:
    """All that a server tells honest clients in one attempt; a colluder's row means nothing.

    Colluders need no row: they hand over all they know, and sign whatever helps.

    Parameters
    ----------
    stories : lists of advertised keys.
    story : int64, shape (K,), the number of the list that each client gets.
    announced : shape (K, K), row i is the clients that shared (U2), as announced to client i.
    delivered : shape (K, K), row i is whose shares reach client i.
    stayed, left : shape (K, K), row i is the two lists that client i is asked to sign.
    revealing : shape (K,), who gets the signatures on its lists and is asked for its shares.
    """

    stories: tuple[Story, ...]
    story: Indices
    announced: Bools
    delivered: Bools
    stayed: Bools
    left: Bools
    revealing: Bools

    @property
    def around(self) -> Bools:
        """Shape (K, K): row i holds the neighbours of client i by the list that it received."""
        rows = np.stack([story.around for story in self.stories])
        return rows[self.story, np.arange(self.story.size)]


def truthful(story: Story, left: Iterable[int] = ()) -> Attempt:
    """The attempt of an honest server, when all on the list shared their secrets and some left.

    Raises
    ------
    ValueError : when a client that left is not on the list.
    """
    clients = story.around.shape[0]
    on_list = np.isin(np.arange(clients), story.arranged)
    gone = np.isin(np.arange(clients), list(left))
    if (gone & ~on_list).any():
        raise ValueError(f"only clients on the list can leave, got {list(left)}")
    shape = (clients, clients)
    return Attempt(
        stories=(story,),
        story=np.zeros(clients, dtype=np.int64),
        announced=np.broadcast_to(on_list, shape),
        delivered=story.around,
        stayed=np.broadcast_to(on_list & ~gone, shape),
        left=np.broadcast_to(gone, shape),
        revealing=np.ones(clients, dtype=np.bool_),
    )
