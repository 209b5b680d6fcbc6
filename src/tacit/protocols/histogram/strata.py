"""Private groups of a score histogram: strata of its table of counts.

What is counted. Where groups are agreed, a level of a tree has its nodes once for every group. A
record is in one group and has one class and one score: on every level it counts in one node. Adding
or removing it changes one count of each level by 1, so the sensitivity is 1, however many groups
there are; replacing it, whatever its group, changes at most 2. So epsilon hides a record's group as
it hides its class and score; only the list of groups is public.

The table of all records is the sum over groups, whose noise has G times the variance of one
group's. A flat look, which says where cells are placed, is about all records; the tree in the cells
that it places is counted by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.protocols.shared.cells import ALL_RECORDS, Strata
from tacit.results.curves.curve import UNIT
from tacit.results.figure import class_too_small, is_class_too_small
from tacit.results.parts.breakdown import Breakdown, Difference, Part, difference
from tacit.results.server_result import ServerResult

TRUE_POSITIVES, FALSE_POSITIVES = "true positive rate", "false positive rate"
PRECISION = "positive predictive value"

CALLED = {
    "AUC": "AUC gap",
    TRUE_POSITIVES: "equal opportunity",
    FALSE_POSITIVES: "false positive gap",
    PRECISION: "predictive parity",
}
"""What a difference of each figure is called."""


def strata_of(clients: Clients, groups: tuple[str, ...]) -> Strata:
    """The group of every record, where several are agreed.

    Where one group is agreed, clients without groups belong to it.

    Raises
    ------
    DataError : for clients of other groups than the agreed ones, or of none where there are
        several.
    """
    names, known = clients.category_names, clients.categories
    if not groups or (not names and len(groups) == 1):
        return ALL_RECORDS
    if not names:
        raise DataError(
            f"{len(groups)} groups are agreed, but the records have none: name their column"
        )
    if names != groups:
        raise DataError(f"groups must be {', '.join(groups)}, got {', '.join(names)}")
    return Strata(len(groups), 0 if known is None else known.of_record)


def breakdown(
    groups: tuple[str, ...], results: Sequence[ServerResult], threshold: float
) -> Breakdown:
    """The figures of every group, and every group's less those of the first that has some.

    Parameters
    ----------
    groups : their names.
    results : what the server concludes of every group's table alone.
    threshold : the score from which records are predicted positive.
    """
    parts = tuple(
        _part(name, result, threshold) for name, result in zip(groups, results, strict=True)
    )
    known = [part for part in parts if part.figures]
    differences = tuple(
        Difference(
            figure,
            other.name,
            known[0].name,
            difference(other.figures[figure], known[0].figures[figure]),
            called,
        )
        for other in known[1:]
        for figure, called in CALLED.items()
    )
    return Breakdown("group", parts, {}, differences)


def _part(name: str, result: ServerResult, threshold: float) -> Part:
    """One group's AUC and rates; none where a class of its records is too small."""
    totals = float(result.positives), float(result.negatives)
    size, error = min(totals), float(result.positives_error)
    if result.histogram is None or size <= 0 or is_class_too_small(size, error):
        return Part(name, *totals, {}, class_too_small(size, error))
    at = result.histogram.at(threshold)
    specificity = at["specificity"]
    rates = {
        TRUE_POSITIVES: at["sensitivity"],
        FALSE_POSITIVES: replace(specificity, value=1 - specificity.value),
        PRECISION: at["positive_predictive_value"],
    }
    figures = {called: replace(rate, threshold=threshold) for called, rate in rates.items()}
    return Part(name, *totals, {"AUC": result.within(UNIT).estimate(), **figures})
