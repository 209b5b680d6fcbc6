"""Why a party declines to answer: the reason for its owner, and the reason for all others.

The text of these errors is for the owner of the ledger and may hold numbers. ``public`` is for the
others, and holds none: it says that the party declines, and of what kind the reason is.
"""

from __future__ import annotations


class BudgetError(ValueError):
    """A question that the party does not answer; it has sent nothing about its records.

    Attributes
    ----------
    public : the reason that others may read; no numbers, no names.

    Examples
    --------
    >>> LimitError("epsilon 2 would bring data set 'registry' to 3.5; its limit is 3").public
    'declined: the privacy budget does not allow it'
    """

    public = "declined"


class LimitError(BudgetError):
    """The answer would pass a limit of the data set, or the data set has none."""

    public = "declined: the privacy budget does not allow it"


class ConflictError(BudgetError):
    """Another question was answered under this session and step, or under this data set's name."""

    public = "declined: the question contradicts an earlier one"


class RepeatedError(BudgetError):
    """An answer that leaves once may have left before."""

    public = "declined: it may have answered this before, and such an answer leaves once"


class LedgerError(BudgetError):
    """The ledger cannot be read or written, or does not verify."""

    public = "declined: the ledger is not available"
