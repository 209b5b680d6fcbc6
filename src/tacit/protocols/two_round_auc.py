"""AUC in the local model by two rounds of reports, one report a record (docs, section 4d).

A few records, drawn at random by themselves, report their cell; the server publishes what it makes
of both classes' distribution functions. Every other record reports its influence on the AUC, a
bounded number that can be reported with little noise. Errors of the first round cancel to first
order in

    AUC = a + b - integral of F^- dF^+

with a and b the mean reports of ``F^-`` and ``1 - F^+``: what remains is ``- integral of (F^- -
G^-) d(F^+ - G^+)``, G the true distribution functions.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients, DataError, Ragged
from tacit.privacy.bounded import GridReport
from tacit.privacy.cost import NOTHING, Adjacency, Cost, check_budget
from tacit.privacy.noise import NoiseSource
from tacit.protocols.conversation import Ask, Conversation, Field, Memory, Protocol, Reply, step
from tacit.protocols.score_range import UNIT_INTERVAL, check_scores_in_unit_interval
from tacit.protocols.two_round_findings import Result, findings_of, several_findings
from tacit.protocols.two_round_influence import Influence, reported_numbers
from tacit.protocols.two_round_opening import PLACES, Opening, opening_places

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]

ONE_REPLICATE = 2**26
"""Who speaks when is shared by replicates, so they are run one at a time."""

NOTE = ("two-round turns",)
ORDER_KEY_BYTES = 32


class Turns(NamedTuple):
    """What a client notes: the turns its records drew, and how far the conversation has come.

    ``order`` is a digest of the records in their order, under a ``key`` that never leaves the
    client: a turn belongs to a record by its place, so records that changed places would speak in
    both rounds, or in none.
    """

    drawn: NDArray[np.uint8]
    rounds: int
    first: int
    key: bytes
    order: bytes

    @classmethod
    def of(
        cls, clients: Clients, drawn: NDArray[np.uint8], rounds: int = 0, first: int = 0
    ) -> Turns:
        """The note of clients whose records drew these turns; just now, unless rounds are given."""
        key = secrets.token_bytes(ORDER_KEY_BYTES)
        return cls(drawn, rounds, first, key, order_of(clients, key))


def order_of(clients: Clients, key: bytes) -> bytes:
    """A keyed digest of clients' records in their order: HMAC-SHA256, 32 bytes."""
    digest = hmac.new(key, digestmod="sha256")
    for column in (clients.offsets, clients.scores, clients.labels):
        digest.update(column.tobytes())
    return digest.digest()


def _early(clients: Clients, ask: Ask) -> Bits:
    return np.asarray(_turns_of(ask) < ask.shared["first"])


def _late(clients: Clients, ask: Ask) -> Bits:
    return ~_early(clients, ask)


def _early_cost(clients: Clients, ask: Ask, memory: Memory) -> Cost:
    return ask.settings.guarantee if _early(clients, ask).any() else NOTHING


def _late_cost(clients: Clients, ask: Ask, memory: Memory) -> Cost:
    return ask.settings.guarantee if _late(clients, ask).any() else NOTHING


