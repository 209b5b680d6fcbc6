"""What a protocol declares for the laws: which do not apply, and what errors it promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol

REPEATS = 2500
"""Repetitions of a run by which its errors are judged: their standard deviation is then known to
1.4 %."""


@dataclass(frozen=True)
class LawTraits:
    """Which laws a protocol does not obey, each with the reason, and how the others run.

    A law applies where its text is empty. All apply by default.

    Parameters
    ----------
    indivisible : why a batch does not answer as its clients do one at a time.
    unordered : why the order of clients and records changes the figure.
    inexact : why a run without noise does not give ``Protocol.noiseless_value``.
    unmeasured_loss : why the privacy loss of a reply cannot be read from the noise that was drawn.
    few_records : why intervals cover less often on few records.
    unforecast : why what is forecast is not the error of these settings.
    loose : why the declared cost is larger than what a step spends.
    keeps_state : whether later steps read what clients noted, so that the privacy law has to keep
        their notes.
    min_clients : the fewest clients of a session.
    batches : the numbers of clients at a time that must give the same figure.
    copies : how many copies of each record the law on exactness takes.
    tolerance : by how much an exact figure may be off.
    spread : by how much the figures of two runs without noise may differ, where ciphertexts err.
    """

    indivisible: str = ""
    unordered: str = ""
    inexact: str = ""
    unmeasured_loss: str = ""
    few_records: str = ""
    unforecast: str = ""
    loose: str = ""
    keeps_state: bool = False
    min_clients: int = 1
    batches: tuple[int, ...] = (1, 2, 3)
    copies: int = 1
    tolerance: float = 1e-9
    spread: float = 0.0


@dataclass(frozen=True)
class ErrorCase:
    """A configuration whose stated errors and intervals are compared with those of many runs.

    Parameters
    ----------
    protocol : the configuration.
    repeats : how often it runs.
    noticed : whether noise that is 30 % off must fail the comparison.
    """

    protocol: Protocol
    repeats: int = REPEATS
    noticed: bool = False
