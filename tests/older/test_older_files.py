"""Files that the first version wrote, before a protocol declared itself: they still open.

``files`` holds what that version left of a federation of three, for the party ``a``: the plan and
the party's file, its key, its ledger, and its state after one of two rounds. ``message`` is what
the coordinator sent next; ``notebook`` is what a whole run about the same records left, with the
labels that were flipped in it. Beside them are results and a calibrator.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tacit.data.record_order import order_of
from tacit.ledger.ledger import Ledger
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import Adjacency
from tacit.protocol.encoding.fields import decode
from tacit.protocol.encoding.values import decode_values
from tacit.protocol.registry import protocol_as_written
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.protocols.shared.reports.flipped_labels import Flipped
from tacit.results.curves.calibrator import Calibrator
from tacit.results.saved.reading import read_results
from tacit.running.session.messages import COORDINATOR, verified
from tacit.running.session.party.debits import fingerprint
from tacit.running.session.party.service import CLIENT_STATE_FILE, LOST_MARK, PartyDesk
from tacit.running.session.party.state import cost_of, state_kinds
from tacit.running.session.plan_file import Plan

FILES = Path(__file__).parent / "files"
RESULTS = sorted((FILES / "results").glob("*.json"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy, newly written and readable by its owner only, as a party's files are."""
    whole = shutil.copytree(FILES, tmp_path / "files", copy_function=shutil.copyfile)
    for path in (whole / "a").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return whole


def test_a_plan_and_a_partys_file_say_what_they_said(home: Path) -> None:
    plan = Plan.read(home / "plan.toml")
    desk = PartyDesk.open(home / "a" / "party.toml")
    assert plan == desk.plan
    assert plan.protocol == FedAUC(1.0, trust="local")
    assert (plan.min_clients, plan.retries, plan.on_loss, plan.deadline) == (3, 1, "fail", 120.0)
    assert (desk.party_file.name, desk.party_file.dataset, desk.party_file.epsilon) == (
        "a",
        "registry",
        100.0,
    )
    assert desk.party_file.adjacency is Adjacency.LABEL


def test_a_ledger_holds_what_was_spent(home: Path) -> None:
    with Ledger(home / "a" / "ledger.db") as ledger:
        ledger.verify()
        (spending,) = ledger.spending("registry")
        assert (spending.epsilon, spending.limit.epsilon) == (0.0, 100.0)
        assert [line.step for line in ledger.lines()] == [None, "0 share_scores"]


def mark_records(desk: PartyDesk) -> None:
    """Note with which records the run began: the first version did not."""
    (run,) = desk.party_file.state.glob("*.run")
    with Ledger(desk.party_file.ledger) as ledger:
        mark = order_of(desk.records, fingerprint(ledger, desk.records))
    run.with_suffix(".records").write_bytes(mark)


def test_a_run_that_has_no_note_of_its_records_is_declined(home: Path) -> None:
    desk = PartyDesk.open(home / "a" / "party.toml")
    agreement = desk.plan.agreement()
    reply = verified(desk.answer((home / "letter").read_bytes()), agreement, 0, COORDINATOR)
    assert decode_values(reply.body) == {"reason": LOST_MARK}


@pytest.mark.parametrize("flipped", [False, True], ids=["no notebook", "a notebook"])
def test_a_run_goes_on_where_the_older_program_left_it(home: Path, flipped: bool) -> None:
    """Flips of which it did not keep whose they are cost again, as those of other records do."""
    notebook = home / "a" / "ledger-state" / CLIENT_STATE_FILE
    desk = PartyDesk.open(home / "a" / "party.toml")
    kinds, agreement = state_kinds(desk.plan.protocol), desk.plan.agreement()
    if flipped:
        shutil.copyfile(FILES / "notebook", notebook)
    mark_records(desk)
    message = (home / "letter").read_bytes()
    reply = verified(desk.answer(message), agreement, 0, COORDINATOR)
    said = decode_values(reply.body)
    assert cost_of(said["spent"]).epsilon == 1.0
    assert np.asarray(decode(said["content"])["positives"], dtype=np.float64).shape == ()
    with Ledger(home / "a" / "ledger.db") as ledger:
        assert [line.step for line in ledger.lines()][1:] == ["0 share_scores", "1 noisy_rank_sums"]
        assert [each.epsilon for each in ledger.spending("registry")] == [1.0]
    (note,) = decode_values(notebook.read_bytes(), kinds)["notes"].values()
    assert isinstance(note, Flipped)
    assert note.released.all()
    assert note.digest == order_of(desk.records, b"")


@pytest.mark.parametrize("path", RESULTS, ids=[path.stem for path in RESULTS])
def test_results_are_read_and_their_settings_are_those_of_today(path: Path) -> None:
    (result,) = read_results([str(path)])
    content = json.loads(path.read_text())
    assert result.content == content
    settings = dict(content["protocol"])
    protocol = protocol_as_written(settings.pop("name"), settings)
    assert protocol.settings == settings
    assert getattr(protocol, "scale", EVEN) == EVEN


def test_a_calibrator_maps_scores_as_it_did() -> None:
    calibrator = Calibrator.load(FILES / "calibrator.json")
    content = json.loads((FILES / "calibrator.json").read_text())
    middles = (np.array(content["edges"][1:]) + np.array(content["edges"][:-1])) / 2
    assert calibrator.transform(middles).tolist() == content["values"]
