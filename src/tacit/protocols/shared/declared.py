"""Declarations that protocols of several packages share.

``CountingProtocol`` has the settings of protocols that count records in cells of scores,
``forest_model`` their threat model. The attacks guess labels from scores that the server receives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories
from tacit.metrics.ranking import auc, top_hits
from tacit.privacy import doubles
from tacit.protocol import audits
from tacit.protocol.declared import LOCAL, LOCAL_PAGE, NO_ONE
from tacit.protocol.fields import ragged_of
from tacit.results.figure import MACRO_AUC

SUM_TRUST = (
    "The server is trusted to see sums only. Between real parties that takes secure aggregation; "
    "the command `tacit evaluate` adds up all replies in one process."
)


HISTOGRAM_PAGE = "threat-models/score-histogram.md"

NOTHING_PUBLISHED: Mapping[tp.Trust, str] = {}


COUNTED = {
    tp.Trust.EACH: tp.ThreatModel(
        NO_ONE,
        "With noise, of every client: {}.",
        "Nothing.",
        "What is true of a large client as a whole: a noisy count of many records is a good "
        "estimate of that count.",
    ),
    tp.Trust.LOCAL: tp.ThreatModel(
        LOCAL,
        "Exactly, of every record: which of the counts it was dealt to. With noise: one report "
        "about these counts. From all reports: {}.",
        "Nothing.",
        "What is true of many records of one client.",
        LOCAL_PAGE,
    ),
    tp.Trust.EXACT_SUM: tp.ThreatModel(
        f"{SUM_TRUST} No noise is added, so every reader of the result is trusted with what "
        "follows from exact sums.",
        "Exactly, of all clients together: {}. Of each client: that it answered.",
        "Nothing.",
        "Everything that exact sums tell: a cell with one record is that record, and two sums "
        "over nearly the same clients differ by the clients that came or went.",
    ),
    tp.Trust.SECURE_SUM: tp.ThreatModel(
        f"{SUM_TRUST} The other clients are trusted to draw their shares of the noise and to keep "
        "them secret.",
        "With noise, of all clients together: {}. Exactly: how many clients answered.",
        "Nothing.",
        "Clients that vanish, or that tell the server their shares, take their part of the noise "
        "away. Colluders cannot be seen.",
    ),
}
"""The threat model by trust; what is counted stands for the braces."""


def forest_model(
    settings: Mapping[str, Any],
    summed: str,
    published: Mapping[tp.Trust, str] = NOTHING_PUBLISHED,
    page: str = "",
) -> tp.ThreatModel:
    """The threat model of a protocol whose records are counted.

    Parameters
    ----------
    settings : those of a result.
    summed : what is counted, for "of all clients together: ...".
    published : what a client sees of the others with noisy sums, or where the server sees each.
    page : where the model is written.
    """
    trust = tp.Trust.of(str(settings.get("trust", tp.Trust.SECURE_SUM.value)))
    model, others = COUNTED[trust], published.get(trust, "Nothing.")
    server = model.server.format(summed)
    return replace(model, server=server, others=others, page=model.page or page)


CLIENT_SIZES = ((1, "one record"), (100, "100 records"))
"""Numbers of records of clients whose scores the server receives in ascending order."""


def guesses_from_ascending_scores(
    protocol: tp.Protocol, sizes: audits.AttackSizes, seed: int
) -> Iterator[audits.Guesses]:
    """Call the highest-scored hundredth positive, from scores sent in ascending order.

    The server does not know which record of a client has which score, unless a client has one
    record only.
    """
    yield from guesses_from_plain_scores(protocol, sizes, seed)
    scores, labels = audits.synthetic_records(sizes.records, seed, audits.POSITIVE_FRACTION)
    for size, text in CLIENT_SIZES:
        clients = tp.Clients.from_arrays(scores, labels, np.arange(scores.size) // size)
        received = received_scores(protocol, clients, tp.NoNoise())
        yield _guesses(f"ascending scores of clients of {text}", size > 1, received, labels)


def guesses_from_plain_scores(
    protocol: tp.Protocol, sizes: audits.AttackSizes, seed: int
) -> Iterator[audits.Guesses]:
    """Call the highest-scored hundredth positive, from the records' scores themselves.

    A protocol that shows no scores prevents this attack.
    """
    scores, labels = audits.synthetic_records(sizes.records, seed, audits.POSITIVE_FRACTION)
    yield _guesses("scores with their records", False, scores, labels)


def _guesses(
    release: str, protected: bool, received: Floats, labels: NDArray[np.int8]
) -> audits.Guesses:
    """Right guesses of the highest-scored hundredth (Sun et al. 2022a, Table 8; Sun et al. 2022b,
    Table 2)."""
    size = labels.size // 100
    hits = int(top_hits(received, labels, np.array([size]))[0])
    return audits.Guesses(
        "labels, from scores", release, protected, hits, size, float(labels.mean())
    )


def first_reply(protocol: tp.Protocol, clients: tp.Clients, noise: tp.NoiseSource) -> tp.Reply:
    """What clients answer to the first query."""
    query = next(protocol.conversation(clients.count))
    return query.step.answer(clients, query, noise, tp.ClientState())


def received_scores(protocol: tp.Protocol, clients: tp.Clients, noise: tp.NoiseSource) -> Floats:
    """The scores that the server receives, in the order in which it receives them."""
    return ragged_of(first_reply(protocol, clients, noise)["scores"], "scores").values


def guesses_from_noisy_scores(
    protocol: tp.Protocol, sizes: audits.AttackSizes, seed: int
) -> Iterator[audits.Guesses]:
    """Call the highest-scored hundredth positive, from scores with noise."""
    scores, labels = audits.synthetic_records(sizes.records, seed, audits.POSITIVE_FRACTION)
    yield _guesses("scores with their records", False, scores, labels)
    received = received_scores(
        protocol, tp.Clients.from_arrays(scores, labels), tp.SimulatedNoise(seed)
    )
    yield _guesses("scores with noise", True, received, labels)


def lowered_noise(
    topic: str, sound: str, broken: str, protocol: tp.Protocol
) -> audits.SelfTestCases:
    """A mechanism for an audit's self-test, and the same with noise 30 % too small."""
    lowered = partial(doubles.ScaledNoise, 0.7)
    return audits.SelfTestCases(
        (
            audits.AuditTrial(topic, sound, False, protocol),
            audits.AuditTrial(topic, broken, True, protocol, lowered),
        )
    )


