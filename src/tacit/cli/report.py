"""Commands that read results: ``tacit report`` and ``tacit drift``.

``tacit report``: results as a page, a table for a paper, or metadata of a model card.
``tacit drift``: how a model's figures moved between two results.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from tacit.cli.shell import JsonOutput, OutputFile, check_signal, json_option, refuse, show
from tacit.reporting.comparing import Drift
from tacit.reporting.page import report as report_page
from tacit.reporting.tables import TASK, as_csv, as_markdown, model_index
from tacit.results.saved import reading
from tacit.results.text import as_lines

PAGE = "report.html"
WRITTEN = {"html": "Report", "csv": "Table", "md": "Table", "model-index": "Metadata"}
"""What is said of the file of each format."""


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=f"Where to write it; {PAGE} by default, and standard output for other formats.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("html", "csv", "md", "model-index")),
    default="html",
    help="A page; a table of all figures as comma-separated values or Markdown; or YAML for a "
    "model card on the Hugging Face Hub (the extra model-card).",
)
@click.option(
    "--title",
    help="The heading of a page; with model-index the model's name, by default the file's.",
)
@click.option("--task", help=f"model-index: the Hub's name of the task, {TASK} by default.")
def report(
    results: tuple[str, ...],
    output: str | None,
    form: str,
    title: str | None,
    task: str | None,
) -> None:
    """Turn RESULTS into one page that works offline, or into a table.

    RESULTS are what `tacit evaluate --json` prints. A page and a table also take what
    `tacit compare --json` and `tacit evaluate --groups --json` print.

    A report of a result with its exact figure (`tacit evaluate --exact`) must not be passed on.

    Several results are compared with the first one. A result that was changed after it was
    written, that is of another version, or that is about another federation, is refused.

    Examples:
      tacit report result.json
      tacit report old.json new.json -o comparison.html --title "Old model and new"
      tacit report result.json --format md
      tacit report result.json --format csv -o figures.csv
      tacit report result.json --format model-index --title readmission-risk
    """
    if form != "model-index":
        refuse("{} needs --format model-index", {"task": task}, "task")
    if form in {"csv", "md"}:
        refuse(f"{{}} cannot be used with --format {form}", {"title": title}, "title")
    target = PAGE if output is None and form == "html" else output
    file = None if target is None else OutputFile(target)
    if file is not None and any(file.replaces(each) for each in results):
        raise click.UsageError(f"{target} is one of the results, which the output would replace")
    made = _made(form, results, title, task)
    if file is None:
        show(made.rstrip("\n"))
        return
    file.write(made.encode("utf-8"))
    show(f"{WRITTEN[form]}: {file.path}")


def _made(form: str, paths: Sequence[str], title: str | None, task: str | None) -> str:
    """The results in a format."""
    if form == "model-index":
        return model_index(reading.read_documents(paths, reading.Result.of), title, task or TASK)
    documents = reading.read_documents(paths, reading.document_of)
    if form == "html":
        return report_page(documents, title)
    return as_csv(documents) if form == "csv" else as_markdown(documents)


@click.command()
@click.argument("earlier", type=click.Path())
@click.argument("later", type=click.Path())
@json_option
def drift(earlier: str, later: str, output: JsonOutput) -> None:
    """Print how far a model moved from the result EARLIER to LATER, with intervals.

    Both are what `tacit evaluate --json` or `tacit run --json` wrote, of one model in two periods.
    Nothing is spent. Where both have score histograms, calibration and the shift of the scores
    (population stability index, Kolmogorov-Smirnov distance) are there, too. An interval about
    the population that holds zero shows no drift.

    Examples:
      tacit drift old.json new.json

    Exit status:
      0  the drift of the figure has an estimate
      2  an error; one sentence says which
      3  it has none
    """
    drifted = Drift.between(*reading.read_documents((earlier, later), reading.Result.of))
    output.show(drifted.to_dict(), lambda: as_lines(drifted.to_rows(), ()))
    check_signal(drifted.has_signal)
