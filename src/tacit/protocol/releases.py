"""What a step releases, declared once; and every conversation as runners run it.

A step that answers with whole numbers and discrete Laplace noise declares its fields: their shape,
how far a neighbour moves them, and the epsilon that this may cost. Its cost, the layout and the
bounds of a secure sum, the noise that a client draws, the variances at the server and what is left
of the guarantee where clients vanish all follow from this declaration.

**Guarantee.** A neighbour moves the numbers of a field by at most ``sensitivity`` in all (L1), so
discrete Laplace noise of scale ``sensitivity / epsilon`` on each costs ``epsilon`` (Laplace
mechanism on the integers, Ghosh et al. 2012), and the fields of a reply add up (basic composition).
Under ``View.EACH`` a client adds this noise to its own numbers, and a record is at one client.
Under ``View.SUM`` every client adds a share of it (``PolyaShare``, Cormode and Markov 2023, section
2.2); the shares of the clients that are planned to stay add up to the whole, so the guarantee is
about the sum over all clients, and holds against a server that sees the sum only, as long as those
that vanish or collude with it are no more than ``SecureSum.dropouts`` covers.

**Bounds.** How large the sums of a step can become is known beforehand, so that a secure sum sends
just as many bits.

Parties agree on ``most_records``, the records of a client for which sums have room. A step clips
the exact numbers of each client to what so many records can give, before it adds noise. So the
exact sum never passes its bound, and the whole sum only where the noise of all clients does: with a
probability of at most ``2**-WRAP_BITS`` a number, and so, over ``2**26`` numbers of a sum and
``2**14`` sums of a run, at most ``2**-40`` a run. Then the number comes back modulo its width.

**Privacy does not depend on it.** Clipping moves no exact number by more than a neighbour does, so
every sensitivity stays. A sum modulo a power of two is computed from the sum with all its noise:
post-processing, also where it wraps. No one refuses because of the records, so no one learns from a
refusal. A client with more records than agreed gives clipped counts, and reads on its screen that
it does (``running.deployment.preview``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy import distributions
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost
from tacit.privacy.exact import MAX_SHARED_SCALE
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, PolyaShare
from tacit.privacy.noise import NoiseSource
from tacit.protocol import steps
from tacit.protocol.steps import ClientState, Query, Reply, Step, View
from tacit.protocol.trust import Each, SecureSum, trust_of
from tacit.results.figure import Figure
from tacit.results.server_result import ServerResult

FAR = 64.0
"""Largest noise that is taken for noise, in its scales: Laplace noise is larger by a chance of
``exp(-64)``, about ``2**-92``."""

CLIENTS = "clients"
"""The field of a query that says how many clients are asked, and of a sum over how many it is."""


@dataclass(frozen=True)
class Released:
    """A field of whole numbers that a step releases.

    Parameters
    ----------
    shape : of the numbers, without axes of clients or replicates.
    sensitivity : how far a neighbour moves them, the sum of all changes (L1), from 1; or 0 for
        numbers that neighbours share, which are exact and cost nothing. With one number per
        label, a record changes only that of its label.
    epsilon : what this move costs; infinity releases exact numbers.
    per_record : the most that one record adds to one number, and that a neighbour changes one.
    """

    shape: tuple[int, ...] = ()
    sensitivity: int = 1
    epsilon: float = math.inf
    per_record: int = 1

    @property
    def is_exact(self) -> bool:
        """Whether there is no noise."""
        return math.isinf(self.epsilon) or not self.sensitivity

    @property
    def cost(self) -> float:
        """The epsilon that the move costs."""
        return self.epsilon if self.sensitivity else 0.0

    @property
    def scale(self) -> float:
        """The scale of the noise; 0 without any."""
        return self.sensitivity / self.epsilon

    def share(self, share: Fraction) -> PolyaShare | None:
        """This share of the noise of a sum; None for exact numbers."""
        return None if self.is_exact else PolyaShare(self.sensitivity, self.epsilon, share)

    def variance(self, noises: float = 1.0) -> float:
        """The variance of a number with this multiple of the noise that the guarantee needs."""
        once = 0.0 if self.is_exact else float(distributions.discrete_laplace_variance(self.scale))
        return noises * once

    def supported(self, share: float) -> float:
        """The epsilon that this share of the noise supports, below 1.

        A neighbour moves number i by a whole ``d_i``, the sum of which is at most ``sensitivity``,
        and the losses ``l(d_i)`` of the numbers, whose noises are independent, add up. With shares
        below 1 the noise falls fastest from 0 (``shared_laplace_epsilon``): each further step of
        a number adds no more to its loss than the step before, so that l is concave, with
        ``l(0) = 0``. Of two numbers whose moves differ by more than 1, a step from the larger to
        the smaller one therefore loses nothing. So the sum is largest where the move is spread
        evenly over as many numbers as it reaches, ``n = min(numbers, sensitivity)``: with
        ``sensitivity = q n + r`` these are r numbers moved by ``q + 1`` and ``n - r`` by q.
        """
        if self.is_exact:
            return self.cost
        moved = min(math.prod(self.shape), self.sensitivity)
        least, further = divmod(self.sensitivity, moved)
        parts = [(moved - further, least), (further, least + 1)]
        return math.fsum(
            numbers * distributions.shared_laplace_epsilon(self.scale, share, distance)
            for numbers, distance in parts
            if numbers
        )


Fields = Mapping[str, Released]
Declared = Callable[[Query], Fields]
Admission = Callable[[Query, NoiseSource, ClientState], None]
Counting = Callable[[Clients, Query], Mapping[str, Any]]
"""The exact numbers of a batch: under ``View.SUM`` the sums over its clients, shape (..., *shape);
under ``View.EACH`` those of each client, shape (..., *shape, K); int64."""


def release(
    fields: Declared,
    *,
    admits: Admission | None = None,
    once: bool = False,
) -> Callable[[Counting], Step]:
    """Declare a function that counts to be a client step, which adds the noise.

    Parameters
    ----------
    fields : what the step releases, from the query alone. It also checks the query: what it raises
        declines it.
    admits : notes what the run has spent, before anything is counted; what it raises declines the
        query. None where the declaration alone says what may be asked.
    once : whether a run has one answer (``Step``).

    Examples
    --------
    >>> @release(lambda query: {"records": Released(epsilon=query.protocol.epsilon)})
    ... def count_records(clients, query):
    ...     return {"records": by_view(query, clients.sizes)}
    >>> count_records.name
    'count_records'
    """

    def agreed(query: Query) -> Fields:
        expected = View.EACH if isinstance(trust_of(query.protocol), Each) else View.SUM
        if query.view is not expected:
            raise ValueError(f"the view must be {expected.value!r}, as agreed, got {query.view}")
        return fields(query)

    def declare(counting: Counting) -> Step:
        def answer(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
            declared = agreed(query)
            if admits is not None:
                admits(query, noise, state)
            exact = counting(clients, query)
            if query.view is View.EACH:
                return {
                    name: _whole(name, each, exact[name], noise) for name, each in declared.items()
                }
            return noisy_sums(declared, exact, query, clients.count, noise)

        answer.__name__, answer.__doc__ = counting.__name__, counting.__doc__
        answer.__module__ = counting.__module__
        return steps.step(
            cost=lambda clients, query, state: cost_of(query.protocol, agreed(query)),
            sums=lambda query: layout_of(agreed(query)),
            shares=planned_clients,
            bounds=lambda query: bounds_of(agreed(query), query),
            once=once,
            releases=agreed,
        )(answer)

    return declare


def noisy_sums(
    fields: Fields, exact: Mapping[str, Any], query: Query, batch: int, noise: NoiseSource
) -> Reply:
    """The sums over a batch of clients with its share of the noise, and how many these are."""
    share = noises_of(trust_of(query.protocol), batch, planned_clients(query))
    sums = dict[str, Any]()
    for name, each in fields.items():
        _check_shape(name, exact[name], each.shape, noise)
        sums[name] = clipped(exact[name], query, each.per_record)
        mechanism = each.share(share)
        if mechanism is not None:
            sums[name] = sums[name] + noise.draw(mechanism, each.shape)
    return sums | {CLIENTS: np.asarray(batch, dtype=np.int64)}


def by_view(query: Query, by_client: Integers) -> Integers:
    """Numbers by client, shape (..., K), as the query's view has them: these, or their sum."""
    return by_client if query.view is View.EACH else np.asarray(by_client.sum(axis=-1))


