"""A party's own file: its records, its limits and the plans it agreed to, read from TOML.

A party's records by the columns that its file names, with the plan's classes or groups.

Only the plan's names of classes and groups are public. A record of another class or group is an
error on the party's own screen, before anything is debited or sent; others read that the records do
not fit.
"""

from __future__ import annotations

import glob
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import tacit.protocol as tp
from tacit.data import categories, form, reading, units
from tacit.data.columns import RULES, Columns
from tacit.data.engines import opening
from tacit.data.engines.counts_file import read_counts
from tacit.data.engines.records import Known
from tacit.ledger.entries import Limit
from tacit.protocol.settings import changed_settings
from tacit.running.session import toml_source

ONE_EACH = "every_record_another_person"
"""Key by which a party's file says that no person has two of its records."""
DATABASE_KEYS = ("records", "table", "query", "passfile")
"""Keys by which a party's file names a database instead of a file of records."""
FORM_KEYS = ("positive", "separator", "decimal")
"""Keys that say how values are written in a file of records."""
COUNTED_WITHOUT = ("second", "person", "missing", "scores", "class", "group")
"""Keys about records that mean nothing where these were counted."""
DATA_KEYS = (
    *FORM_KEYS,
    *("file", "counts", "dataset", "score", "label", "unit", ONE_EACH),
    *COUNTED_WITHOUT,
    *DATABASE_KEYS,
)


@dataclass(frozen=True)
class Rule:
    """Who at a site approves plans.

    Parameters
    ----------
    needed : the number of signatures without which no plan is answered.
    keys : the public identity keys of those who may sign, by name; all different.
    """

    needed: int
    keys: Mapping[str, bytes]


@dataclass(frozen=True)
class PartyFile:
    """What a party contributes to a run, and what it allows.

    Parameters
    ----------
    name : its name in the plan.
    plans : its own copies of the plans that it agreed to.
    identity : the file of its identity key that is in use when the party's file is read.
    ledger : its ledger.
    records : the file of its records, a pattern or folder of Parquet files, or the table of a
        database.
    dataset : the name under which the ledger keeps them.
    columns : the columns of score, label, second value, person and private group, how their values
        are written, and whether records without a score or label are left out.
    limit : of the ledger; None leaves the limits as they are.
    unit : in what the scores in the file are; None where it does not say.
    listen : host and port where it listens for other parties that compute with it; None where it
        computes with no one.
    address : host and port by which they reach it; None for ``listen``.
    peers : the hosts and ports that it connects to; None for any that another party announces.
    one_each : whether every record is another person's.
    server : the coordinator's server, as host:port; None where the file does not say.
    scores : the columns of scores of each class, in the order of the plan's classes; empty where
        records have one score.
    class_column : the column of classes; None for that of labels.
    counted : whether the file holds counts of its records, and not these.
    approval : who at the site approves plans; None where no approval is needed.
    """

    name: str
    plans: tuple[Path, ...]
    identity: Path
    ledger: Path
    records: Path | opening.DatabaseTable
    dataset: str
    columns: Columns
    limit: Limit | None = None
    unit: str | None = None
    listen: tuple[str, int] | None = None
    address: tuple[str, int] | None = None
    peers: tuple[tuple[str, int], ...] | None = None
    one_each: bool = False
    server: tuple[str, int] | None = None
    scores: tuple[str, ...] = ()
    class_column: str | None = None
    counted: bool = False
    approval: Rule | None = None

    @classmethod
    def read(cls, path: str | Path) -> PartyFile:
        """The party's file; paths in it are relative to it.

        Raises
        ------
        PlanError : for a file that is not such a file.
        OSError : for a file that cannot be read.
        """
        source = toml_source.Source.read(Path(path))
        source.only("party", "data", "limit", "mpc", "approval")
        party = source.table("party", "name", "plan", "identity", "ledger", "server")
        data = source.table("data", *DATA_KEYS)
        if ONE_EACH in data.values and "person" in data.values:
            data.refuse(ONE_EACH, f"person and {ONE_EACH} cannot both be given")
        limit = source.table("limit", "epsilon", "delta", "adjacency", "period", needed=False)
        channels = source.table("mpc", "listen", "address", "peers", needed=False)
        home = Path(path).resolve().parent
        columns = Columns(
            (data.text("score", "score"),),
            data.text("label", "label"),
            second=data.optional("second"),
            group=data.optional("group"),
            person=data.optional("person"),
            drop=data.choice("missing", *RULES) == "drop",
            form=_form(data),
        )
        return cls(
            party.text("name"),
            tuple(home / plan for plan in party.texts("plan")),
            in_use(home / party.text("identity", "identity.key")),
            home / party.text("ledger", "ledger.db"),
            _records(data, home),
            data.text("dataset"),
            columns,
            _limit(limit, data.text("dataset")),
            data.optional("unit"),
            channels.host_and_port("listen"),
            channels.host_and_port("address"),
            channels.hosts_and_ports("peers"),
            data.flag(ONE_EACH),
            party.host_and_port("server"),
            data.texts("scores") if "scores" in data.values else (),
            data.optional("class"),
            "counts" in data.values,
            _rule(source),
        )

    @property
    def plan(self) -> Path:
        """The first plan's file."""
        return self.plans[0]

    def source(self) -> dict[str, str]:
        """The keys that say where its records are, with whole paths."""
        if isinstance(self.records, opening.DatabaseTable):
            return self.records.settings()
        return {"counts" if self.counted else "file": str(self.records)}

    @property
    def state(self) -> Path:
        """Where the party keeps what it must not forget between messages."""
        return self.ledger.with_name(f"{self.ledger.stem}-state")

    @property
    def results(self) -> Path:
        """The folder of the figures that the party learned in runs."""
        return self.ledger.with_name(f"{self.ledger.stem}-results")


