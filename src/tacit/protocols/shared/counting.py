"""What protocols share that count records in cells of scores: settings, guarantee, neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost
from tacit.protocol import audits
from tacit.protocol.conversation import Protocol
from tacit.protocol.scaled import ScaledScores, scale_setting
from tacit.protocol.settings import EPSILON, setting
from tacit.protocol.trust import (
    Each,
    ExactSum,
    Local,
    SecureSum,
    Trust,
    trust_setting,
)

REPORTING = 8
"""Number of records of an audit of private reports, so that some report in each round or block."""


@dataclass(frozen=True)
class CountingProtocol(ScaledScores, Protocol):
    """A protocol that counts records in ``2**height`` equal cells of positions of scores.

    Parameters
    ----------
    trust : ``SecureSum()`` (the server sees a sum over the clients, with noise of which every
        client draws a share), ``Each()`` (it sees what each client releases, which has the whole
        noise), ``ExactSum()`` (the exact sum, nothing of a client, and there is no
        differential privacy) or, where a subclass offers it, ``Local()`` (every record's report is
        private on its own), or their words.
    epsilon : the privacy budget of one record; none for exact sums.
    height : there are ``2**height`` cells; None takes what the subclass says.
    adjacency : ``"record"`` (added or removed; not of private reports, which are seen to be sent)
        or ``"replace"``; None takes the first that applies.
    scale : the public map of scores to the positions that equal cells cut (``SCALES`` of
        ``metrics.cells.score_scale``).

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.
    """

    trust: SecureSum | Each | ExactSum | Local | str = trust_setting()
    epsilon: float | None = setting(default=None, help=EPSILON)
    height: int | None = setting(default=None, help="2**height cells of scores")
    adjacency: Literal["record", "replace"] | None = setting(
        default=None, help="what epsilon hides; record by default where it applies"
    )
    scale: str = scale_setting()

    title_settings = ("trust", "adjacency")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.trust, ExactSum):
            if self.epsilon is not None:
                raise ValueError(f"{self.trust} takes no epsilon, got {self.epsilon}")
        elif self.epsilon is None:
            raise ValueError(f"{self.trust} needs an epsilon")
        self._settle_adjacency()

    def _settle_adjacency(self) -> None:
        """Take the first adjacency that applies where none was chosen, and refuse another."""
        allowed: tuple[str, ...] = ("record", "replace")
        if isinstance(self.trust, ExactSum):
            allowed = ()
        elif isinstance(self.trust, Local):
            allowed = ("replace",)
        if self.adjacency is None and allowed:
            object.__setattr__(self, "adjacency", allowed[0])
        elif self.adjacency not in (*allowed, None):
            raise ValueError(
                f"adjacency must be one of {allowed} for {self.trust}, got {self.adjacency!r}"
            )

    @classmethod
    def takes_epsilon(cls, settings: Mapping[str, Any]) -> bool:
        """Whether noise is added to the sums or reports."""
        return Trust.of(str(settings.get("trust", SecureSum.word))) is not Trust.EXACT_SUM

    @property
    def lone_records(self) -> bool:
        """Whether records report by themselves."""
        return isinstance(self.trust, Local)

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> audits.AuditCase:
        """Clients of one record where records report by themselves, else one client."""
        if Trust.of(str(settings.get("trust", SecureSum.word))) is Trust.LOCAL:
            return audits.AuditCase(cls.name, settings, REPORTING, apart=True, tight=False)
        return audits.AuditCase(cls.name, settings, tight=False)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """None of its own: the attacks on curves concern those that give one."""
        return ()

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs every record at most."""
        if self.epsilon is None:
            return UNPROTECTED
        return Cost(self.epsilon, adjacency=Adjacency(self.adjacency))

    @property
    def known_epsilon(self) -> float:
        """The budget where there is one.

        Raises
        ------
        ValueError : where the trust has none.
        """
        if self.epsilon is None:
            raise ValueError(f"{self.trust} has no epsilon")
        return self.epsilon

    @property
    def distance(self) -> int:
        """How many counts of a level a neighbour changes by one, for each time a record counts."""
        return 2 if self.adjacency == "replace" else 1
