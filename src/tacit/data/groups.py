"""Public groups of records, beside the clients that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.batches.ragged import by_client
from tacit.data.checking import as_keys
from tacit.data.clients import Clients
from tacit.data.errors import DataError

MAX_GROUPS = 200
"""More groups than this are a mistake: a column of numbers, or of names."""


@dataclass(frozen=True, eq=False)
class Groups:
    """To which group each record belongs, which is public.

    Parameters
    ----------
    names : the groups, in order of their values.
    of_record : int64, shape (M,): indices in ``names``, in the order of the clients' records.
    agreed : whether the names were agreed on beforehand, and not read off the records. A group
        whose only record is removed is then still in the list.

    Raises
    ------
    DataError : for more than ``MAX_GROUPS`` groups.

    Examples
    --------
    >>> clients = Clients.from_arrays([0.1, 0.7, 0.4], [0, 1, 1], ["a", "b", "a"])
    >>> groups = Groups.from_arrays([40, 18, 18], ["a", "b", "a"])
    >>> groups.names, groups.of_record.tolist()
    (('18', '40'), [1, 0, 0])
    >>> groups.members(clients, 0).scores.tolist(), groups.members(clients, 1).names
    ([0.4, 0.7], ('a',))
    """

    names: tuple[str, ...]
    of_record: NDArray[np.int64]
    agreed: bool = False

    def __post_init__(self) -> None:
        if len(self.names) > MAX_GROUPS:
            raise DataError(
                f"there may be {MAX_GROUPS} groups at most, got {len(self.names)}, "
                f"{self.names[0]!r} and {self.names[1]!r} among them"
            )

    @classmethod
    def from_arrays(
        cls,
        values: ArrayLike,
        client_ids: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Groups:
        """Groups of records from a value each.

        Parameters
        ----------
        values : shape (M,), integers or strings.
        client_ids : shape (M,), where ``Clients.from_arrays`` was given them: it orders records by
            client.
        names : the agreed groups, in the order of the result; some of them may have no record.
            None reads them off the values.

        Raises
        ------
        DataError : for values of other types, lengths that do not agree, too many groups, agreed
            names that repeat, and a value that is not among them.
        """
        group_of_record = as_keys(values, "groups")
        if client_ids is not None:
            ids = as_keys(client_ids, "client ids")
            if ids.shape != group_of_record.shape:
                raise DataError(f"{group_of_record.size} groups but {ids.size} client ids")
            group_of_record = group_of_record[by_client(ids)[0]]
        try:
            distinct, index = np.unique(group_of_record, return_inverse=True)
        except TypeError:
            raise DataError("groups must be all integers or all strings") from None
        present_names = tuple(str(name) for name in distinct)
        if names is None:
            return cls(present_names, index.astype(np.int64))
        agreed = tuple(map(str, names))
        return cls(agreed, _indices(present_names, agreed)[index], agreed=True)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The exact number of records of each group, shape (G,)."""
        return np.bincount(self.of_record, minlength=len(self.names)).astype(np.int64)

    def members(self, clients: Clients, group: int, all_clients: bool = False) -> Clients:
        """A group's records, at the clients that hold some of them, or at all clients.

        Parameters
        ----------
        clients : all records, in the order of ``of_record``.
        group : an index into ``names``.
        all_clients : keep clients without any record of the group, with no records: who they are
            would show whether a record is there.

        Raises
        ------
        DataError : where the groups are of another number of records.
        """
        if self.of_record.size != clients.records:
            raise DataError(f"{clients.records} records but {self.of_record.size} groups")
        inside = self.of_record == group
        sizes = np.add.reduceat(inside, clients.offsets[:-1], dtype=np.int64)
        client_indices = np.arange(clients.count) if all_clients else np.flatnonzero(sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes[client_indices]))).astype(np.int64)
        in_memory = clients.part(0, clients.count)
        return replace(
            in_memory.taken(inside, offsets),
            names=tuple(clients.names[index] for index in client_indices) if clients.names else (),
            left_out=None,
            _checked=all_clients,
        )


def _indices(present_names: tuple[str, ...], names: Sequence[str]) -> NDArray[np.int64]:
    """The index of each group found among the agreed names."""
    index = {name: number for number, name in enumerate(names)}
    if len(index) < len(names):
        raise DataError(f"agreed groups must differ, got {', '.join(map(repr, names))}")
    for name in present_names:
        if name not in index:
            raise DataError(
                f"a record is of group {name!r:.60}, which is none of {', '.join(names)}: "
                "agree on every group that there may be"
            )
    return np.array([index[name] for name in present_names], dtype=np.int64)
