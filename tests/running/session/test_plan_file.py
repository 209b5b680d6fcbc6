"""Plans and party files: what is read, and what is refused, with the line at fault."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import tacit
from tacit.data.columns import Columns
from tacit.ledger.entries import Limit
from tacit.protocol.registry import kind_of, protocol_names
from tacit.running.session import plan_file, toml_source
from tacit.running.session.party_file import PartyFile, read_records

KEYS = [f"{number:064x}" for number in range(4)]
PLAN = f"""\
[plan]
name = "three"
coordinator = "{KEYS[0]}"
min_clients = 2

[protocol]
name = "fedauc"
epsilon = 1.5

[[party]]
name = "a"
key = "{KEYS[1]}"

[[party]]
name = "b"
key = "{KEYS[2]}"
"""
PARTY = """\
[party]
name = "a"
plan = "../plan.toml"

[data]
file = "records.csv"
dataset = "registry"

[limit]
epsilon = 3.0
period = "1y"
"""


def read(tmp_path: Path, text: str) -> plan_file.Plan:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return plan_file.Plan.read(path)


def test_a_plan_is_read(tmp_path: Path) -> None:
    plan = read(tmp_path, PLAN)
    assert plan.protocol == tacit.FedAUC(1.5)
    assert [party.name for party in plan.parties] == ["a", "b"]
    assert (plan.min_clients, plan.retries, plan.on_loss) == (2, 1, "fail")
    agreement = plan.agreement()
    assert agreement.parties == (bytes.fromhex(KEYS[1]), bytes.fromhex(KEYS[2]))
    assert agreement.min_clients == 2


def test_keys_may_wait(tmp_path: Path) -> None:
    text = "\n".join(line for line in PLAN.splitlines() if not line.startswith(("key", "coord")))
    plan = read(tmp_path, text)
    with pytest.raises(toml_source.PlanError, match="no key of party 'a'"):
        plan.agreement()


QUORUM, FILE = "min_clients = 2", 'file = "records.csv"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (QUORUM, "min_clients = 3", r"toml:4: \[plan\] min_clients must be from 1 to 2, got 3"),
        (QUORUM, "colluders = 1", r":4: \[plan\] colluders must be from 0 to 0, got 1"),
        (QUORUM, "quorum = 2", r":4: \[plan\] unknown key 'quorum'"),
        (QUORUM, 'on_loss = "panic"', "on_loss must be one of fail, restart, got 'panic'"),
        (QUORUM, "deadline = 0.0", "deadline must be from 1 to 86400, got 0.0"),
        (QUORUM, "most_records = 0", "most_records must be from 1 to .*, got 0"),
        (QUORUM, "per_person = 100000", "per_person must be from 1 to"),
        ('name = "three"', "name = 3", r":2: \[plan\] name must be a text"),
        ('name = "three"', "", "'name' is missing"),
        ("epsilon = 1.5", "epsilon = -1.5", r":8: \[protocol\] epsilon must be positive"),
        ("epsilon = 1.5", 'epsilon = "x"', ":8: .* epsilon must be a number, got 'x'$"),
        ("epsilon = 1.5", "", r":6: \[protocol\] fedauc needs the setting 'epsilon'"),
        ("epsilon = 1.5", "epsilon = 1.5\nheight = 3", r":9: \[protocol\] fedauc has no setting"),
        ("epsilon = 1.5", 'epsilon = 1.5\ntrust = "each(beta=1)"', ":9: .* no parameter 'beta'"),
        ('"fedauc"', '"gossip"', r":7: \[protocol\] protocol must be one of"),
        ('"fedauc"', '"dpauc"\nadjacency = true', ":8: .* adjacency must be a text, got True$"),
        (KEYS[1], "abc", r":12: \[party\] key must be 64 hexadecimal digits, got 'abc'"),
        (KEYS[2], KEYS[1], "two parties have the key"),
        (KEYS[2], KEYS[0], "a key appears twice"),
        ('name = "b"', 'name = "a"', "two parties have the name 'a'"),
        ("[[party]]", "[party]", r"plan\.toml: .*"),
        (PLAN[PLAN.index("[[party]]") :], "", "names its parties"),
        ("[protocol]", "[protocols]", r"unknown table \[protocols\]"),
        ("[plan]", "[plan", r"plan\.toml: .*line 1"),
        ("[plan]", '[plan] # "name"\nnames = 1', r":2: \[plan\] unknown key 'names'"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(toml_source.PlanError, match=message):
        read(tmp_path, PLAN.replace(old, new))


def of_five(*lines: str, protocol: str = "score-histogram") -> str:
    parties = "".join(f'[[party]]\nname = "{name}"\n' for name in "abcde")
    trust = '\ntrust = "secure-sum"' if protocol == "score-histogram" else ""
    head = "\n".join(['[plan]\nname = "five"', *lines])
    return f'{head}\n[protocol]\nname = "{protocol}"\nepsilon = 1.0{trust}\n{parties}'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("min_clients = 3", r":3: \[plan\] min_clients must be at least 4 of 5 clients"),
        ("colluders = 3\nmin_clients = 4", ":4: .* at least 5 of 5 clients of which 3 may collu"),
        ("colluders = 4", r":3: \[plan\] colluders must be from 0 to 3, got 4"),
    ],
)
def test_sums_that_too_few_certify_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(toml_source.PlanError, match=message):
        read(tmp_path, of_five(lines))


def test_a_plan_names_who_may_collude_and_for_how_many_records_sums_have_room(
    tmp_path: Path,
) -> None:
    plain = read(tmp_path, of_five("min_clients = 4"))
    named = read(tmp_path, of_five("min_clients = 3", "colluders = 0", "most_records = 1000"))
    assert (plain.colluders, plain.most_records) == (None, 2**32)
    assert (named.colluders, named.most_records) == (0, 1000)
    assert read(tmp_path, of_five("min_clients = 2", protocol="dpauc")).min_clients == 2


PLAIN = ["true", '"x"', '""', "5", "-1", "1.5", "nan", "inf", "1979-05-27", "1000000000000000000"]
NESTED = ["[]", "[1]", "[true]", '["a"]', "[[1]]", "[0.0, nan]", "{}", "{a = 1}"]
ODD = [*PLAIN, *NESTED]
"""Values of every type that TOML has."""

PROTOCOL_SETTINGS = [
    (name, field.name) for name in protocol_names() for field in dataclasses.fields(kind_of(name))
]


def told(path: Path, read: Callable[[Path], object]) -> str | None:
    """The one sentence with which a file is refused; None where it is read."""
    try:
        read(path)
    except toml_source.PlanError as error:
        assert "\n" not in str(error)
        return str(error)
    return None


@pytest.mark.parametrize(("protocol", "setting"), PROTOCOL_SETTINGS)
def test_any_setting_is_read_or_refused(tmp_path: Path, protocol: str, setting: str) -> None:
    path, refused = tmp_path / "plan.toml", 0
    needed = {"epsilon": "1.0", "kernel": '"auc"'}
    known = [field.name for field in dataclasses.fields(kind_of(protocol))]
    for value in ODD:
        settings = {key: part for key, part in needed.items() if key in known} | {setting: value}
        lines = [f"{key} = {part}" for key, part in settings.items()]
        text = f'[plan]\nname = "x"\n[protocol]\nname = "{protocol}"\n' + "\n".join(lines)
        path.write_text(text + '\n[[party]]\nname = "a"\n', encoding="utf-8")
        said = told(path, plan_file.Plan.read)
        if said is not None:
            refused += 1
            at = re.match(rf"{re.escape(str(path))}:(\d+): \[protocol\] (\w+)", said)
            assert at, said
            assert at[2] != setting or int(at[1]) == 5 + list(settings).index(setting)
    assert refused > 8


@pytest.mark.parametrize("value", ODD)
def test_every_key_of_both_files_is_read_or_refused(tmp_path: Path, value: str) -> None:
    for text, reader in ((PLAN, plan_file.Plan.read), (PARTY, PartyFile.read)):
        lines = text.splitlines()
        for index, line in enumerate(lines):
            if " = " in line:
                changed = [*lines]
                changed[index] = f"{line.split(' = ')[0]} = {value}"
                path = tmp_path / "changed.toml"
                path.write_text("\n".join(changed), encoding="utf-8")
                told(path, reader)
    (tmp_path / "tables.toml").write_text(f'party = {value}\n[plan]\nname = "x"', encoding="utf-8")
    assert told(tmp_path / "tables.toml", plan_file.Plan.read)


def test_a_file_of_other_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(toml_source.PlanError, match="not a text in UTF-8"):
        plan_file.Plan.read(path)


def test_a_party_file_is_read_relative_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "a" / "party.toml"
    path.parent.mkdir()
    path.write_text(PARTY, encoding="utf-8")
    party_file = PartyFile.read(path)
    home = tmp_path.resolve() / "a"
    assert party_file.records == home / "records.csv"
    assert party_file.plan.resolve() == tmp_path.resolve() / "plan.toml"
    assert (party_file.identity, party_file.ledger) == (home / "identity.key", home / "ledger.db")
    assert party_file.columns == Columns(("score",), "label")
    assert party_file.limit == Limit("registry", 3.0, period=timedelta(days=365))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('period = "1y"', 'period = "soon"', r"party\.toml:11: \[limit\] a period must be"),
        ("epsilon = 3.0", "epsilon = -1", "epsilon must be from 0 to inf, got -1"),
        ("epsilon = 3.0", "epsilon = 0.0", "a limit's epsilon must be positive, got 0"),
        ('dataset = "registry"', "", r":5: \[data\] 'dataset' is missing"),
        (FILE, f'{FILE}\ndecimal = "."\nseparator = "7"', ":8: .* must be no part of numbers"),
        ("[limit]", "[limits]", r"unknown table \[limits\]"),
        ('name = "a"', 'name = "a"\nepsilon = 3', "unknown key 'epsilon'"),
        *(
            ("[limit]", f"[mpc]\nlisten = {value}\n[limit]", "listen must be host:port, got")
            for value in ('":70"', '"north:0"', '"north:65536"', "7070")
        ),
        ("[limit]", '[mpc]\npeers = ["south"]\n[limit]', "peers must be host:port, got 'south'"),
        (FILE, 'records = "postgresql://a:secret@h/d"\ntable = "t"', "a password must not be part"),
        (FILE, 'records = "mysql://h/d"\ntable = "t"', "records must begin with postgresql://"),
        (FILE, 'records = "duckdb://x"', "needs a table or a query, one of them"),
        (FILE, f'records = "duckdb://x"\ntable = "t"\n{FILE}', "file and records"),
        (FILE, f'{FILE}\ntable = "t"', "table needs records, the address of a database"),
    ],
)
def test_a_faulty_party_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "party.toml"
    path.write_text(PARTY.replace(old, new), encoding="utf-8")
    with pytest.raises(toml_source.PlanError, match=message) as caught:
        PartyFile.read(path)
    assert "secret" not in str(caught.value)


def test_a_party_file_says_where_others_reach_it_and_where_it_connects(tmp_path: Path) -> None:
    path = tmp_path / "party.toml"
    path.write_text(PARTY, encoding="utf-8")
    silent = PartyFile.read(path)
    assert (silent.listen, silent.address, silent.peers) == (None, None, None)
    told = (
        'listen = "[::]:7070"\naddress = "north.example:443"\npeers = ["south:7070", "[::1]:443"]'
    )
    path.write_text(f"{PARTY}[mpc]\n{told}\n", encoding="utf-8")
    party_file = PartyFile.read(path)
    assert (party_file.listen, party_file.address) == (("::", 7070), ("north.example", 443))
    assert party_file.peers == (("south", 7070), ("::1", 443))


def test_a_party_says_how_its_file_is_written(tmp_path: Path) -> None:
    """Percent signs are read where the party's scores are in percent."""
    data = 'positive = ["yes", "Y"]\nseparator = ";"\ndecimal = ","\nunit = "percent"'
    path = tmp_path / "party.toml"
    path.write_text(PARTY.replace('dataset = "registry"', f'dataset = "registry"\n{data}'))
    party = PartyFile.read(path)
    assert party.columns.form == tacit.FileForm(("yes", "Y"), ";", ",", percent=True)
    (tmp_path / "records.csv").write_text("score;label\n12,5%;no\n80 %;yes\n")
    assert read_records(party).scores.tolist() == [12.5, 80.0]
