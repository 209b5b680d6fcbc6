"""The setting of a search: the rule of honest clients, and the parts of it that are left out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.secure_sum.consistency import ListRule
from tacit.crypto.secure_sum.graph import Indices

Bools = NDArray[np.bool_]


class Part(Enum):
    """A part of the rule; a search leaves it out to check that it finds the attack."""

    DELIVERY = "the shares that come are those of the announced neighbours"
    ANNOUNCED = "the signed digest holds who was announced"
    DIGESTS = "everybody in the sum signed the same digest"
    CERTIFICATE = "tau clients signed the same lists"
    COLLUDERS = "tau counts the colluders"
    WINDOWS = "those who left do not cut the ring"
    RESTART = "an attempt begins when the last one was given up"


NO_CHECKS = frozenset(Part) - {Part.COLLUDERS}
"""Clients that compare nothing with each other: Bonawitz et al. 2017 without its fourth round."""


@dataclass(frozen=True)
class Setting:
    """The clients of a sum, those that collude with the server, and what the others check.

    Parameters
    ----------
    rule : the numbers by which honest clients judge lists.
    threshold : shares that open a secret.
    colluders : the clients that collude with the server, at most ``rule.colluders``.
    without : the parts of the rule that honest clients do not know.

    Raises
    ------
    ValueError : when more clients collude than the rule allows, or an index is out of range.
    """

    rule: ListRule
    threshold: int
    colluders: frozenset[int] = frozenset()
    without: frozenset[Part] = frozenset()
    honest: Bools = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.colluders) > self.rule.colluders:
            raise ValueError(
                f"at most {self.rule.colluders} clients may collude, got {len(self.colluders)}"
            )
        if strangers := {k for k in self.colluders if not 0 <= k < self.clients}:
            raise ValueError(f"a client's index must be below {self.clients}, got {strangers}")
        honest = np.ones(self.clients, dtype=np.bool_)
        honest[list(self.colluders)] = False
        object.__setattr__(self, "honest", honest)

    @property
    def clients(self) -> int:
        """The number K of clients in the agreement."""
        return self.rule.clients

    @property
    def allowed(self) -> int:
        """The fewest honest vectors that a server may learn a combination of.

        Every sum is over at least ``min_clients`` clients; colluders know their own vectors.
        """
        return self.rule.min_clients - len(self.colluders)

    @property
    def members(self) -> Indices:
        """The honest clients, ascending."""
        return np.flatnonzero(self.honest)

    def lacking(self, *parts: Part) -> Setting:
        """The same clients, who in addition do not know these parts of the rule."""
        return replace(self, without=self.without | set(parts))

    def describe(self) -> str:
        """The numbers of the setting, on one line."""
        rule = self.rule
        graph = "complete" if rule.is_complete else f"ring of {rule.degree} neighbours"
        return (
            f"K = {rule.clients}, {len(self.colluders)} collude of at most {rule.colluders}, "
            f"min_clients {rule.min_clients}, threshold {self.threshold}, {graph}"
        )


def complete(
    clients: int, colluders: int, min_clients: int, threshold: int | None = None
) -> Setting:
    """The complete graph, on which tau shares open a secret; the last clients collude.

    Examples
    --------
    >>> complete(10, colluders=2, min_clients=7).threshold
    7
    """
    rule = ListRule(clients, colluders, min_clients, clients - 1, 0)
    shares = rule.certificate if threshold is None else threshold
    return Setting(rule, shares, frozenset(range(clients - colluders, clients)))


def ring(
    clients: int,
    colluders: int,
    min_clients: int,
    degree: int,
    threshold: int,
    window_excess: int | None = None,
) -> Setting:
    """A ring; the last clients collude, and by default any window may hold all of them."""
    excess = colluders if window_excess is None else window_excess
    rule = ListRule(clients, colluders, min_clients, degree, excess)
    return Setting(rule, threshold, frozenset(range(clients - colluders, clients)))
