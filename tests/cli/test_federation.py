"""The commands of a federation, as far as they start no program.

`tacit invite`, `accept`, `admit` and the roster's code in `tacit join`, without a network.
"""

from __future__ import annotations

import importlib.util
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tacit.cli import shell
from tacit.cli.federation import serving, stoppable
from tacit.cli.federation import site as rosters
from tacit.running.deployment import server
from tacit.running.deployment import site as joining
from tacit.running.deployment.door import ROSTER_FILE
from tacit.running.deployment.flower_programs.programs import DeploymentError
from tacit.running.deployment.keys import stored_identity
from tacit.running.deployment.site import Reached
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tests.running.deployment.joining.studies import quick_codes
from tests.running.deployment.processes import HOSPITALS
from tests.terminal import content_of, run, succeeded

IDENTITY = re.compile(r"identity +([0-9a-f]{64})")
CODE = re.compile(r"^code +(\S+)", re.MULTILINE)


def said(result: Result) -> str:
    return " ".join(result.output.split())


def matched(pattern: re.Pattern[str], result: Result) -> str:
    search = pattern.search(result.output)
    assert search is not None, result.output
    return search[1]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_codes(monkeypatch)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A coordinator and a party that have agreed on a plan, and a party whose data are there."""
    centre, party = tmp_path / "centre", tmp_path / "a"
    assert run("init", "--party", "a", party).exit_code == 0
    key = matched(IDENTITY, run("keys", party))
    run("keys", "--coordinator", "--host", "localhost", centre)
    assert run("init", "--coordinator", "--parties", f"a={key},b", centre).exit_code == 0
    parties = Plan.read(centre / "plan.toml").parties
    assert [(each.name, each.key is None) for each in parties] == [("a", False), ("b", True)]
    (centre / "plan.toml").unlink()
    assert run("init", "--coordinator", "--parties", f"a={key}", centre).exit_code == 0
    text = (centre / "plan.toml").read_text().replace('"secure-sum"', '"local"')
    for folder in (centre, party):
        (folder / "plan.toml").write_text(text)
    (party / "records.csv").write_text("score,label\n0.2,0\n0.8,1\n0.7,1\n")
    return tmp_path


def test_init_writes_files_that_fit_together_and_touches_none_that_exists(study: Path) -> None:
    plan = Plan.read(study / "centre" / "plan.toml")
    party_file = PartyFile.read(study / "a" / "party.toml")
    assert [party.name for party in plan.parties] == [party_file.name]
    assert plan.agreement().min_clients == 1
    assert plan.name == "centre"
    assert plan.coordinator == stored_identity(study / "centre" / "identity.key").public
    assert party_file.limit is not None
    assert party_file.limit.epsilon == 3.0
    before = (study / "a" / "party.toml").read_text()
    result = run("init", "--party", "b", study / "a")
    assert (result.exit_code, "exists already" in result.output) == (2, True)
    assert (study / "a" / "party.toml").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("init NEW", "either --coordinator or --party"),
        ("init --coordinator --party a NEW", "either --coordinator or --party"),
        ("init --party no/name NEW", "got 'no/name'"),
        ("init --party= NEW", "got ''"),
        ("init --coordinator --parties a,b,a NEW", "appears twice in 'a,b,a'"),
        ("init --coordinator --parties a=,b NEW", "64 hexadecimal digits, got ''"),
        (f"init --coordinator --parties a={'0g' * 32} NEW", "64 hexadecimal digits, got"),
        ("keys --coordinator NEW", "needs --host NAME"),
        ("keys --host localhost NEW", "--host needs --coordinator"),
        ("keys --coordinator --host no;name NEW", "'no;name' is no host name"),
        ("keys --coordinator --host other.example CENTRE", "has a certificate for localhost"),
        ("invite CENTRE/plan.toml a", "--again replaces its keys"),
        ("invite CENTRE/plan.toml --server other.example:1", "not for other.example"),
        ("invite CENTRE/plan.toml --server nowhere", "HOST:PORT, got 'nowhere'"),
        ("invite CENTRE/plan.toml", "name the site to invite"),
        ("accept CENTRE/ca.crt", "ca.crt: this file holds no"),
        ("join --server localhost: SITE/party.toml", "HOST:PORT, got 'localhost:'"),
        ("join --server localhost:1 SITE/party.toml", "ca.crt: No such file"),
        ("doctor CENTRE/nodes", "does not exist"),
        ("doctor SITE/..", "has neither party.toml nor plan.toml"),
        ("doctor SITE", "names no server"),
        ("doctor --server nowhere SITE", "HOST:PORT, got 'nowhere'"),
        ("run CENTRE/plan.toml", "no server was started"),
        ("status CENTRE/plan.toml", "no server was started"),
        ("run --local 3 HOSPITALS/plan.toml --json=CENTRE", "cannot be written"),
        ("run --local 2 HOSPITALS/plan.toml", "has 3 parties, got --local 2"),
        ("serve SITE/plan.toml", "tacit keys --coordinator"),
        ("serve SITE/party.toml", "unknown table"),
    ],
)
def test_commands_refuse(
    study: Path, arguments: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sentence, and nothing is written or replaced."""
    monkeypatch.setattr(server, "PATIENCE", 0.0)
    places: dict[str, str | Path] = {
        "NEW": "new",
        "CENTRE": "centre",
        "SITE": "a",
        "HOSPITALS": HOSPITALS,
    }
    before = {path: path.read_bytes() for path in study.rglob("*.*") if path.is_file()}
    words = arguments.split()
    for name, place in places.items():
        words = [word.replace(name, str(study / place)) for word in words]
    result = run(*words)
    assert result.exit_code == 2
    assert reason in said(result)
    kept = {path: path.read_bytes() for path in study.rglob("*.*") if path in before}
    assert kept == before
    assert not (study / "new" / "plan.toml").exists()


