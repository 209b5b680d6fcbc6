"""The baseline of all protocols: no privacy at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Flags, Integers, Labels
from tacit.data.clients import sorted_scores
from tacit.data.errors import check_classes
from tacit.data.ragged import StoredLabels
from tacit.data.scales import clients_apart
from tacit.metrics.ranking import auc_with_variance
from tacit.protocol.fields import ragged_of

APART = (
    "the scores tell the classes of these records apart without a mistake, for which DeLong's "
    "sampling error is 0: the interval about the population is too narrow"
)


ALL_RECORDS = tp.ThreatModel(
    "The server, with everything. This is the baseline without privacy.",
    "Exactly: every record, its score and its label.",
    "Nothing.",
    "Everything.",
)


@tp.step(cost=lambda clients, query, state: tp.UNPROTECTED)
def share_plain_records(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the records as they are. No privacy: the server learns every score with its label.

    Labels are sent as bits, eight in a byte; the labels of each client start with a new byte.
    """
    if clients.ranking is not None:
        packed = np.concatenate(([0], np.cumsum(-(-clients.sizes // 8))))
        return {
            "scores": sorted_scores(clients),
            "labels": StoredLabels(packed, clients.ranking.ranked),
        }
    used, offsets = _bits_in_bytes(clients.sizes)
    bits = np.zeros(used.size, dtype=np.uint8)
    bits[used] = clients.labels
    return {
        "scores": clients.ragged(clients.scores),
        "labels": tp.Ragged(np.packbits(bits), offsets),
    }


@dataclass(frozen=True)
class ExactAUC(tp.Protocol):
    """The exact AUC, with no privacy: the baseline.

    The server receives all records, so its sampling error is that of DeLong et al. 1988.

    Examples
    --------
    >>> ExactAUC().guarantee.epsilon
    inf
    """

    name = "exact"
    steps = (share_plain_records,)
    draws_noise = False
    threats = staticmethod(lambda settings: ALL_RECORDS)
    gives_errors = False
    """There is no noise."""

    guarantee = tp.UNPROTECTED

    def replicate_size(self, clients: tp.Clients) -> int:
        """No noise is drawn."""
        return 1

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: records up."""
        reply = yield tp.Query(share_plain_records, self)
        result, sent = _result_of_records(reply), reply["scores"]
        return (
            replace(result, scales=clients_apart(sent)) if isinstance(sent, tp.Ragged) else result
        )


def _result_of_records(reply: tp.Reply) -> tp.ServerResult:
    """The exact AUC of all records, with DeLong's sampling error where both classes have two."""
    scores, packed = (ragged_of(reply[name], name) for name in ("scores", "labels"))
    if isinstance(packed, StoredLabels):
        placed = packed.placements
        positives, negatives = placed.positives, placed.negatives
        check_classes(positives, negatives)
        value, sampling = placed.doubled_wins / (2 * positives * negatives), placed.variance
    else:
        labels = _unpacked(packed, scores.sizes)
        positives = int(np.count_nonzero(labels))
        negatives = labels.size - positives
        check_classes(positives, negatives)
        value, sampling = auc_with_variance(scores.values, labels)
    known = min(positives, negatives) >= 2
    exact = np.zeros(())
    return tp.ServerResult(
        value=exact + value,
        privacy_error=exact,
        sampling_error=exact + np.sqrt(sampling),
        positives=exact + positives,
        negatives=exact + negatives,
        warnings=(APART,) if value in (0, 1) and known else (),
    )


def _bits_in_bytes(sizes: Integers) -> tuple[Flags, Integers]:
    """Which bits of all bytes are a record's, and each client's first byte, shape (K+1,)."""
    offsets = np.concatenate(([0], np.cumsum(-(-sizes // 8)))).astype(np.int64)
    used = np.ones(8 * int(offsets[-1]), dtype=np.bool_)
    # at most seven bits a client, at the end of its last byte, are nobody's
    spare = 8 * offsets[1:, np.newaxis] - np.arange(1, 8)
    used[spare[np.arange(1, 8) <= (-sizes % 8)[:, np.newaxis]]] = False
    return used, offsets


def _unpacked(packed: tp.Ragged[np.uint8], sizes: Integers) -> Labels:
    """The labels of clients with so many records each.

    Raises
    ------
    ValueError : for another number of bytes.
    """
    used, offsets = _bits_in_bytes(sizes)
    if not np.array_equal(packed.offsets, offsets):
        raise ValueError("clients must send one label for each score")
    return np.unpackbits(packed.values)[used].astype(np.int8)