def cost_of(protocol: Any, fields: Fields) -> Cost:
    """What a release costs: the sum of its fields' epsilons, at the protocol's adjacency."""
    if any(math.isinf(each.cost) for each in fields.values()):
        return UNPROTECTED
    whole: Cost = protocol.guarantee
    epsilon = math.fsum(each.cost for each in fields.values())
    # parts of a budget may add up to a little more than the budget by rounding
    is_whole = math.isclose(epsilon, whole.epsilon, rel_tol=1e-12)
    return Cost(whole.epsilon if is_whole else epsilon, adjacency=whole.adjacency)


@dataclass(frozen=True, eq=False)
class Sums:
    """The numbers that the server received, summed over clients, with their noise.

    Parameters
    ----------
    reply : as it came.
    fields : what was asked for.
    sums : by field, shape (..., *shape).
    answered : the number of clients.
    noises : the noise in each number, as a multiple of what the guarantee needs.
    adjacency : of the guarantee.
    """

    reply: Reply
    fields: Fields
    sums: Mapping[str, Floats]
    answered: int
    noises: Fraction
    adjacency: Adjacency | None

    def __getitem__(self, name: str) -> Floats:
        """The sums of a field, float64."""
        return self.sums[name]

    def variance(self, name: str) -> float:
        """The variance of a number of a field by noise."""
        return self.fields[name].variance(float(self.noises))

    def result(
        self, value: Floats, gradient: Mapping[str, Any], sampling_error: Any = np.nan, **more: Any
    ) -> ServerResult:
        """The server's result for a function of the sums, with its error to first order.

        Parameters
        ----------
        value : of the function, shape (...).
        gradient : by field, the derivative of the function, shape (..., *shape) or a number.
        sampling_error : about the population, shape (...); NaN where it is not known.
        more : further fields of ``ServerResult``.
        """
        unknown = np.full_like(value, np.nan)
        return ServerResult(
            value,
            np.sqrt(self._variance_of(gradient, np.ndim(value))),
            np.broadcast_to(sampling_error, np.shape(value)),
            **{"positives": unknown, "negatives": unknown, **more},
        )

    def _variance_of(self, gradient: Mapping[str, Any], axes: int) -> Floats:
        """``sum of (df/dx)^2 Var x`` over all released numbers x."""
        total: Floats = np.zeros(())
        for name, derivative in gradient.items():
            squares = np.square(np.asarray(derivative, dtype=np.float64))
            summed = squares.sum(axis=tuple(range(axes, squares.ndim)))
            missing = math.prod(self.fields[name].shape) if squares.ndim <= axes else 1
            total = total + missing * summed * self.variance(name)
        return total

    def by_client(self) -> Sums:
        """The numbers of each client under ``Each``, the clients as the first axis."""
        sums = {
            name: np.moveaxis(np.asarray(self.reply[name], np.float64), -1, 0) for name in self.sums
        }
        return replace(self, sums=sums, answered=1, noises=Fraction(1))


