"""Keys are written into a plan's text, and nothing else in it changes."""

from __future__ import annotations

import tomllib

import pytest

from tacit.cli.federation.inviting import plan_text
from tacit.running.deployment.inviting import with_coordinator, with_party
from tacit.running.session.toml_source import PlanError

KEY, OTHER = b"\1" * 32, b"\2" * 32


def test_a_new_plan_gets_all_its_keys_and_keeps_its_comments() -> None:
    before = plan_text("study", {"a": None, "b": None})
    text = with_party(with_party(with_coordinator(before, KEY), "b", OTHER), "c", b"\3" * 32)
    content = tomllib.loads(text)
    assert content["plan"]["coordinator"] == KEY.hex()
    assert [(party["name"], party.get("key")) for party in content["party"]] == [
        ("a", None),
        ("b", OTHER.hex()),
        ("c", (b"\3" * 32).hex()),
    ]
    comments = [line for line in before.splitlines() if line.startswith("#")]
    kept = set(text.splitlines())
    gone = [line for line in comments if line not in kept]
    assert all("key" in line for line in gone), gone


@pytest.mark.parametrize(
    ("text", "line", "there"),
    [
        ('[[party]]\nkey = "x"\nname = "a"\n[[party]]\nname = "b"\n', 1, True),
        ('[[party]] # one\nname = "a"\n  # key = "..."\n', 2, True),
        ('[[party]]\nname = "b"\n[[party]]\n"name" = """\na"""\n# more\n[x]\n', 3, False),
    ],
)
def test_a_key_is_replaced_where_it_stands_or_put_after_the_header(
    text: str, line: int, there: bool
) -> None:
    lines = text.splitlines()
    lines[line : line + there] = [f'key = "{KEY.hex()}"']
    assert with_party(text, "a", KEY).splitlines() == lines


@pytest.mark.parametrize("text", ['party = [{name = "a"}]\n', '[[ party ]]\nname = "a"\n'])
def test_lines_that_are_not_understood_are_left_to_a_person(text: str) -> None:
    with pytest.raises(PlanError, match="by hand"):
        with_party(text, "a", KEY)


def test_a_plan_needs_its_table() -> None:
    with pytest.raises(PlanError, match="by hand"):
        with_coordinator('plan = {name = "x"}\n', KEY)
