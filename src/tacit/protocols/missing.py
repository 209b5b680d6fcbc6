"""How many records were left out because they lack a score or a label, with noise.

What is counted. A client leaves out a record that lacks a score or a label
(``tacit.data.columns``), and counts it once. Adding, removing or replacing a record,
complete or not, or taking away its label, moves the count of one client by at most 1. So the
sensitivity is 1 whichever of these the guarantee is about, and discrete Laplace noise of scale ``1
/ epsilon`` costs epsilon (Laplace mechanism on the integers, Ghosh et al. 2012). Together with
another protocol on the complete records, a record that becomes incomplete costs both: the budgets
add up. A person may have any number of incomplete records, so the count protects no person
(``running.spending``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Integers
from tacit.protocol import audits
from tacit.protocols.shared.declared import adjacency_setting, forest_model

COMPLETE = (
    "the laws compare neighbours by their complete records, of which the count holds none; "
    "tests of the protocol compare records that become incomplete"
)


def left_out_by_client(clients: tp.Clients) -> Integers:
    """The records that every client left out, shape (K,); 0 where it refuses to leave any out."""
    if clients.left_out is None:
        return np.zeros(clients.count, dtype=np.int64)
    return clients.left_out.sum(axis=0)


@tp.release(lambda query: {"left_out": tp.Released(epsilon=query.protocol.epsilon)})
def count_left_out(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send how many records were left out, with noise of scale ``1 / epsilon``.

    A record moves the count of its client by at most 1, which costs epsilon
    (``tacit.protocol.releases``).

    The server learns the noisy sum and how many clients answered, or each client's noisy count.
    """
    return {"left_out": tp.by_view(query, left_out_by_client(clients))}


@dataclass(frozen=True)
class MissingRecords(tp.Protocol):
    """How many records clients left out for lack of a score or a label.

    Parameters
    ----------
    epsilon : the privacy budget.
    trust : ``SecureSum()`` (the sum, with noise of which every client draws a share) or ``Each()``
        (every client's count, with the whole noise in each), or their words.
    adjacency : what epsilon is said to hide: ``"record"`` (added or removed), ``"replace"`` or
        ``"label"``. The noise is the same.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> clients = tacit.Clients.from_arrays([0.1, 0.9], [0, 1])
    >>> from dataclasses import replace
    >>> clients = replace(clients, left_out=np.array([[40], [60]]))
    >>> result = tacit.evaluate(clients, MissingRecords(1.0), seed=0, exact=True)
    >>> result.exact, abs(result.estimate.value - 100) < 20
    (100.0, True)
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    trust: tp.SecureSum | tp.Each | str = tp.trust_setting()
    adjacency: Literal["record", "replace", "label"] = adjacency_setting()

    name = "missing-records"
    figure = "number of incomplete records"
    counts_missing = True
    steps = (count_left_out,)
    law_settings: ClassVar[audits.Configurations] = {
        "missing": {},
        "missing-each": {"trust": tp.Trust.EACH.value},
        "missing-replace": {"adjacency": "replace"},
    }
    loose_audit_settings = ({"trust": tp.SecureSum.word}, {"trust": tp.Each.word})
    law_traits = tp.LawTraits(loose=COMPLETE)
    """The count does not hold complete records."""
    threats = staticmethod(
        lambda settings: forest_model(settings, "records lack a score or a label")
    )

    def replicate_size(self, clients: tp.Clients) -> int:
        """A count of every client."""
        return 2 * clients.count

    def exact(self, clients: tp.Clients) -> float:
        """The number of records that were left out."""
        return float(left_out_by_client(clients).sum())

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: counts up."""
        sums = yield from tp.ask(count_left_out, self, clients)
        value = sums["left_out"]
        return sums.result(value, {"left_out": np.ones_like(value)}, limits=(0.0, math.inf))

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """None of its own: a count of records without labels shows no label."""
        return ()

    @classmethod
    def error_cases(cls) -> Mapping[str, tp.ErrorCase]:
        """Both trust models; whole numbers with little noise have intervals of few lengths."""
        return {
            "missing": tp.ErrorCase(cls(0.1), noticed=True),
            "missing-each": tp.ErrorCase(cls(1.0, tp.Trust.EACH.value), repeats=1200),
        }
