"""The commands of a federation, as far as they start no program."""

import importlib.util
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tacit.cli.federation.shared import stoppable
from tacit.running.deployment import local, server
from tacit.running.deployment.flower_programs.programs import DeploymentError
from tacit.running.deployment.keys import stored_identity, stored_node_key
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
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
        (lambda party: (party / "identity.key").chmod(0o644), "owner only"),
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