class ScoresByClass(tp.ScaledScores, tp.Declarations):
    """A protocol for the one-versus-rest AUCs of agreed classes, of each of which there is a score.

    Parameters
    ----------
    classes : the names of the classes.
    """

    classes: tuple[str, ...]

    figure: ClassVar[str] = MACRO_AUC
    categories_setting = "classes"
    scores_by_class = True

    def classified(self, clients: tp.Clients) -> tuple[Floats, Integers]:
        """The scores of all classes, shape (M, C), and the records' classes, shape (M,).

        Clients without classes are taken to have two, with the scores 1 - s and s, or -s and s.

        Raises
        ------
        DataError : for clients of other classes than the agreed ones.
        """
        clients = clients if clients.at_hand else clients.part(0, clients.count)
        known, names = clients.categories, self.classes
        if known is not None and known.scores is not None:
            if known.names != names:
                raise tp.DataError(
                    f"classes must be {', '.join(names)}, got {', '.join(known.names)}"
                )
            return known.scores, known.of_record
        if len(names) != 2:
            raise tp.DataError(f"{len(names)} classes need a column of scores each, got one")
        against = -clients.scores if self.score_range is None else 1 - clients.scores
        return np.stack([against, clients.scores], axis=1), clients.labels.astype(np.int64)

    def problems(self, clients: tp.Clients) -> Iterator[tp.Clients]:
        """Each class against the rest."""
        return one_against_rest(clients, *self.classified(clients))

    def exact(self, clients: tp.Clients) -> float:
        """The mean of the exact one-versus-rest AUCs, which is not private."""
        return float(np.mean([auc(each.scores, each.labels) for each in self.problems(clients)]))

    def audit_federation(self, records: int, apart: bool) -> tp.Clients:
        """Records of all classes in turn, whose scores lie in cells of their own."""
        clients, count = super().audit_federation(records, apart), len(self.classes)
        if count == 2:  # clients have two without names
            return clients
        records = clients.records
        even = (np.arange(records * count).reshape(records, count) + 0.5) / (records * count)
        made = Categories(self.classes, np.arange(records) % count, self.score_scale.scores(even))
        return clients.with_categories(made)