FROM = "-from-"
"""What stands in the name of an identity's file before the time from which it is used."""


def follower(identity: Path, begins: datetime) -> Path:
    """The file of the identity that follows another from a time on, in the same folder."""
    first = identity.stem.partition(FROM)[0]
    return identity.with_name(f"{first}{FROM}{begins:%Y%m%dT%H%MZ}{identity.suffix}")


def identities(identity: Path) -> list[Path]:
    """The files of an identity and of those that follow it, in order of their times."""
    first = identity.stem.partition(FROM)[0]
    later = identity.parent.glob(f"{first}{FROM}*{identity.suffix}")
    return [identity.with_name(f"{first}{identity.suffix}"), *sorted(later)]


def in_use(identity: Path) -> Path:
    """Of an identity's file and those that follow it, the last whose time has come."""
    now = follower(identity, datetime.fromtimestamp(time.time(), UTC)).stem
    return [path for path in identities(identity) if FROM not in path.stem or path.stem <= now][-1]


def _records(data: toml_source.Table, home: Path) -> Path | opening.DatabaseTable:
    """The file of records, a pattern or folder of files, counts, or the table of a database."""
    if "counts" in data.values:
        for key in ("file", *DATABASE_KEYS, *COUNTED_WITHOUT, *FORM_KEYS):
            if key in data.values:
                data.refuse(key, f"{key} and counts, a file of counts, cannot both be given")
        return home / data.text("counts")
    if "records" not in data.values:
        unused = next((key for key in DATABASE_KEYS if key in data.values), None)
        if unused is not None:
            data.refuse(unused, f"{unused} needs records, the address of a database")
        path = home / data.text("file")
        if set(opening.PATTERN_SIGNS) & set(data.text("file")) and not path.exists():
            return Path(glob.escape(str(home))) / data.text("file")
        return path
    return _database(data, home)