def total_protection(rounds: Sequence[Sums]) -> Cost | None:
    """What the noise of all rounds supports together; None where it suffices for the guarantee."""
    released = [(each, float(part.noises)) for part in rounds for each in part.fields.values()]
    if all(share >= 1 for _, share in released) or any(
        math.isinf(each.cost) for each, _ in released
    ):
        return None
    supported = math.fsum(each.supported(share) for each, share in released)
    return Cost(supported, adjacency=rounds[0].adjacency)


def ask(
    step: Step, protocol: Any, clients: int, broadcast: Mapping[str, Any] | None = None
) -> Generator[Query, Reply, Sums]:
    """Ask for a release under the protocol's trust: ``sums = yield from ask(...)``.

    Parameters
    ----------
    step : made by ``release``.
    protocol : the protocol.
    clients : how many are asked.
    broadcast : further values of the query.

    Raises
    ------
    ValueError : for noise of a larger scale than that of which shares are drawn; nothing was asked.
    DataError : for a sum that cannot be over so many clients as it says.
    """
    trust = trust_of(protocol)
    view = View.EACH if isinstance(trust, Each) else View.SUM
    query = Query(step, protocol, {**(broadcast or {}), CLIENTS: clients}, view=view)
    fields: Fields = step.fields(query)
    if isinstance(trust, SecureSum):
        check_shares(protocol, fields)
    return _received(query, (yield query))


