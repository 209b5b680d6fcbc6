"""What a party refuses to answer, whatever its records are."""

from __future__ import annotations

from tacit.protocol.conversation import Query, View
from tacit.protocol.mpc import MPCProgram
from tacit.running.session.messages import Agreement, MalformedMessageError


def checked_query(query: Query, view: View, agreement: Agreement) -> Query:
    """A query that shows no more, and divides the noise among no more parties, than agreed.

    Raises
    ------
    MalformedMessageError : for a query that a party does not answer.
    """
    if query.view is not view:
        raise MalformedMessageError(f"this message asks for the view {query.view.value!r}")
    agreed = query.step.view_under(query.protocol)
    if view is not (agreed or view) or (view is View.MPC and agreed is None):
        raise MalformedMessageError(
            f"step {query.step.name} is not answered under the view {view.value!r}"
        )
    _check_sharing(query, len(agreement.parties))
    return query


def _check_sharing(query: Query, parties: int) -> None:
    """Refuse a share of noise that was divided among others than the agreed parties.

    Where each of n parties draws 1/n of the noise, the noise protects a sum over n parties.
    Shares of 1/(100 n) would leave a hundredth of the variance.
    """
    if query.step.shares is None:
        if query.view is View.SUM:
            raise MalformedMessageError(
                f"step {query.step.name} does not declare who shares its noise, so it is not "
                "summed between parties"
            )
        return
    sharing = query.step.shares(query)
    if sharing is not None and (type(sharing) is not int or sharing != parties):
        raise MalformedMessageError(
            f"{parties} parties share the noise, and the message says {sharing!r:.40}"
        )


def program_of(query: Query) -> MPCProgram:
    """How parties compute what a query asks of them together."""
    if query.step.computes is None:
        raise MalformedMessageError(f"step {query.step.name} declares no program for real parties")
    return query.step.computes()
