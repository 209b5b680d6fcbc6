"""What the site changes of the pages, which are written to be read in the repository.

Links that leave ``docs`` go to the repository where ``repo_url`` is set, else only the path is
named. Three documents of the repository's root become pages. Claims get the table of their tests.
Fences that quote a source get its path as a title. Lists are written as on GitHub. Notebooks lose
the scripts that would load others from the network.
"""

from __future__ import annotations

import ast
import posixpath
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any, Protocol

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
BORROWED = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Documents of the root, and the pages that they become."""

CLAIMS = ROOT / "docs" / "threat-models" / "claims.toml"
"""For each page, by its name: each claim, and the tests and commands that check it."""

PACKAGES = "<!-- packages -->"
"""Where the page of the architecture gets the table of packages."""

SOURCES = ROOT / "src" / "tacit"
CLAIMS_LINK = re.compile(r"^\[claims\.toml\]\(\S+\).*$", re.MULTILINE)
FENCED = re.compile(r"^(?P<mark>```|~~~).*?^(?P=mark)[ \t]*$", re.DOTALL | re.MULTILINE)
EXCERPT = re.compile(r"^```(\w+) excerpt (\S+)$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]]+)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]+)?\)")
LIST_AFTER_TEXT = re.compile(r"^((?![-*] |\d+\. |[\s#|>])[^\n]+\n)(?=[-*] |1\. )", re.MULTILINE)
ITEM_GOES_ON = re.compile(r"(?<=\n\n) {2,3}\S.*\n?(?: {2,}\S.*\n?)*(?P<end>(?=[-*] |1\. ))?")
ELSEWHERE = re.compile(r"[a-z]+:")
LOADING = re.compile(
    r"<!-- Load mathjax -->.*?<!-- End of mathjax configuration -->"
    r'|<script type="module">(?:(?!</script>).)*?import\("https?:.*?</script>',
    re.DOTALL,
)
"""What nbconvert puts into every page for formulas and diagrams, of which there are none."""


SECTION = re.compile(
    r'(<nav class="md-nav" data-md-level="\d" )aria-labelledby="\w+"'
    r'([^>]*>\s*<label class="md-nav__title"[^>]*>\s*<span[^>]*></span>\s*)([^<]+?)(?=\s*</label>)'
)
"""A section of the navigation, whose own label is empty where the section has a page."""


class Page(Protocol):
    """What is used of a page of mkdocs."""

    file: File


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are borrowed from the root."""
    for name, page in BORROWED.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, **_: Any) -> str:
    """Rewrite one page."""
    source = page.file.src_uri
    origins = {borrowed: name for name, borrowed in BORROWED.items()}
    place = posixpath.dirname(origins.get(source, f"docs/{source}"))
    depth = posixpath.dirname(source)
    claims = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    text = with_claims(markdown, claims.get(Path(source).stem, {}))
    text = text.replace(PACKAGES, packages_table())
    text = with_lists_apart(EXCERPT.sub(r'```\1 title="\2"', text))
    return with_site_links(text, place, depth, config["repo_url"])


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Take out of a notebook what would load scripts from elsewhere."""
    return LOADING.sub("", html) if page.file.src_uri.endswith(".ipynb") else html


def on_post_page(output: str, **_: Any) -> str:
    """Name what the theme leaves without a name for readers of the screen.

    Examples
    --------
    >>> on_post_page('<div class="md-search" role="dialog">')
    '<div class="md-search" role="dialog" aria-label="Search">'
    """
    named = output.replace('role="dialog">', 'role="dialog" aria-label="Search">')
    return SECTION.sub(r'\1aria-label="\3"\2\3', named)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for pages that no document gives."""
    return on_post_page(output_content)