def conducted(protocol: Any, clients: int) -> Generator[Query, Reply, ServerResult]:
    """A protocol's conversation, whose result says what follows from what the protocol declares.

    Its figure has the declared limits, and its protection is what the noise of all releases
    supports, where the result says neither.

    Parameters
    ----------
    protocol, clients : as in ``Protocol.conversation``.
    """
    conversation, rounds = protocol.conversation(clients), list[Sums]()
    query = next(conversation)
    while True:
        reply = yield query
        if query.step.releases is not None:
            rounds.append(_received(query, reply))
        try:
            query = conversation.send(reply)
        except StopIteration as ended:
            result: ServerResult = ended.value.within(Figure.of(protocol.figure).limits)
            if rounds and result.protection is None:
                return replace(result, protection=total_protection(rounds))
            return result


def _received(query: Query, reply: Reply) -> Sums:
    """What the reply to a query for a release tells the server."""
    protocol, fields = query.protocol, query.step.fields(query)
    sums = {name: np.asarray(reply[name], dtype=np.float64) for name in fields}
    if query.view is View.EACH:
        for name, each in fields.items():
            _check_believable(name, sums[name], each)
        clients = answered = next(iter(sums.values())).shape[-1]
        sums = {name: each.sum(axis=-1) for name, each in sums.items()}
    else:
        clients = planned_clients(query)
        answered = answered_clients(reply, clients)
    noises = noises_of(trust_of(protocol), answered, clients)
    return Sums(reply, fields, sums, answered, noises, protocol.guarantee.adjacency)


def noises_of(trust: Any, answered: int, clients: int) -> Fraction:
    """The noise in the numbers of clients that answer, of so many, as a multiple of what the
    guarantee needs."""
    if isinstance(trust, Each):
        return Fraction(answered)
    return trust.share(answered, clients) if isinstance(trust, SecureSum) else Fraction(1)


def _check_believable(name: str, numbers: Floats, field: Released) -> None:
    """Refuse clients' numbers of another shape, or beyond what records and noise give.

    Raises
    ------
    DataError : naming the shape, or the client and its number.
    """
    shape = numbers.shape[numbers.ndim - 1 - len(field.shape) : -1]
    if shape != field.shape:
        raise DataError(f"{name} of each client must have the shape {field.shape}, got {shape}")
    noise = 0.0 if field.is_exact else FAR * field.scale
    most = float(steps.MAX_RECORDS) * field.per_record + noise
    beyond = ~(np.abs(numbers) <= most)
    if beyond.any():
        *place, client = np.argwhere(beyond)[0].tolist()
        raise DataError(
            f"{name} of client {client} must be from {-most:.6g} to {most:.6g}, as records and "
            f"noise give, got {numbers[(*place, client)]:.6g}"
        )


def check_shares(protocol: Any, fields: Fields) -> None:
    """Refuse noise of which no shares are drawn, before any client pays for it.

    Raises
    ------
    ValueError : naming the largest scale.
    """
    largest = max(each.scale for each in fields.values())
    if largest > MAX_SHARED_SCALE:
        raise ValueError(
            f"shared noise has a scale of at most {MAX_SHARED_SCALE:g}, got {largest:.6g}: take a "
            f"larger epsilon than {protocol.epsilon}"
        )