def one_against_rest(
    clients: tp.Clients, scores: Floats, classes: Integers
) -> Iterator[tp.Clients]:
    """For each class the clients with its scores, and the label 1 for its records.

    Parameters
    ----------
    clients : whose records they are.
    scores : of all classes, shape (M, C).
    classes : of the records, shape (M,).
    """
    clients = clients if clients.at_hand else clients.part(0, clients.count)
    plain = replace(clients, categories=None)
    for number in range(scores.shape[1]):
        column = np.ascontiguousarray(scores[:, number])
        yield replace(plain, scores=column, labels=(classes == number).astype(np.int8))


def both_models(clients: tp.Clients) -> tuple[tp.Clients, tp.Clients]:
    """The clients with the first and with the second model's scores."""
    second = clients.second_as_scores
    if second is None:
        raise tp.DataError("a comparison needs a second model's scores, and these records have one")
    return clients, second


class ComparesModels(tp.Protocol):
    """The difference of two models' AUCs: records hold the second's scores as second values."""

    figure = "difference of two AUCs"
    needs_second_values = True

    def comparison(self) -> tp.Protocol:
        """Itself."""
        return self

    def exact(self, clients: tp.Clients) -> float:
        """The exact difference of the AUCs, which is not private."""
        first, second = both_models(clients)
        return auc(first.scores, first.labels) - auc(second.scores, second.labels)


def adjacency_setting(default: str | None = "record") -> Any:
    """The setting ``adjacency``; the annotation of the field says which adjacencies there are."""
    return tp.setting(
        default=default, help="what epsilon hides; record by default where it applies"
    )


REPORTING = 8
"""Number of records of an audit of private reports, so that some report in each round or block."""


@dataclass(frozen=True)
class CountingProtocol(tp.ScaledScores, tp.Protocol):
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

    trust: tp.SecureSum | tp.Each | tp.ExactSum | tp.Local | str = tp.trust_setting()
    epsilon: float | None = tp.setting(default=None, help=tp.EPSILON)
    height: int | None = tp.setting(default=None, help="2**height cells of scores")
    adjacency: Literal["record", "replace"] | None = adjacency_setting(None)
    scale: str = tp.scale_setting()

    title_settings = ("trust", "adjacency")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.trust, tp.ExactSum):
            if self.epsilon is not None:
                raise ValueError(f"{self.trust} takes no epsilon, got {self.epsilon}")
        elif self.epsilon is None:
            raise ValueError(f"{self.trust} needs an epsilon")
        self._settle_adjacency()

    def _settle_adjacency(self) -> None:
        """Take the first adjacency that applies where none was chosen, and refuse another."""
        allowed: tuple[str, ...] = ("record", "replace")
        if isinstance(self.trust, tp.ExactSum):
            allowed = ()
        elif isinstance(self.trust, tp.Local):
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
        return tp.Trust.of(str(settings.get("trust", tp.SecureSum.word))) is not tp.Trust.EXACT_SUM

    @property
    def lone_records(self) -> bool:
        """Whether records report by themselves."""
        return isinstance(self.trust, tp.Local)

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> audits.AuditCase:
        """Clients of one record where records report by themselves, else one client."""
        if tp.Trust.of(str(settings.get("trust", tp.SecureSum.word))) is tp.Trust.LOCAL:
            return audits.AuditCase(cls.name, settings, REPORTING, apart=True, tight=False)
        return audits.AuditCase(cls.name, settings, tight=False)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """None of its own: the attacks on curves concern those that give one."""
        return ()

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs every record at most."""
        if self.epsilon is None:
            return tp.UNPROTECTED
        return tp.Cost(self.epsilon, adjacency=tp.Adjacency(self.adjacency))

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
