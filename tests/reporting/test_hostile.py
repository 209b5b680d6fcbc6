"""Files that somebody changed are refused in one sentence, or shown without obeying them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tacit.cli import main
from tacit.protocol.registry import written_kind
from tacit.protocol.settings import known_settings
from tacit.reporting.page import report
from tacit.reporting.tables import as_csv, as_markdown, model_index
from tacit.results.evaluation import Evaluation
from tacit.results.saved.reading import Document, Result, document_of
from tests.reporting.examples import changed
from tests.reporting.hostile import MARKUP, changes, documents

TAG = re.compile(r"(?<!\\)<(?:img|script>alert)")
"""A tag of ``MARKUP``; in Markdown a backslash makes it a text."""

MAKERS: tuple[Callable[[Any, Document], str], ...] = (
    lambda one, other: report([one]),
    lambda one, other: report([other, one]),
    lambda one, other: as_markdown([one]),
    lambda one, other: as_csv([one]),
    lambda one, other: model_index([one], None, "x"),
    lambda one, other: str(Evaluation.from_dict(one.content)),
    lambda one, other: Evaluation.from_dict(one.content).to_html(),
)
"""What is made of a file, beside another of its kind; the last three take single results."""
MARKED, PRINTED = (0, 1, 2, 6), 5
"""Which of these are markup, and which is printed as it is."""


def check_made(content: Any, other: Document) -> bool:
    """Make all of it, and check that it is a ``ValueError`` or harmless; whether it is read."""
    try:
        one = document_of(content, "it")
    except ValueError:
        return False
    for index, make in enumerate(MAKERS if isinstance(one, Result) else MAKERS[:4]):
        try:
            made = make(one, other)
        except ValueError:
            continue
        made.encode("utf-8")
        assert index not in MARKED or not TAG.search(made)
        assert index != PRINTED or made.replace("\n", "").isprintable()
    return True


def check(number: int, seed: int) -> None:
    others = {name: document_of(content, "other") for name, content in documents().items()}
    read = 0
    for name, change, content in changes(number, seed):
        try:
            read += check_made(content, others[name])
        except Exception as error:
            raise AssertionError(f"{name}, {change}") from error
    # files of both kinds are tried
    assert 0.1 * number < read < 0.8 * number


def test_a_changed_file_is_refused_with_the_reason_or_is_harmless() -> None:
    check(60, seed=1)


@pytest.mark.thorough
def test_many_changed_files_are_refused_with_the_reason_or_are_harmless() -> None:
    check(10_000, seed=2)


@pytest.mark.parametrize("form", ["html", "csv", "md", "model-index"])
def test_the_command_says_in_one_line_what_is_wrong(tmp_path: Path, form: str) -> None:
    """Where a change is harmless the command succeeds; nothing printed is obeyed by a terminal."""
    path, codes = tmp_path / "it.json", set()
    for _, change, content in changes(20, seed=3):
        path.write_text(json.dumps(content), encoding="utf-8")
        arguments = ["report", str(path), "--format", form]
        target = ["-o", str(tmp_path / "page.html")] if form == "html" else []
        done = CliRunner().invoke(main, [*arguments, *target])
        assert done.exception is None or isinstance(done.exception, SystemExit), change
        codes.add(done.exit_code)
        assert len(done.stderr.splitlines()) == (done.exit_code != 0), change
        assert (done.stdout + done.stderr).replace("\n", "").isprintable(), change
    assert codes == {0, 2}


def test_every_declared_setting_is_checked() -> None:
    """No setting takes a list of objects, whatever kind of file names it."""
    checked = set()
    for content in documents().values():
        protocol = content.get("protocol", {"name": ""})
        known = known_settings(written_kind(protocol["name"]))
        for key in known.keys() & protocol.keys():
            if known[key].declared.shown is None:
                odd = changed(content, protocol=protocol | {key: [{}]})
                with pytest.raises(ValueError, match=f"{key} must be"):
                    document_of(odd, "it")
                checked.add((protocol["name"], key))
    assert len({name for name, _ in checked}) > 10


def test_a_protocol_that_is_not_installed_is_shown_without_its_threats() -> None:
    content = documents()["curve"]
    foreign = content["protocol"] | {"name": MARKUP, "adjacency": "x", "more": [{MARKUP: [[]]}]}
    page = report([Result.of(changed(content, protocol=foreign), "it")])
    assert "has no description of the protocol" in page
    assert 'class="run"' not in page
    assert not TAG.search(page)