@step()
def draw_turns(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Draw every record's turn, uniform on 0..255, and send it; with public labels, these too.

    A turn depends on nothing private. The client draws it and notes it, so that a server cannot
    choose which records speak first, nor make one speak twice. The server learns the turns, and
    each record's label where labels are public, which score adjacency does not protect.

    Raises
    ------
    DataError : for a score outside [0, 1].
    """
    check_scores_in_unit_interval(clients)
    turns = noise.choices([1] * PLACES, clients.records).astype(np.uint8)
    memory.keep(NOTE, Turns.of(clients, turns))
    if ask.settings.opening.private_labels:
        return {"turns": clients.ragged(turns)}
    return {"turns": clients.ragged(turns), "labels": clients.ragged(clients.labels)}


@step(spends=_early_cost, speaks=_early)
def report_cells(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Report the cells of the records whose turn is early, one report a record.

    Epsilon for each record that speaks, by ``SlidingWindow.answers``: for its score where the
    report is about its cell, for score and label where it is about class and cell. The others are
    not touched. The server learns the reports, in the order of the client's records.

    Raises
    ------
    DataError : when the turns are not those that the client drew for this conversation, or the
        records or their order changed since.
    """
    _take_note(clients, ask, memory, rounds=0)
    speaking = _early(clients, ask)
    opening: Opening = ask.settings.opening
    places = opening.places(clients)[speaking]
    return {"reports": _reports(clients, speaking, opening.window.answers(places, noise))}


@step(spends=_late_cost, speaks=_late)
def report_influences(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Report the influence of the records whose turn is late, one report a record.

    Epsilon for each record that speaks, by ``GridReport.answers``: the number is a function of the
    record's score and label and of what the server published, and every report has a probability
    that changes by a factor of at most ``exp(epsilon)`` with it, whatever was published. That
    covers the score and the label alike; with public labels the server knows the label besides. The
    server learns the reports, in the order of the client's records.

    Raises
    ------
    DataError : when the turns are not those that the client drew for this conversation, or the
        records or their order changed since.
    """
    _take_note(clients, ask, memory, rounds=1)
    speaking = _late(clients, ask)
    scores, labels = clients.scores[speaking], clients.labels[speaking]

    def answers(knots: Floats, grid: Floats, width: int) -> Integers:
        report = GridReport(ask.settings.epsilon, grid, width)
        return report.answers(reported_numbers(scores, labels, knots), noise)

    published = [ask.shared[name] for name in ("knots", "grid", "width")]
    if noise.replicates is None:
        return {"reports": _reports(clients, speaking, answers(*published))}
    own = [answers(*plan)[k] for k, plan in enumerate(zip(*published, strict=True))]
    return {"reports": _reports(clients, speaking, np.stack(own))}


@dataclass(frozen=True)
class TwoRoundAUC(Protocol):
    """The AUC from one locally private report of every record.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    labels : ``"private"`` (a report covers score and label) or ``"public"`` (the server knows the
        labels, and reports cover the scores).
    mechanism : how the second round reports a number: ``"window"``, the best of a family that holds
        randomised response and the piecewise mechanism, or ``"bit"``, rounded to one bit.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> TwoRoundAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.REPLACE: 'replace'>, rho=None)
    """

    epsilon: float
    labels: Literal["private", "public"] = "private"
    mechanism: Literal["window", "bit"] = "window"

    name = "two-round-auc"
    score_range = UNIT_INTERVAL
    steps = (draw_turns, report_cells, report_influences)

    def __post_init__(self) -> None:
        check_budget(self.epsilon)
        if self.labels not in ("private", "public"):
            raise ValueError(f"labels must be 'private' or 'public', got {self.labels!r}")
        if self.mechanism not in ("window", "bit"):
            raise ValueError(f"mechanism must be 'window' or 'bit', got {self.mechanism!r}")

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each record: it speaks in one of the two rounds."""
        private = self.labels == "private"
        return Cost(self.epsilon, adjacency=Adjacency.REPLACE if private else Adjacency.SCORE)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {"epsilon": self.epsilon, "labels": self.labels, "mechanism": self.mechanism}

    @property
    def opening(self) -> Opening:
        """How records are asked in the first round."""
        return Opening(self.epsilon, self.labels == "private")

    def draws(self, clients: Clients) -> int:
        """So many that replicates run one at a time: they share who speaks when."""
        return max(ONE_REPLICATE, 8 * clients.records)

    def conversation(self, clients: int) -> Conversation:
        """Turns up; cells of a few records up; distribution functions down, influences up."""
        crowd = _crowd((yield Ask(draw_turns, self)), self)
        each, first = {"turns": crowd.turns}, {"first": crowd.first}
        reply = yield Ask(report_cells, self, first, each)
        counts = crowd.counted(reply["reports"], crowd.early, self.opening.window.outputs)
        single = _ragged_of(reply["reports"]).values.ndim == 1
        plans = [self._influence(crowd, own) for own in counts]
        published = _published(plans, single)
        reply = yield Ask(report_influences, self, first | published, each)
        outputs = max(plan.report.window.outputs for plan in plans)
        answered = crowd.counted(reply["reports"], ~crowd.early, outputs)
        results = [
            Result.of(self.opening, plan, *own)
            for plan, *own in zip(plans, counts, answered, strict=True)
        ]
        if single:
            return findings_of(results[0], crowd.records)
        return several_findings(results, crowd.records)

    def _influence(self, crowd: Crowd, counts: Integers) -> Influence:
        model = self.opening.model(counts, crowd.positive_share)
        private, bits = self.labels == "private", self.mechanism == "bit"
        return Influence(model, self.epsilon, private, bits, crowd.sizes)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Who speaks when, as the server knows it.

    Parameters
    ----------
    turns : every record's turn.
    classes : the class of every record as far as reports are told apart by it: its label where
        labels are public, else 0; shape (M,).
    kinds : how many such classes there are.
    first : the turns below this one speak in the first round.
    """

    turns: Ragged[np.uint8]
    classes: NDArray[np.int8]
    kinds: int
    first: int

    @property
    def records(self) -> int:
        """The number of records."""
        return self.classes.size

    @property
    def early(self) -> Bits:
        """Which records speak in the first round, shape (M,)."""
        return np.asarray(self.turns.values < self.first)

    @property
    def positive_share(self) -> float:
        """The share of the positives, where labels are public."""
        return float(self.classes.mean())

    @property
    def sizes(self) -> Integers:
        """The numbers of records, and of those that speak in the second round, shape (2, C)."""
        kinds = [self.classes, self.classes[~self.early]]
        return np.stack([np.bincount(own, minlength=self.kinds) for own in kinds])

    def counted(self, reports: Field, speaking: Bits, outputs: int) -> Integers:
        """How often each report came from each class, shape (R, C, outputs), R at least 1.

        Raises
        ------
        ValueError : for a number of reports, or a report, that cannot have come.
        """
        values = _ragged_of(reports).values
        several = np.atleast_2d(values).astype(np.int64)
        if several.shape[-1] != np.count_nonzero(speaking):
            raise ValueError(
                f"{np.count_nonzero(speaking)} records speak, got {several.shape[-1]} reports"
            )
        if several.size and several.max() >= outputs:
            raise ValueError(f"reports must be below {outputs}, got {several.max()}")
        replicate = np.arange(several.shape[0])[:, np.newaxis]
        places = (replicate * self.kinds + self.classes[speaking]) * outputs + several
        shape = (several.shape[0], self.kinds, outputs)
        return np.bincount(places.ravel(), minlength=int(np.prod(shape))).reshape(shape)


def _crowd(reply: Reply, protocol: TwoRoundAUC) -> Crowd:
    turns = _ragged_of(reply["turns"])
    records, private = turns.values.size, protocol.labels == "private"
    first = opening_places(protocol.epsilon, records, private)
    if private:
        return Crowd(turns, np.zeros(records, dtype=np.int8), 1, first)
    labels = _ragged_of(reply["labels"]).values
    positives = int(np.count_nonzero(labels))
    if positives in (0, records):
        raise DataError(
            "the AUC is undefined without both classes, "
            f"got {positives} positive and {records - positives} negative records"
        )
    return Crowd(turns, labels, 2, first)


def _published(plans: list[Influence], single: bool) -> dict[str, Any]:
    """What the second round's reports are made with; a leading axis holds replicates."""
    published = {
        "knots": np.stack([plan.knots for plan in plans]),
        "grid": np.stack([plan.report.grid for plan in plans]),
        "width": np.array([plan.report.width for plan in plans]),
    }
    return {name: own[0] for name, own in published.items()} if single else published


def _ragged_of(value: Field) -> Ragged[Any]:
    if not isinstance(value, Ragged):
        raise TypeError("replies must be ragged")
    return value


def _turns_of(ask: Ask) -> NDArray[np.uint8]:
    return _ragged_of(ask.each["turns"]).values


def _reports(clients: Clients, speaking: Bits, reports: Integers) -> Ragged[np.uint8]:
    """The reports of the records that speak, cut by client."""
    before = np.concatenate(([0], np.cumsum(speaking, dtype=np.int64)))
    return Ragged(reports.astype(np.uint8), before[clients.offsets])


def _take_note(clients: Clients, ask: Ask, memory: Memory, rounds: int) -> None:
    """Refuse turns that the client did not draw, a round out of turn, and records that moved."""
    note: Turns | None = memory.recall(NOTE)
    if note is None:
        raise DataError("turns were never drawn, and this ask says otherwise")
    first = ask.shared["first"]
    if not isinstance(first, int):
        raise ValueError(f"the first round's end must be a whole number, got {first!r}")
    kept = np.array_equal(note.drawn, _turns_of(ask)) and (rounds == 0 or note.first == first)
    if note.rounds != rounds or not kept:
        raise DataError("a record speaks once, at the turn it drew, and this ask says otherwise")
    if not hmac.compare_digest(note.order, order_of(clients, note.key)):
        raise DataError(
            "the records, or their order, changed since they drew their turns: a record would "
            "speak in both rounds"
        )
    memory.keep(NOTE, note._replace(rounds=rounds + 1, first=first))