def _database(data: toml_source.Table, home: Path) -> opening.DatabaseTable:
    """The table of a database."""
    for key in ("file", "separator", "decimal"):
        if key in data.values:
            data.refuse(key, f"{key} and records, the address of a database, cannot both be given")
    address = data.text("records")
    if not opening.is_address(address):
        data.refuse("records", "records must begin with postgresql:// or duckdb://")
    table, query, passfile = map(data.optional, ("table", "query", "passfile"))
    with data.about("records"):
        return opening.DatabaseTable(
            address, table, query, Path(passfile) if passfile else None
        ).at(home)


def _form(data: toml_source.Table) -> form.FileForm:
    """How values are written in the file of records."""
    positive = data.texts("positive") if "positive" in data.values else ()
    separator, decimal = data.optional("separator"), data.text("decimal", ".")
    try:
        return form.FileForm(positive, separator, decimal, data.optional("unit") == units.PERCENT)
    except tp.DataError as error:
        refused = str(error)
        data.refuse(next((k for k in FORM_KEYS if refused.startswith(k)), "positive"), refused)


def _limit(limit: toml_source.Table, dataset: str) -> Limit | None:
    epsilon = limit.number("epsilon", None, 0.0, math.inf)
    delta = limit.number("delta", 0.0, 0.0, 1.0)
    choices = dict.fromkeys(each.value for each in (tp.Adjacency.RECORD, *tp.Adjacency))
    adjacency = tp.Adjacency(limit.choice("adjacency", *choices))
    period = limit.period("period")
    with limit.about("epsilon"):
        return None if epsilon is None else Limit(dataset, epsilon, delta, adjacency, period)


def _rule(source: toml_source.Source) -> Rule | None:
    """The table [approval]; None where there is none."""
    if "approval" not in source.content:
        return None
    table = source.table("approval", "needed", "keys")
    given = table.values.get("keys")
    if not (isinstance(given, dict) and given):
        table.refuse("keys", 'keys must name who approves, as { ada = "64 hexadecimal digits" }')
    keys = {name: toml_source.Table(source, "approval", given).key(name) or b"" for name in given}
    if len({*keys.values()}) < len(keys):
        table.refuse("keys", "two names have one key: everyone who approves needs another key")
    return Rule(table.whole("needed", len(keys), 1, len(keys)), keys)


NO_CLASS_COLUMNS = "its own file does not name a column of scores for each class of the plan"
"""Reason that a party gives where the plan has classes of which its file names no scores."""

ONLY_COUNTS = "its own file has counts of its records, and the plan asks for more"
"""Reason that a party gives where counts of its records are not enough."""

NO_GROUP_COLUMN = "its own file does not name the column of the plan's groups"
"""Reason that a party gives where the plan has groups and its file names no column of them."""


def agreed_names(protocol: tp.Protocol) -> tuple[str, ...]:
    """The classes or groups of which records need columns; empty where they need none."""
    if not protocol.categories_setting:
        return ()
    names: tuple[str, ...] = getattr(protocol, protocol.categories_setting)
    return names


def columns_misfit(party_file: PartyFile, protocol: tp.Protocol) -> tuple[str, str]:
    """Why a file's columns do not suit a plan, by words of configuration alone; empty if they do.

    One score is enough for two classes, and one group needs no column.

    Returns
    -------
    The reason as others may read it, and what the party reads on its screen.
    """
    if party_file.counted:
        return _counts_misfit(party_file, protocol)
    names, columns = agreed_names(protocol), party_file.scores
    listed, file = ", ".join(names), f"the file of {party_file.name!r} names"
    if not protocol.scores_by_class:
        if len(names) < 2 or party_file.columns.group is not None:
            return "", ""
        return NO_GROUP_COLUMN, (
            f"the plan has the groups {listed}, and {file} no column of them; under [data], name "
            "it as group"
        )
    if categories.is_permuted(columns, names):
        return NO_CLASS_COLUMNS, (
            f"{file} the columns of scores {', '.join(columns)}, and the plan the classes in the "
            f"order {listed}; name the columns in the plan's order"
        )
    if len(columns) == len(names) or (not columns and len(names) == 2):
        return "", ""
    return NO_CLASS_COLUMNS, (
        f"the plan has the classes {listed}, and {file} {len(columns)} columns of scores; under "
        "[data], name one for each class, in the plan's order, as scores"
    )