def test_keys_are_shown_and_kept(study: Path) -> None:
    again = run("keys", study / "a")
    assert matched(IDENTITY, again) == stored_identity(study / "a" / "identity.key").public.hex()
    assert str(study / "a" / "node.key.pub") in again.output
    secret = (study / "a" / "identity.key").read_text().strip()
    assert secret not in again.output
    centre = run("keys", "--coordinator", study / "centre")
    assert "certificate for localhost, 127.0.0.1" in centre.output
    assert not (study / "centre" / "node.key").exists()


def test_a_party_sees_what_joining_means(study: Path) -> None:
    """Scores out of range are told here, and are no reason to stay away."""
    records = study / "a" / "records.csv"
    records.write_text(records.read_text().replace("0.8", "80"))
    result = succeeded(run("join", "--check", study / "a" / "party.toml"))
    for words in (
        "plan centre, with no other party; a result needs 1",
        "protocol score-histogram (trust local",
        "a run costs at most epsilon 1",
        "data set my-records: 3 records in",
        "enough for",
        "warning: 1 of 3 scores are outside of what the plan takes as probability",
    ):
        assert words in said(result)
    assert not (study / "a" / "ledger.db").exists()


def _break(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(party: Path) -> None:
        text = (party / name).read_text()
        assert old in text
        (party / name).write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_break("records.csv", "0.8", "O.8"), "got 'O.8'"),
        (_break("party.toml", '"probability"', '"real"'), "names the unit 'real', which cannot be"),
        (_break("party.toml", 'name = "a"', 'name = "b"'), "'a'"),
        (_break("plan.toml", "coordinator =", "# coordinator ="), "no key of the coordinator"),
        (lambda party: (party / "identity.key").chmod(0o644), "its owner's only"),
        (lambda party: (party / "records.csv").unlink(), "records.csv"),
        (lambda party: (party / "ca.crt").touch(), "node.key: No such file"),
    ],
)
def test_unready_parties_stay_out(study: Path, change: Callable[[Path], None], reason: str) -> None:
    (study / "a" / "node.key").unlink()
    change(study / "a")
    result = run("join", "--server", "localhost:1", study / "a" / "party.toml")
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stderr.startswith("tacit: ")