def with_claims(markdown: str, claims: dict[str, list[str]]) -> str:
    """A page with the table of its claims in place of the link to the file that has them.

    Examples
    --------
    >>> print(with_claims("[claims.toml](claims.toml)", {"It holds": ["tests/test_a.py"]}))
    | Claim | Test or check |
    | --- | --- |
    | It holds | `tests/test_a.py` |
    """
    rows = [
        f"| {claim} | {', '.join(f'`{check}`' for check in checks)} |"
        for claim, checks in claims.items()
    ]
    table = "\n".join(["| Claim | Test or check |", "| --- | --- |", *rows])
    return CLAIMS_LINK.sub(lambda _: table, markdown)


def layers() -> list[list[str]]:
    """The packages and modules of each layer, from the highest down, as imports are checked by."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [
        [name.strip().removeprefix("tacit.") for name in layer.split("|")]
        for layer in contract["layers"]
        if layer != "tacit_studies"
    ]


def packages_table() -> str:
    """The packages and modules of ``tacit`` by layer, each with the first line of its docstring."""
    rows = ["| Layer | Package | Content |", "| --- | --- | --- |"]
    for number, names in zip(range(len(layers()), 0, -1), layers(), strict=True):
        for name in names:
            module = SOURCES / f"{name}.py"
            below = sorted(SOURCES.joinpath(name).rglob("__init__.py"))
            for path in [module] if module.exists() else below:
                place = path.parent if path.name == "__init__.py" else path.with_suffix("")
                shown = place.relative_to(SOURCES).as_posix()
                rows.append(f"| {number} | `{shown}` | {_first_line(path)} |")
    return "\n".join(rows)


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ").replace("``", "`")


def with_lists_apart(markdown: str) -> str:
    """A page with an empty line before every list and items' further paragraphs set in by 4.

    GitHub needs neither, Python-Markdown needs both.

    Examples
    --------
    >>> print(with_lists_apart("Two:\\n- one\\n\\n  and\\n  more\\n- two"))
    Two:
    <BLANKLINE>
    - one
    <BLANKLINE>
        and
        more
    <BLANKLINE>
    - two
    """

    def set_in(block: re.Match[str]) -> str:
        by = 4 - (len(block[0]) - len(block[0].lstrip()))
        return indent(block[0], " " * by) + ("" if block["end"] is None else "\n")

    def rewritten(text: str) -> str:
        return ITEM_GOES_ON.sub(set_in, LIST_AFTER_TEXT.sub(r"\1\n", text))

    return _outside_fences(markdown, rewritten)


def with_site_links(markdown: str, place: str, depth: str, repository: str | None) -> str:
    """A page's text with links that hold in the site.

    Parameters
    ----------
    markdown : the page; fenced blocks are left alone.
    place : the folder of its source, from the repository's root.
    depth : the folder of its page, from the site's root.
    repository : the repository's address, if there is one.

    Examples
    --------
    >>> with_site_links("See [the plan](../src/plan.py).", "docs", "", None)
    'See the plan (`src/plan.py`).'
    >>> with_site_links("See [here](docs/plan.md#how).", "", "", None)
    'See [here](plan.md#how).'
    """

    def rewritten(link: re.Match[str]) -> str:
        if ELSEWHERE.match(link["target"]):
            return link[0]
        path = posixpath.normpath(posixpath.join(place, link["target"]))
        page = BORROWED.get(path) or _inside_docs(path)
        anchor = link["anchor"] or ""
        if page is not None:
            return f"[{link['text']}]({posixpath.relpath(page, depth or '.')}{anchor})"
        if repository:
            return f"[{link['text']}]({repository.rstrip('/')}/blob/main/{path}{anchor})"
        return _named(link["text"], path)

    return _outside_fences(markdown, lambda text: LINK.sub(rewritten, text))


def _inside_docs(path: str) -> str | None:
    """A source's page. A folder has none; a page that is missing is left for mkdocs to find."""
    if not path.startswith("docs/") or (ROOT / path).is_dir():
        return None
    return path.removeprefix("docs/")


def _named(text: str, path: str) -> str:
    """A path in place of a link to it."""
    return f"`{path}`" if path.endswith(text.strip("`")) else f"{text} (`{path}`)"


def _outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    parts = []
    end = 0
    for fence in FENCED.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])