def _counts_misfit(party_file: PartyFile, protocol: tp.Protocol) -> tuple[str, str]:
    """As ``columns_misfit`` for counts: the plan must be in the form that counts once."""
    once = protocol.one_count
    if once is not None and once.protocol == protocol:
        return "", ""
    otherwise = "under [data], name the records as file or records"
    if once is not None:
        changed = sorted(changed_settings(protocol, once.protocol))
        given = ", ".join(f"{name} = {getattr(once.protocol, name)!r}" for name in changed)
        otherwise = f"agree on a plan with {given}, which counts once, or {otherwise}"
    return ONLY_COUNTS, (
        f"the file of {party_file.name!r} has counts of its records, and {protocol.name} as the "
        f"plan has it asks for more than one count; {otherwise}"
    )


def read_records(
    party_file: PartyFile,
    protocol: tp.Protocol | None = None,
    per_person: int = 0,
    known: Known = None,
) -> tp.Clients:
    """A party's records, as one client.

    Databases, patterns and folders stay where they are, and large files of which the protocol only
    counts.

    Parameters
    ----------
    party_file : where they are.
    protocol : the plan's, whose classes or groups they have; None for records of two classes.
    per_person : the plan's; counts must be of so many records of a person.
    known : of records that stay, what is known of them (``Stored.summary``); None reads it.

    Raises
    ------
    DataError : for records that cannot be used, or of a class or group that the plan does not name.
    """
    if party_file.counted:
        return _read_counted(party_file, protocol, 0 if party_file.one_each else per_person)
    source, columns = party_file.records, _plan_columns(party_file, protocol)
    counts = protocol is not None and protocol.one_count is not None
    where = source if isinstance(source, opening.DatabaseTable) else [str(source)]
    stored = opening.stored_clients(where, columns, counts, known=known, as_one=True)
    if stored is not None:
        return stored.by_values
    made = reading.read_columns(dict.fromkeys(opening.files_of([str(source)]), columns))[0]
    return made if made.count == 1 else made.pooled()


def _plan_columns(party_file: PartyFile, protocol: tp.Protocol | None) -> Columns:
    """The columns that are read for a plan."""
    names = () if protocol is None else agreed_names(protocol)
    by_class = protocol is not None and protocol.scores_by_class and bool(party_file.scores)
    columns = party_file.columns
    if not by_class and (len(names) < 2 or columns.group is None):
        return replace(columns, group=None)
    if columns.drop:
        raise tp.DataError(
            "records without a score or label cannot be left out together with several classes "
            "or groups: remove missing = 'drop' under [data], and these records from the file"
        )
    columns = replace(columns, second=None, classes=names)
    if not by_class:
        return columns
    group = party_file.class_column or columns.label
    return replace(columns, scores=party_file.scores, label=None, group=group)


def _read_counted(
    party_file: PartyFile, protocol: tp.Protocol | None, per_person: int
) -> tp.Clients:
    """A party's counts, of all its records or of so many of a person."""
    once = None if protocol is None else protocol.one_count
    if once is None:
        raise tp.DataError(f"{party_file.records} has counts, and records are needed")
    cells = once.edges, once.mark(per_person), once.ends
    made = read_counts(str(party_file.records), *cells, None, once.groups, per_person)
    if made.count > 1:
        raise tp.DataError(
            f"{party_file.records} has counts of {made.count} clients, and a party is one: count "
            "without a column of clients"
        )
    return made.by_values
