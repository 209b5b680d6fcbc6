"""The Python interface: ``tacit.evaluate``, records in any form, protocols by name, and a default.

Clients from what people have at hand: frames, arrays, files, or clients already.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import tacit.protocol as tp
from tacit.data.clients import Clients
from tacit.planning.planner import Choice, choose
from tacit.results.evaluation import Evaluation
from tacit.running import evaluating, spending
from tacit.running.mpc.runner import NO_LEDGERS, Ledgers

CLUSTERS = {"pyspark": "mapInArrow", "ray": "map_batches", "ibis": "schema"}
"""The packages whose records stay on a cluster or in a warehouse, and what their tables have."""

ACCEPTED = (
    "records must be Clients, a data frame (also Spark's), a Ray dataset, a table of Ibis, a pair "
    "(scores, labels) of arrays, a triple (scores, labels, client ids), a dict of frames by "
    "client, a list of frames, or file names"
)


def clients_of(records: Any, **columns: Any) -> Clients:
    """The clients of records in any accepted form.

    Parameters
    ----------
    records : ``Clients``; a table with an Arrow stream; a Spark frame, a Ray dataset or a table of
        Ibis; a pair of arrays of shape (M,), or a triple with client ids; a mapping of client names
        to tables, or of columns to arrays; a sequence of tables, a client each; a file name, or
        several, a client each.
    columns : score, label, client, unit and person, as ``evaluate`` takes them; ``group`` and
        ``group_names``, the column of private groups and their agreed names.

    Raises
    ------
    TypeError : for anything else; the message says what is accepted.
    DataError : for records that cannot be evaluated.

    Examples
    --------
    >>> clients_of(([0.1, 0.9, 0.4], [0, 1, 0])).records
    3
    """
    if isinstance(records, Clients):
        return records
    if _is_table(records) or _is_on_cluster(records):
        return _of_frame(records, **columns)
    if isinstance(records, Mapping):
        return _of_mapping(records, **columns)
    listed = [records] if isinstance(records, str | os.PathLike) else records
    if isinstance(listed, Sequence) and listed:
        if all(isinstance(each, str | os.PathLike) for each in listed):
            from tacit.data.reading import FileColumns, read_columns  # noqa: PLC0415 -- slow

            grouped = columns.pop("group", None), columns.pop("group_names", ())
            return read_columns(FileColumns(**columns).of_files(listed, *grouped))[0]
        if all(map(_is_table, listed)):
            return _of_mapping(dict(enumerate(listed)), **columns)
    if isinstance(records, tuple) and len(records) in (2, 3):
        scores, labels, ids = (*records, None)[:3]
        _refuse_swapped(scores, labels)
        return Clients.from_arrays(scores, labels, ids, unit=columns.get("unit"))
    raise TypeError(f"{ACCEPTED}; got {_called(records)}")


def _is_table(value: Any) -> bool:
    # a column of a frame has a stream, too, and one axis
    has_stream = hasattr(value, "__arrow_c_stream__") and not _is_on_cluster(value)
    return has_stream and len(getattr(value, "shape", (0, 0))) != 1


def _is_on_cluster(value: Any) -> bool:
    package = type(value).__module__.partition(".")[0]
    return hasattr(value, CLUSTERS.get(package, ""))


def _of_frame(frame: Any, **columns: Any) -> Clients:
    """One table, in memory or where it is."""
    if not _is_on_cluster(frame):
        return Clients.from_frame(frame, **columns)
    from tacit.data.engines.opening import from_table  # noqa: PLC0415 -- slow to import

    return from_table(frame, **columns)


def _of_mapping(records: Mapping[Any, Any], **columns: Any) -> Clients:
    """A table by client, or an array by column."""
    named = {str(name): values for name, values in records.items()}
    if any(map(_is_on_cluster, named.values())):
        raise tp.DataError(
            "tables of a cluster or warehouse cannot be a client each: make one table of them, "
            "with a column of clients"
        )
    if not (named and all(map(_is_table, named.values()))):
        return Clients.from_frame(pa.table(named), **columns)
    if columns.get("client") is not None:
        raise tp.DataError(f"each table is a client: leave client={columns['client']!r} out")
    tables = {name: Clients.from_frame(each, **columns) for name, each in named.items()}
    return Clients.concatenate([replace(each, names=(name,)) for name, each in tables.items()])


def _refuse_swapped(scores: Any, labels: Any) -> None:
    """Refuse a pair whose first array is labels and whose second is not, as elsewhere in Python."""
    first, second = np.asarray(scores), np.asarray(labels)
    kinds = first.dtype.kind, second.dtype.kind
    if set("".join(kinds)) - set("biuf") or not first.size:
        return
    if np.isin(first, (0, 1)).all() and not np.isin(second, (0, 1)).all():
        raise tp.DataError(
            "the first array has only 0 and 1 and the second has other numbers: the order is "
            "(scores, labels)"
        )


def _called(value: Any) -> str:
    """What a value is, in an error."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{type(value).__name__}"