@pytest.mark.parametrize("command", ["run", "status"])
def test_commands_need_flower(study: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    observed = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "flwr" else observed(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    result = run(command, study / "centre" / "plan.toml")
    assert result.exit_code == 2
    assert "pip install 'tacit[federation]'" in result.output
    assert result.output.count("\n") == 1


def test_failures_and_requests_to_terminate_end_as_in_other_commands() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(Exception, match=r"^the port is taken$") as caught, stoppable():
        raise DeploymentError("the port is taken")
    assert type(caught.value).__name__ == "ClickException"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    centre = tmp_path / "centre"
    assert run("init", "--coordinator", "--parties", "a,b,c", centre).exit_code == 0
    succeeded(run("invite", centre / "plan.toml", "--server", "localhost:18443"))
    return centre / "plan.toml"


def accepted(plan: Path, site: str) -> str:
    """The code that a site shows when it has accepted its invitation."""
    letter, home = plan.parent / "invitations" / f"{site}.json", plan.parents[1] / site
    (plan.parents[1] / "records.csv").write_text("score,label\n0.2,0\n0.8,1\n0.7,1\n")
    done = succeeded(run("accept", letter, home, "--records", plan.parents[1] / "records.csv"))
    assert "epsilon 1; hides whether any one record is in the data at all" in said(done)
    return matched(CODE, done)


def admitted(plan: Path, sites: str = "abc") -> str:
    """The code of the roster, once these sites are admitted too."""
    codes = [f"--code={site}={accepted(plan, site)}" for site in sites]
    done = succeeded(
        run("admit", plan, *codes, *(plan.parents[1] / site / "answer.json" for site in sites))
    )
    known = Plan.read(plan).parties
    assert f"all {len(known)} sites are admitted; code of the roster: " in done.output
    assert len({party.key for party in known}) == len(known)
    return done.output.partition("roster: ")[2].split()[0]


def newest(plan: Path, code: str | None) -> None:
    """Site a asks for the roster, and is given a code."""
    home = plan.parents[1] / "a"
    rosters.newest_roster(home, "localhost:18443", home / "ca.crt", code, 1.0)


def serve(monkeypatch: pytest.MonkeyPatch, roster: Path) -> None:
    """Have the server answer with a roster, to a site that asks for it."""
    monkeypatch.setattr(joining, "reach", lambda *_: Reached(200, roster.read_bytes()))


def test_a_wrong_code_admits_nobody_else(plan: Path) -> None:
    good, home = accepted(plan, "a"), plan.parents[1]
    accepted(plan, "b")
    answers = [home / site / "answer.json" for site in "ab"]
    done = run("admit", plan, f"--code=a={good}", "--code=b=0000-0000-0000", *answers)
    assert done.exit_code == 2
    assert "the code of b is not the one of this answer" in said(done)
    assert [party.key is None for party in Plan.read(plan).parties] == [False, True, True]
    assert "call b, and give the code that it reads" in said(run("admit", plan, answers[1]))
    assert "as SITE=CODE, got 'x'" in said(run("admit", plan, answers[1], "--code", "x"))


def test_renewed_certificates_need_no_code(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, home = admitted(plan), plan.parent
    serve(monkeypatch, home / "server" / "roster.json")
    newest(plan, code)
    assert "the new certificates are used from" in said(run("renew", plan, "--from", "2001-01-01"))
    assert "the server uses its new certificate from" in said(run("renew", plan))
    newest(plan, None)
    assert (home.parent / "a" / "ca.crt").read_text().count("BEGIN CERTIFICATE") == 2
    assert "wait already" in said(run("renew", plan))
    assert "no --from" in said(run("renew", plan, plan, "--from", "2031-05-01"))
    assert "this is no renewal" in said(run("renew", plan, plan))


def test_a_site_takes_a_roster_by_its_code(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And another one, with a late site, by another code."""
    shown, home = admitted(plan), plan.parents[1] / "a"
    before = (home / "plan.toml").read_bytes()
    monkeypatch.setattr(joining, "reach", lambda *_: Reached(403, b""))
    with pytest.raises(ValueError, match="does not know this invitation"):
        newest(plan, shown)
    serve(monkeypatch, plan.parent / "server" / ROSTER_FILE)
    for code, reason in ((None, "give it as --code"), ("1" * 20, "different rosters")):
        with pytest.raises(ValueError, match=reason):
            newest(plan, code)
        assert (home / "plan.toml").read_bytes() == before
    assert "no roster yet" in said(run("join", "--check", home / "party.toml"))
    newest(plan, shown.upper())
    assert (home / "plan.toml").read_bytes() == plan.read_bytes()
    newest(plan, None)
    assert "enough for" in said(run("join", "--check", home / "party.toml"))
    assert run("invite", plan, "w").exit_code == 0
    second = admitted(plan, "w")
    for late, reason in ((None, "the roster is new here"), (shown, "different rosters")):
        with pytest.raises(ValueError, match=reason):
            newest(plan, late)
    newest(plan, second)


RUN = {"run-id": "7", "pending-at": "2026-11-28T10:00:00+00:00", "status": "finished:completed"}


def test_a_status_names_parties_runs_and_results_and_is_shown_when_it_changes(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    centre = server.Coordinator(study / "centre")
    centre.results.mkdir(parents=True)
    (centre.results / "7.json").touch()
    (centre.private / "address.json").write_text('["::1", 8443]')
    looks = iter([[RUN]])
    monkeypatch.setattr(server.Coordinator, "check_running", lambda _: None)
    monkeypatch.setattr(server, "nodes_online", lambda *_: {"a": "online", "x": "offline"})
    monkeypatch.setattr(server, "runs_of", lambda *_: next(looks))
    monkeypatch.setattr(serving, "WATCH_SECONDS", 0.0)
    known = content_of("status", study / "centre" / "plan.toml")
    assert (known["server"], known["parties"]) == ("[::1]:8443", {"a": "online"})
    assert known["nodes"] == {"x": "offline"}
    assert [run["result"] for run in known["runs"]] == [str(centre.results / "7.json")]
    looks = iter([[RUN], [RUN], [{**RUN, "run-id": "8"}]])
    printed: list[str] = []
    monkeypatch.setattr(shell, "show", printed.append)
    with pytest.raises(StopIteration):
        run("status", "--watch", study / "centre" / "plan.toml")
    assert ["7.json" in text for text in printed] == [True, False]
    assert all(text.startswith("time") for text in printed)
