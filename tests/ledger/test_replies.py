"""The same question again: replies that wait in memory or encrypted, and what is a
contradiction."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger.ledger import (
    ConflictError,
    Ledger,
    LimitError,
    RepliesInMemory,
    SealedReplies,
    answer_once,
    request_digest,
)
from tests.ledger.test_ledger import asked, never, replying


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "book.db"


class TestRetransmissions:
    """The same question again."""

    def test_it_is_answered_with_the_same_bytes_at_no_cost(self, path: Path) -> None:
        with Ledger(path) as book:
            book.limit("registry", 1.0)
            replies = [answer_once(book, asked(), replying(b"noisy")) for _ in range(3)]
            assert replies == [b"noisy"] * 3
            assert len(book.lines()) == 2

    def test_after_a_restart_it_costs_again(self, path: Path) -> None:
        for reply in (b"first", b"second"):
            with Ledger(path) as book:
                book.limit("registry", 2.0)
                assert answer_once(book, asked(), replying(reply)) == reply
        with Ledger(path) as book, pytest.raises(LimitError):
            answer_once(book, asked(), never)

    def test_only_the_same_session_step_and_request_are_answered(self, path: Path) -> None:
        with Ledger(path) as book:
            book.limit("registry", 10.0)
            receipt = book.debit(asked())
            assert book.stored_reply("run", "0 cells", asked().request) is None
            book.keep_reply(receipt, b"reply")
            assert book.stored_reply("run", "0 cells", asked().request) == b"reply"
            assert book.stored_reply("other", "0 cells", asked().request) is None
            assert book.stored_reply("run", "1 cells", asked().request) is None
            assert book.stored_reply("run", "0 cells", request_digest(b"else")) is None
            book.end_session("run")
            assert book.stored_reply("run", "0 cells", asked().request) is None

    @pytest.mark.parametrize(
        "change",
        [
            {"request": request_digest(b"another query")},
            {"protocol": "fedauc"},
            {"fingerprint": b"1" * 32},
        ],
    )
    def test_another_question_under_the_same_step_is_refused(
        self, path: Path, change: dict[str, Any]
    ) -> None:
        with Ledger(path) as book:
            book.limit("registry", 10.0)
            answer_once(book, asked(), replying(b"reply"))
            for refused in (book.debit, lambda e: answer_once(book, e, never)):
                with pytest.raises(ConflictError, match="was answered for another"):
                    refused(asked(**change))
            assert book.spending("registry")[0].epsilon == 1.0

    def test_the_same_records_under_another_name_are_refused(self, path: Path) -> None:
        with Ledger(path) as book:
            book.limit("registry", 10.0)
            book.limit("escape", 10.0)
            book.debit(asked())
            with pytest.raises(ConflictError, match="are booked as 'registry', got 'escape'"):
                book.debit(asked("other", dataset="escape"))

    def test_a_reply_that_cannot_be_kept_leaves_all_the_same(self, path: Path) -> None:
        class Full(RepliesInMemory):
            def keep(self, debit: bytes, reply: bytes) -> None:
                raise OSError("no room")

        with Ledger(path, replies=Full()) as book:
            book.limit("registry", 2.0)
            assert answer_once(book, asked(), replying(b"first")) == b"first"
            assert answer_once(book, asked(), replying(b"second")) == b"second"
            with pytest.raises(LimitError):
                answer_once(book, asked(), never)

    def test_a_book_restored_from_before_the_debit_does_not_answer(self, path: Path) -> None:
        replies = RepliesInMemory()
        with Ledger(path) as book:
            book.limit("registry", 1.0)
        older = path.read_bytes()
        with Ledger(path, replies=replies) as book:
            answer_once(book, asked(), replying(b"first"))
        path.write_bytes(older)
        with Ledger(path, replies=replies) as book:
            assert book.stored_reply("run", "0 cells", asked().request) is None


class TestSealedReplies:
    """Replies between processes, under a key that the disk does not hold."""

    def test_another_process_with_the_key_finds_the_reply(self, path: Path) -> None:
        folder = path.with_name("replies")
        for key, expected in ((b"k" * 32, b"raw scores"), (b"other key" + bytes(23), None)):
            with Ledger(path, replies=SealedReplies(folder, b"k" * 32)) as book:
                book.limit("registry", 1.0)
                if expected:
                    answer_once(book, asked(), replying(b"raw scores"))
            with Ledger(path, replies=SealedReplies(folder, key)) as book:
                assert book.stored_reply("run", "0 cells", asked().request) == expected
        (file,) = folder.iterdir()
        assert b"raw scores" not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def test_torn_changed_and_swapped_files_are_not_found(self, tmp_path: Path) -> None:
        replies = SealedReplies(tmp_path / "replies", bytes(32))
        for debit in (b"1", b"2"):
            replies.keep(debit, b"reply " + debit)
        one, two = (tmp_path / "replies" / debit.hex() for debit in (b"1", b"2"))
        whole = one.read_bytes()
        for broken in (b"", whole[:5], whole[:-1], whole[:-1] + b"x", two.read_bytes()):
            one.write_bytes(broken)
            assert replies.find(b"1") is None
        one.write_bytes(whole)
        assert replies.find(b"1") == b"reply 1"
        replies.drop(b"1")
        replies.drop(b"1")
        assert replies.find(b"1") is None

    def test_a_short_key_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="key must have 32 bytes, got 16"):
            SealedReplies(tmp_path, bytes(16))
