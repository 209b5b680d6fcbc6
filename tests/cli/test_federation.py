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

from tacit.cli.federation import site as rosters
from tacit.cli.federation import stoppable
from tacit.running.deployment import local, server
from tacit.running.deployment import site as joining
from tacit.running.deployment.door import ROSTER_FILE
from tacit.running.deployment.flower_programs.programs import DeploymentError
from tacit.running.deployment.keys import stored_identity, stored_node_key
from tacit.running.deployment.site import Reached
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tests.running.deployment.joining.studies import quick_codes
from tests.terminal import run

HOSPITALS = Path(__file__).parents[2] / "examples" / "three-hospitals"
IDENTITY = re.compile(r"identity +([0-9a-f]{64})")


def said(result: Result) -> str:
    return " ".join(result.output.split())


def public_key(result: Result) -> str:
    search = IDENTITY.search(result.output)
    assert search is not None
    return search[1]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A coordinator and a party that have agreed on a plan, and a party whose data are there."""
    centre, party = tmp_path / "centre", tmp_path / "a"
    assert run("init", "--party", "a", party).exit_code == 0
    key = public_key(run("keys", party))
    run("keys", "--coordinator", "--host", "localhost", centre)
    assert run("init", "--coordinator", "--parties", f"a={key}", centre).exit_code == 0
    text = (centre / "plan.toml").read_text().replace('"secure-sum"', '"local"')
    for folder in (centre, party):
        (folder / "plan.toml").write_text(text)
    (party / "records.csv").write_text("score,label\n0.2,0\n0.8,1\n0.7,1\n")
    return tmp_path


def test_init_writes_files_that_fit_together(study: Path) -> None:
    plan, party_file = (
        Plan.read(study / "centre" / "plan.toml"),
        PartyFile.read(study / "a" / "party.toml"),
    )
    assert [party.name for party in plan.parties] == [party_file.name]
    assert plan.agreement().min_clients == 1
    assert plan.name == "centre"
    assert plan.coordinator == stored_identity(study / "centre" / "identity.key").public


def test_init_leaves_keys_out_that_it_does_not_know(tmp_path: Path) -> None:
    assert run("init", "--coordinator", "--parties", "a,b", tmp_path).exit_code == 0
    plan = Plan.read(tmp_path / "plan.toml")
    assert plan.coordinator is None
    assert [(party.name, party.key) for party in plan.parties] == [("a", None), ("b", None)]


def test_init_touches_no_file_that_exists(study: Path) -> None:
    before = (study / "a" / "party.toml").read_text()
    result = run("init", "--party", "b", study / "a")
    assert (result.exit_code, "exists already" in result.output) == (2, True)
    assert (study / "a" / "party.toml").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "either --coordinator or --party"),
        (["--coordinator", "--party", "a"], "either --coordinator or --party"),
        (["--party", "no/name"], "got 'no/name'"),
        (["--party", ""], "got ''"),
        (["--coordinator", "--parties", "a,b,a"], "appears twice in 'a,b,a'"),
        (["--coordinator", "--parties", "a,,b"], "got ''"),
        (["--coordinator", "--parties", "a=,b"], "64 hexadecimal digits, got ''"),
        (["--coordinator", "--parties", f"a={'0g' * 32}"], "64 hexadecimal digits, got"),
    ],
)
def test_init_refuses_what_makes_no_plan(tmp_path: Path, arguments: list[str], reason: str) -> None:
    result = run("init", *arguments, tmp_path / "new")
    assert result.exit_code == 2
    assert reason in said(result)
    assert not (tmp_path / "new").exists()


def test_keys_are_shown_and_kept(study: Path) -> None:
    again = run("keys", study / "a")
    assert public_key(again) == stored_identity(study / "a" / "identity.key").public.hex()
    assert str(study / "a" / "node.key.pub") in again.output
    secret = (study / "a" / "identity.key").read_text().strip()
    assert secret not in again.output
    centre = run("keys", "--coordinator", study / "centre")
    assert "certificate for localhost, 127.0.0.1" in centre.output
    assert not (study / "centre" / "node.key").exists()


def test_a_certificate_is_not_replaced_unasked(study: Path) -> None:
    before = (study / "centre" / "ca.crt").read_bytes()
    result = run("keys", "--coordinator", "--host", "other.example.org", study / "centre")
    assert result.exit_code == 2
    assert "has a certificate for localhost" in said(result)
    assert (study / "centre" / "ca.crt").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--coordinator"], "needs --host NAME"),
        (["--host", "localhost"], "--host needs --coordinator"),
        (["--coordinator", "--host", "no name"], "'no name' is no host name"),
        (["--coordinator", "--host", "-x"], "'-x' is no host name"),
    ],
)
def test_keys_refuses_idle_and_missing_options(
    tmp_path: Path, arguments: list[str], reason: str
) -> None:
    result = run("keys", *arguments, tmp_path)
    assert result.exit_code == 2
    assert reason in said(result)


def test_a_party_sees_what_joining_means(study: Path) -> None:
    result = run("join", "--check", study / "a" / "party.toml")
    assert result.exit_code == 0, result.output
    for words in (
        "plan centre, with no other party; a result needs 1",
        "protocol score-histogram (trust local",
        "a run costs at most epsilon 1",
        "data set my-records: 3 records in",
        "enough for",
    ):
        assert words in said(result)
    assert not (study / "a" / "ledger.db").exists()


def test_scores_out_of_range_are_told_here_and_are_no_reason_to_stay_away(study: Path) -> None:
    records = study / "a" / "records.csv"
    records.write_text(records.read_text().replace("0.8", "80"))
    result = run("join", "--check", study / "a" / "party.toml")
    assert result.exit_code == 0, result.output
    assert "warning: 1 of 3 scores are outside of what the plan takes as probability" in said(
        result
    )


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
        (_break("records.csv", "label", "died"), "label"),
        (_break("party.toml", 'name = "a"', 'name = "b"'), "'a'"),
        (_break("plan.toml", "coordinator =", "# coordinator ="), "no key of the coordinator"),
        (_break("plan.toml", "epsilon = 1.0", "epsilon = -1.0"), "got -1.0"),
        (lambda party: (party / "identity.key").chmod(0o644), "its owner's only"),
        (lambda party: (party / "records.csv").unlink(), "records.csv"),
    ],
)
def test_a_party_that_is_not_ready_does_not_join(
    study: Path, change: Callable[[Path], None], reason: str
) -> None:
    change(study / "a")
    result = run("join", "--server", "localhost:1", study / "a" / "party.toml")
    assert result.exit_code == 2
    assert result.output.startswith("tacit: ")
    assert reason in said(result)
    assert "Traceback" not in result.output


@pytest.mark.parametrize("server", ["localhost", "localhost:", "https://localhost:1", "a b:1", ""])
def test_a_server_is_an_address(study: Path, server: str) -> None:
    result = run("join", "--server", server, study / "a" / "party.toml")
    assert (result.exit_code, repr(server) in result.output) == (2, True)


def test_joining_needs_the_authority_and_the_node_key(study: Path) -> None:
    joining = ("join", "--server", "localhost:1", study / "a" / "party.toml")
    assert "ca.crt: No such file" in run(*joining).output
    (study / "a" / "ca.crt").write_text("")
    (study / "a" / "node.key").unlink()
    assert "node.key: No such file" in run(*joining).output


@pytest.mark.parametrize("command", ["run", "status"])
def test_without_a_server_there_is_no_run(
    study: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.0)
    result = run(command, study / "centre" / "plan.toml")
    assert result.exit_code == 2
    assert "no server was started" in said(result)


def test_serving_needs_certificates_and_a_plan(study: Path) -> None:
    (study / "centre" / "ca.crt").unlink()
    result = run("serve", study / "centre" / "plan.toml")
    assert (result.exit_code, "tacit keys --coordinator" in said(result)) == (2, True)
    (study / "centre" / "plan.toml").write_text("[plan]\n")
    assert run("serve", study / "centre" / "plan.toml").exit_code == 2


def test_a_local_run_needs_as_many_parties_as_the_plan(tmp_path: Path) -> None:
    result = run("run", "--local", 2, HOSPITALS / "plan.toml")
    assert (result.exit_code, "has 3 parties, got --local 2" in said(result)) == (2, True)


def test_a_result_that_cannot_be_written_is_not_computed(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    place = tmp_path / "folder.json"
    result = run("run", "--local", 3, HOSPITALS / "plan.toml", "--json", place)
    assert (result.exit_code, "cannot be written" in said(result)) == (2, True)


@pytest.mark.parametrize("command", ["run", "status"])
def test_without_flower_one_sentence_says_so(
    study: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    observed = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "flwr" else observed(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    result = run(command, study / "centre" / "plan.toml")
    assert result.exit_code == 2
    assert "pip install 'tacit[federation]'" in result.output
    assert result.output.count("\n") == 1


def test_a_local_plan_names_everybodys_keys(tmp_path: Path) -> None:
    """The copies that a run on one machine makes: whole, with keys, and the original untouched."""
    for name in "abc":
        (tmp_path / name).mkdir()
        for file in ("party.toml", "records.csv"):
            (tmp_path / name / file).write_bytes((HOSPITALS / name / file).read_bytes())
    (tmp_path / "plan.toml").write_bytes((HOSPITALS / "plan.toml").read_bytes())
    parties = local.local_parties(tmp_path / "plan.toml", 3)
    hidden = tmp_path / ".tacit"
    coordinator = local.prepared(tmp_path / "plan.toml", parties, hidden)
    agreement = Plan.read(hidden / "plan.toml").agreement()
    for (name, own), key in zip(parties.items(), agreement.parties, strict=True):
        assert stored_identity(own.parent / "identity.key").public == key
        copy = PartyFile.read(hidden / "parties" / name / "party.toml")
        assert copy.ledger.parent == own.parent
        public = stored_node_key(hidden / "parties" / name / "node.key").read_bytes()
        assert (coordinator.nodes / f"{name}.pub").read_bytes() == public
    assert agreement.coordinator == stored_identity(coordinator.identity).public
    assert "key" not in (tmp_path / "a" / "party.toml").read_text().replace("identity.key", "")


def test_a_request_to_terminate_is_an_interrupt() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_failures_of_programs_are_sentences() -> None:
    with pytest.raises(Exception, match=r"^the port is taken$") as caught, stoppable():
        raise DeploymentError("the port is taken")
    assert type(caught.value).__name__ == "ClickException"


CODE = re.compile(r"^code +(\S+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_codes(monkeypatch)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    centre = tmp_path / "centre"
    assert run("init", "--coordinator", "--parties", "a,b,c", centre).exit_code == 0
    done = run("invite", centre / "plan.toml", "--server", "localhost:18443")
    assert done.exit_code == 0, done.output
    return centre / "plan.toml"


def accepted(plan: Path, site: str) -> str:
    """The code that a site shows when it has accepted its invitation."""
    letter, home = plan.parent / "invitations" / f"{site}.json", plan.parents[1] / site
    (plan.parents[1] / "records.csv").write_text("score,label\n0.2,0\n0.8,1\n0.7,1\n")
    done = run("accept", letter, home, "--records", plan.parents[1] / "records.csv")
    assert done.exit_code == 0, done.output
    assert "epsilon 1; hides whether a record is there" in said(done)
    match = CODE.search(done.output)
    assert match is not None
    return match[1]


def admitted(plan: Path, sites: str = "abc") -> Result:
    codes = [f"--code={site}={accepted(plan, site)}" for site in sites]
    return run("admit", plan, *codes, *(plan.parents[1] / s / "answer.json" for s in sites))


def served(plan: Path) -> Callable[..., Reached]:
    """What the server answers to a site that asks for the roster."""
    roster = plan.parent / "server" / ROSTER_FILE
    return lambda *_: Reached(200, roster.read_bytes())


def test_three_sites_are_admitted(plan: Path) -> None:
    done = admitted(plan)
    assert done.exit_code == 0, done.output
    assert "all 3 sites are admitted; code of the roster: " in done.output
    assert len({party.key for party in Plan.read(plan).parties}) == 3


def test_a_wrong_code_admits_nobody_else(plan: Path) -> None:
    good, home = accepted(plan, "a"), plan.parents[1]
    accepted(plan, "b")
    answers = [home / site / "answer.json" for site in "ab"]
    done = run("admit", plan, f"--code=a={good}", "--code=b=0000-0000-0000", *answers)
    assert done.exit_code == 2
    assert "the code of b is not the one of this answer" in said(done)
    assert [party.key is None for party in Plan.read(plan).parties] == [False, True, True]


def test_codes_are_asked_for(plan: Path) -> None:
    accepted(plan, "a")
    answer = plan.parents[1] / "a" / "answer.json"
    assert "call a, and give the code that it reads" in said(run("admit", plan, answer))
    assert "as SITE=CODE, got 'x'" in said(run("admit", plan, answer, "--code", "x"))


def test_a_site_takes_a_roster_by_its_code_only(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = admitted(plan).output.partition("roster: ")[2].split()[0]
    monkeypatch.setattr(joining, "reach", served(plan))
    home = plan.parents[1] / "a"
    before = (home / "plan.toml").read_bytes()
    arguments = (home, "localhost:18443", home / "ca.crt")
    for code, reason in ((None, "give it as --code"), ("1" * 20, "different rosters")):
        with pytest.raises(ValueError, match=reason):
            rosters.newest_roster(*arguments, code, 1.0)
        assert (home / "plan.toml").read_bytes() == before
    assert "no roster yet" in said(run("join", "--check", home / "party.toml"))
    rosters.newest_roster(*arguments, shown.upper(), 1.0)
    assert (home / "plan.toml").read_bytes() == plan.read_bytes()
    rosters.newest_roster(*arguments, None, 1.0)
    assert "enough for" in said(run("join", "--check", home / "party.toml"))


def test_a_late_site_asks_the_others_for_a_new_code(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = admitted(plan).output.partition("roster: ")[2].split()[0]
    monkeypatch.setattr(joining, "reach", served(plan))
    home = plan.parents[1] / "a"
    arguments = (home, "localhost:18443", home / "ca.crt")
    rosters.newest_roster(*arguments, first, 1.0)
    assert run("invite", plan, "west").exit_code == 0
    second = run(
        "admit",
        plan,
        f"--code=west={accepted(plan, 'west')}",
        plan.parents[1] / "west" / "answer.json",
    )
    assert "all 4 sites are admitted" in second.output
    with pytest.raises(ValueError, match="the roster is new here"):
        rosters.newest_roster(*arguments, None, 1.0)
    with pytest.raises(ValueError, match="different rosters"):
        rosters.newest_roster(*arguments, first, 1.0)
    older, taken = (home / ROSTER_FILE).read_bytes(), second.output.partition("roster: ")[2]
    rosters.newest_roster(*arguments, taken.split()[0], 1.0)
    monkeypatch.setattr(joining, "reach", lambda *_: Reached(200, older))
    with pytest.raises(ValueError, match="older than the last that this site took"):
        rosters.newest_roster(*arguments, first, 1.0)


def test_an_invitation_that_was_replaced_is_said(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted(plan, "a")
    monkeypatch.setattr(joining, "reach", lambda *_: Reached(403, b""))
    home = plan.parents[1] / "a"
    with pytest.raises(ValueError, match="does not know this invitation"):
        rosters.newest_roster(home, "localhost:1", home / "ca.crt", None, 1.0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("x/y",), "got 'x/y'"),
        (("--server", "other.example:1"), "not for other.example"),
        (("--server", "nowhere"), "HOST:PORT, got 'nowhere'"),
    ],
)
def test_invite_refuses(plan: Path, arguments: tuple[str, ...], reason: str) -> None:
    done = run("invite", plan, *arguments)
    assert done.exit_code == 2
    assert reason in said(done)


def test_files_that_are_no_letters_are_named(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    for command in (("accept", tmp_path / "x"), ("admit", plan, tmp_path / "x")):
        done = run(*command)
        assert done.exit_code == 2
        assert f"{tmp_path / 'x'}: this file holds no" in said(done)