def evaluate(
    records: Any,
    protocol: tp.Protocol | str | None = None,
    seed: int | None = None,
    *,
    epsilon: float | None = None,
    trust: str | None = None,
    score: str = "score",
    label: str = "label",
    client: str | None = None,
    unit: str | None = None,
    person: str | None = None,
    group: str | None = None,
    per_person: int | None = None,
    missing_epsilon: float | None = None,
    state: tp.ClientState | None = None,
    noise: tp.NoiseSource | None = None,
    exact: bool = False,
    federation: str | None = None,
    engine: evaluating.Engine = "ideal",
    ledgers: Ledgers = NO_LEDGERS,
    ledger: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Evaluation:
    """Run one evaluation and return the estimate with its errors and its costs.

    The server learns what the protocol's queries release, as its page says, and nothing else.

    Parameters
    ----------
    records : ``Clients``; a data frame; a Spark frame or a Ray dataset, which the cluster counts; a
        table of Ibis, which its warehouse counts; a pair ``(scores, labels)`` of arrays of shape
        (M,), or a triple with client ids; a dict of client names to frames, or of columns to
        arrays; a list of frames, a client each; file names, a client each. The unit that clients
        name decides where a protocol that counts scores in cells has them, unless a setting does.
    protocol : the protocol to run, or its name in any case; its settings then follow as keywords.
        Without one it is chosen from public numbers, as by the command (``Evaluation.choice``).
    seed : draws simulated noise from this seed. Without one, noise is simulated from fresh entropy
        for clients that were split from one party's records, and comes exact from the operating
        system for real clients.
    epsilon, trust, settings : with a name, the protocol's settings; without a protocol, what
        ``tacit.planning.planner`` chooses by.
    score, label, client, unit, person : the columns of frames and files, and the scores' unit.
        Without ``client`` a frame or file is one client.
    group : the column of private groups, for a protocol that names them.
    per_person : where records say whose they are, the most records of a person that count at a
        client, 1 by default. They are drawn at random. Epsilon is then a person's, and the protocol
        runs with a part of it for each of these records (``tacit.running.spending``). A person with
        records at two clients is not covered.
    missing_epsilon : the fraction of epsilon for a noisy number of the records that were left out
        as incomplete (``tacit.read(missing="drop")``). Without it the result has that number only
        with ``exact``, where it is not private.
    state : the clients' state, stored by the caller between evaluations: labels flipped once are
        then reused for the same records in the same order, at no further cost.
    noise : a noise source to use instead.
    exact : also compute the exact figure, which is not private.
    federation : what the records are called; results under one name are taken to be about the same
        records when they are compared.
    engine : who computes what clients compute together: ``"ideal"``, a trusted party in this
        process, or ``"spu"``, the clients by cryptography, each in a process of its own (the extra
        ``two-party``; docs/protocols/mpc.md).
    ledgers : with ``engine="spu"`` the file of every client's ledger, by the client's name. Clients
        that exist do not compute together without: each debits its ledger before it answers.
    ledger : the file of the ledger that the run debits before anything is computed, about the data
        set that ``federation`` names, or its only one. What is debited is the run's guarantee, and
        all of it where ``exact`` shows a figure that is not private. A simulation debits nothing.

    Raises
    ------
    TypeError : for records of another form, and for what is no protocol, with what was meant.
    DataError : when the records cannot be evaluated: fewer than two, where the guarantee does not
        hide whether a record is there, a class absent where the protocol can tell, or scores in a
        unit that it cannot take.
    ValueError : for an unknown name or setting; where nothing is predicted to give an estimate, or
        epsilon does not fit the trust; for a seed together with a noise source, settings that do
        not go with the clients' unit, an unknown engine, or ledgers without the engine ``"spu"``;
        with it, for simulated noise, a protocol without joint steps, or clients that exist and have
        no ledgers. ``BudgetError``, where the ledger does not allow the run, or cannot be read.
    OSError : for a ledger that is not there.
    MPCError : when a client's process fails or does not answer in time.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 20000)
    >>> scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    >>> result = tacit.evaluate((scores, labels), "score-histogram", epsilon=1, seed=1, exact=True)
    >>> low, high = result.auc.interval(0.95)
    >>> low < result.exact < high, f"{result.auc:.2f}"
    (True, '0.76')
    >>> clients = tacit.Clients.split(scores, labels, clients=20, by="uniform", seed=0)
    >>> tacit.evaluate(clients, epsilon=1.0).choice.partition(":")[0]
    '--protocol score-histogram --epsilon 1'
    """
    try:
        budget = None if epsilon is None else float(epsilon)
    except ValueError:
        raise ValueError(f"epsilon must be a positive number, got {epsilon!r:.60}") from None
    beside = {"epsilon": budget, "trust": trust, **settings}
    chosen = {name: value for name, value in beside.items() if value is not None}
    named = None if protocol is None else _named(protocol, chosen)
    if protocol is None and settings:
        listed = ", ".join(map(repr, settings))
        raise TypeError(f"unknown arguments {listed}: settings need the name of a protocol")
    columns: dict[str, Any] = {"score": score, "label": label, "client": client, "unit": unit}
    if group is not None:
        names = getattr(named, getattr(named, "categories_setting", ""), ())
        if not names:
            raise ValueError("group needs a protocol with the names of groups, as group_names")
        columns |= {"group": group, "group_names": names}
    clients = clients_of(records, person=person, **columns)
    choice: Choice | None = None
    if named is None:
        most = spending.unit_of(clients, per_person)
        names = clients.scored_classes
        choice = choose(clients.count, clients.records, budget, trust, most, names)
        named = choice.protocol
    setup = evaluating.Setup.of(
        clients,
        named,
        seed,
        noise=noise,
        state=state,
        per_person=per_person,
        federation=federation,
        engine=engine,
        ledgers=ledgers,
        ledger=ledger,
    )
    result = setup.evaluated_with_missing(named, missing_epsilon, exact=exact)
    return result if choice is None else replace(result, choice=choice.line)


def _named(protocol: Any, settings: Mapping[str, Any]) -> tp.Protocol:
    """The protocol that was given, or that of a name with its settings."""
    if isinstance(protocol, str):
        return tp.protocol_of(protocol, settings)
    evaluating.check_protocol(protocol)
    if settings:
        listed = ", ".join(settings)
        raise TypeError(
            f"{listed} cannot be given together with a protocol, which has its settings already: "
            f"give {protocol.name!r} as a name, or leave {listed} out"
        )
    return protocol
