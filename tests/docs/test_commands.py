"""The quickstarts can be typed: every block runs, in order, and prints what the page shows.

A page's blocks run in one fresh folder, with this environment's commands on the path:

- ```` ```python title="file.py" ```` is saved as that file; one without a title is run,
  and is a doctest where it has ``>>>``.
- ```` ```console ```` holds commands after ``$`` and, below each, what it prints. Every command
  must end with status 0. The shown lines must be the printed ones, blank lines left out, where
  numbers agree with any number, since noise differs from run to run; after the comment
  ``<!-- same figures -->`` they must agree within 10 %, a step of the last digit shown. A line
  ``...`` stands for any lines, and one that ends in ``...`` for all that begin so.
- A block after ``<!-- typed by FILE -->`` takes long and is run by that other test, which must name
  its first command's words.

Of the words shown one hangs on the noise: which model is better. Their difference is nearly five
standard errors, so a false alarm has a probability below 1e-5.

The README can be typed, once there are the files of ten hospitals that it speaks of.
"""

from __future__ import annotations

import doctest
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import tacit
from tests.terminal import typed

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted((DOCS / "start").glob("*.md")), DOCS / "choosing.md"]
EXAMPLES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page not in PAGES and ">>> " in page.read_text(encoding="utf-8")
]
"""Further pages with examples in Python."""

LONG = {"platform", "choosing", "laptop"}
"""Pages whose commands take longest; `make test-thorough` types them."""
TOLERANCE = 0.1

BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]+) -->\n\n)?"
    r"^```(?P<kind>console|python)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
SAME = "same figures"
TYPED = "typed by "
UNTITLED = "untitled.py"


@dataclass(frozen=True)
class Block:
    """One fenced block of a page, and the comment before it."""

    kind: str
    text: str
    title: str | None
    note: str