def answered_clients(reply: Reply, planned: int) -> int:
    """How many clients a sum says that it is over; each adds one to this field.

    A client may add another number. So this is refused where it cannot be true.

    Raises
    ------
    DataError : for a number that is not from 1 to ``planned``.
    """
    answered = int(np.asarray(reply[CLIENTS]))
    if not 1 <= answered <= planned:
        raise DataError(f"a sum must be over 1 to {planned} clients, got {answered}")
    return answered


def _check_shape(name: str, exact: Any, shape: tuple[int, ...], noise: NoiseSource) -> None:
    """Refuse numbers of another shape or type.

    A second axis would release one number several times, and integer noise hides no fraction.

    Raises
    ------
    ValueError : naming the field, with its shape or its type.
    """
    kind = np.asarray(exact).dtype
    if not np.issubdtype(kind, np.integer):
        raise ValueError(f"{name} must be whole numbers, got an array of {kind}")
    if np.shape(exact) not in (shape, noise.full_shape(shape)):
        raise ValueError(f"{name} must have the shape {shape}, got {np.shape(exact)}")


def _whole(name: str, field: Released, exact: Any, noise: NoiseSource) -> Integers:
    """A client's numbers with the whole noise in each."""
    by_client = np.asarray(exact)
    shape = (*field.shape, by_client.shape[-1])
    _check_shape(name, by_client, shape, noise)
    if field.is_exact:
        return by_client
    drawn = DiscreteLaplace(field.sensitivity, field.epsilon)
    return np.asarray(by_client + noise.draw(drawn, shape))


def layout_of(fields: Fields) -> steps.Layout:
    """The layout of a sum of these fields."""
    return {name: each.shape for name, each in fields.items()} | {CLIENTS: ()}


def bounds_of(fields: Fields, query: Query) -> dict[str, int]:
    """The bounds of a sum of these fields."""
    clients = planned_clients(query)
    share = noises_of(trust_of(query.protocol), 1, clients)
    bounds = {
        name: sum_bound(query, clients * _limit(query, each.per_record), each.share(share))
        for name, each in fields.items()
    }
    return bounds | {CLIENTS: clients}


def planned_clients(query: Query) -> int:
    """How many clients a query says are asked."""
    return query.broadcast["clients"]


def clipped(exact: Any, query: Query, reach: int = 1) -> Integers:
    """A client's exact numbers, as far as a sum has room for them; all, where nothing was agreed.

    Parameters
    ----------
    exact : the numbers of one client, int64.
    query : the query that asks for their sum.
    reach : the largest magnitude of what one record adds to a number.

    Examples
    --------
    >>> asked = Query(None, None, {"clients": 3}, most_records=100)
    >>> clipped(np.array([99, 150, -201]), asked, reach=2)
    array([  99,  150, -200])
    """
    if query.most_records is None:
        return np.asarray(exact)
    limit = _limit(query, reach)
    return np.clip(exact, -limit, limit)


def sum_bound(query: Query, exact: int, noise: PolyaShare | None = None) -> int:
    """The largest magnitude of a sum over all clients whose exact part is at most ``exact``.

    Parameters
    ----------
    query : the query, which says how many clients are asked.
    exact : the largest magnitude of the exact part.
    noise : one client's share of the noise; None without any.

    Examples
    --------
    >>> from fractions import Fraction
    >>> asked = Query(None, None, {"clients": 3})
    >>> sum_bound(asked, 300), sum_bound(asked, 300, PolyaShare(1, 1.0, Fraction(1, 3)))
    (300, 361)
    """
    if noise is None:
        return min(exact, steps.MAX_SUM)
    shares = float(noise.share) * planned_clients(query)
    tail = distributions.shared_laplace_tail(float(noise.scale), shares, steps.WRAP_BITS)
    return min(exact + tail, steps.MAX_SUM)


def _limit(query: Query, reach: int) -> int:
    records = query.most_records or 0
    return min(records * reach, steps.MAX_SUM // planned_clients(query) // 2)