def blocks(page: str) -> list[Block]:
    """The blocks that are run, in order."""
    return [
        Block(result["kind"], result["text"], result["title"], result["note"] or "")
        for result in BLOCK.finditer(page)
    ]


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Every command with the lines that are shown below it."""
    results: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            results.append((line[2:], []))
        else:
            results[-1][1].append(line)
    return results


def agree(shown: list[str], printed: list[str], same: bool = False) -> bool:
    """Whether lines are the shown ones but for spaces and figures, ``...`` standing for any."""
    text = "".join(f"{' '.join(line.split())}\n" for line in printed)
    found = re.fullmatch("".join(map(_pattern, shown)), text)
    if found is None or not same:
        return found is not None
    figures = [number for line in shown for number in NUMBER.findall(line)]
    return all(map(_near, figures, found.groups()))


def _pattern(line: str) -> str:
    """What agrees with a shown line, with a group for each figure."""
    if line.strip() == "...":
        return "(?:.*\n)*"
    words = " ".join(line.removesuffix("...").split())
    pattern = f"({NUMBER.pattern})".join(map(re.escape, NUMBER.split(words)))
    return f"{pattern}{'.*' if line.endswith('...') else ''}\n"


def _near(shown: str, printed: str) -> bool:
    """Whether figures are one but for rounding; those near 0 are differences, and may vanish."""
    one, other = (float(text.replace(",", "")) for text in (shown, printed))
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-5)


def run(command: str, folder: Path, own_process: bool = False) -> list[str]:
    """What a command prints, line by line; it must succeed."""
    printed = typed(command, folder, own_process)
    return [line for line in printed.splitlines() if line.strip()]


def check(block: Block, folder: Path, own_process: bool = False) -> None:
    """Run one block; commands and programs in this process unless ``own_process``."""
    if block.note.startswith(TYPED):
        _check_typed_elsewhere(block)
    elif block.kind == "python":
        _check_python(block, folder, own_process)
    else:
        for command, lines in commands(block.text):
            shown = [line for line in lines if line.strip()]
            printed = run(command, folder, own_process)
            message = "\n".join([command, *printed])
            assert agree(shown, printed, SAME in block.note), f"the page shows otherwise: {message}"


def _check_python(block: Block, folder: Path, own_process: bool) -> None:
    if block.title is not None:
        (folder / block.title).write_text(block.text, encoding="utf-8")
        return
    if ">>>" not in block.text:
        (folder / UNTITLED).write_text(block.text, encoding="utf-8")
        run(f"python {UNTITLED}", folder, own_process)
        return
    test = doctest.DocTestParser().get_doctest(block.text, {}, "page", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def _check_typed_elsewhere(block: Block) -> None:
    other = (ROOT / block.note.removeprefix(TYPED)).read_text(encoding="utf-8")
    command = commands(block.text)[0][0].split()
    assert all(f'"{word}"' in other for word in command[1:3]), command


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.thorough] if page.stem in LONG else [])
        for page in PAGES
    ],
    ids=lambda page: page.stem,
)
def test_a_quickstart_can_be_typed(page: Path, tmp_path: Path) -> None:
    code_blocks = blocks(page.read_text(encoding="utf-8"))
    assert code_blocks
    for block in code_blocks:
        check(block, tmp_path)


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_is_overlooked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(blocks(text)) == len(re.findall(r"^```(?:console|python)", text, re.MULTILINE))
    notes = [block for block in blocks(text) if block.note]
    assert len(re.findall(r"^<!-- ", text, re.MULTILINE)) == len(notes)


@pytest.mark.parametrize(
    ("shown", "printed", "same", "agreeing"),
    [
        (["AUC  0.79"], ["AUC        0.81"], False, True),
        (["a 1", "...", "b 2"], ["a 3", "x", "y", "b 4"], False, True),
        (["..."], [], False, True),
        (["Use this, which ..."], ["Use this, which hides a label"], False, True),
        (["sent 1,116 bytes"], ["sent 12 bytes"], False, True),
        (["error 0.0100 of 20"], ["error 0.0101 of 20"], True, True),
        (["error 0.0100 of 20"], ["error 0.0114 of 20"], True, False),
        (["AUC  0.79"], ["standard error  0.79"], False, False),
        (["AUC  0.79"], ["AUC  nan"], False, False),
        ([], ["warning: something"], False, False),
        (["a", "..."], ["b", "a"], False, False),
    ],
)
def test_lines_agree_but_for_figures(
    shown: list[str], printed: list[str], same: bool, agreeing: bool
) -> None:
    """And figures that should be the same agree but for rounding."""
    assert agree(shown, printed, same) == agreeing


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nothing here"):
        check(Block("console", "$ echo nothing here; false\n", None, ""), tmp_path)
    with pytest.raises(AssertionError, match="otherwise"):
        check(Block("console", "$ echo two\none\n", None, ""), tmp_path)


README = ROOT / "README.md"
FIRST_SCREEN = 25
"""Lines that a terminal or a page shows first."""
MOST_LINES = 170
"""What can be read in a minute or two, with the tables and the lists of pages."""


def hospitals(folder: Path) -> None:
    random = np.random.default_rng(1)
    for hospital in range(10):
        scores, labels = tacit.binormal_scores(200, 1800, 0.8, seed=hospital)
        order = random.permutation(labels.size)
        table = pa.table({"score": scores[order], "label": labels[order]})
        pa_csv.write_csv(table, folder / f"hospital-{hospital}.csv")


def test_every_command_of_the_readme_can_be_typed(tmp_path: Path) -> None:
    hospitals(tmp_path)
    shown = blocks(README.read_text(encoding="utf-8"))
    assert len(shown) >= 3
    for block in shown:
        check(block, tmp_path)


def test_the_readme_is_short_and_names_what_each_command_needs() -> None:
    """A picture of the report; on the first screen, the commands of a fresh machine."""
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (ROOT / picture).stat().st_size < 120_000
    screen = "\n".join(text.splitlines()[:FIRST_SCREEN])
    commands = "".join(re.findall(r"```sh\n(.*?)```", screen, re.DOTALL))
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ("demo", "test"):
        assert re.search(rf"^make {name}", commands, re.MULTILINE)
        assert re.search(rf"^{name}: (?:setup|\$\(DEMO\))$", rules, re.MULTILINE)
    assert re.search(r"`tacit run`\s+needs `pip install '\.\[federation\]'`", screen)
    assert text.index("*adjacency*") < text.index("record adjacency"), "explained before it is used"
