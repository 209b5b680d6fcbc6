"""``tacit plan``: what every protocol would give, before anything is spent."""

from __future__ import annotations

from typing import Any

import click

from tacit.cli.record_options import PerPerson
from tacit.cli.setting_options import Spelled
from tacit.cli.shell import JsonOutput, check_signal, json_option
from tacit.planning.planner import plan as make_plan
from tacit.protocol import forecast
from tacit.protocol.trust import Trust, trust_words


@click.command()
@click.option("--records", type=int, required=True, help="All clients' records together.")
@click.option(
    "--positives",
    type=int,
    help="How many are positive; a guess will do. Needed without --classes.",
)
@click.option(
    "--classes",
    type=click.IntRange(min=2),
    metavar="C",
    help="Plan the mean AUC of C classes, each with a score; --positives are then the records of "
    "one class, by default equally many of each.",
)
@click.option("--clients", type=int, required=True, help="How many clients hold them.")
@click.option("--epsilon", type=float, required=True, help="The privacy budget of an evaluation.")
@click.option(
    "--per-person",
    type=PerPerson(),
    metavar="K",
    help="Epsilon is a person's, of whom at most K records count at a client; --records are those "
    "that count.",
)
@click.option(
    "--trust",
    type=Spelled(trust_words()),
    metavar=f"[{'|'.join(trust.value for trust in Trust)}]",
    help="Who may see what; see below. By default secure-sum for up to 1,000 clients, and "
    "local for more.",
)
@click.option("--auc-guess", type=float, help="The AUC to expect; without one, 0.65 to 0.9.")
@click.option(
    "--want",
    metavar="FIGURE [within X]",
    help="A figure, and how far the ends of its 95 % interval may lie from it, as 'auc within "
    "0.02', 'net benefit at 0.2 within 0.002', 'sensitivity at 0.5 within 0.03' or 'calibration "
    "slope'. By default the AUC, and in a table of its own other figures.",
)
@json_option
def plan(
    positives: int | None,
    classes: int | None,
    per_person: int | None,
    want: str | None,
    output: JsonOutput,
    **asked: Any,
) -> None:
    """Predict every fitting protocol's error and traffic, and recommend one. Nothing is spent.

    Epsilon hides different things in different protocols; the plan says what, and puts protocols
    that hide whole records first.

    Examples:
      tacit plan --records 40000 --positives 4000 --clients 10 --epsilon 1
      tacit plan --records 4000 --positives 400 --clients 4000 --epsilon 1 --want "auc within 0.05"
      tacit plan --records 9000 --positives 900 --clients 9 --epsilon 1 --trust local --want auc
      tacit plan --records 4000 --positives 400 --clients 10 --trust encrypted --epsilon 1 --json
      tacit plan --records 9000 --classes 3 --clients 9 --epsilon 1 --trust encrypted

    Trust:
      each                the server may see each client's counts, with noise that the client
                          itself added; no party adds noise for another
      server-sees-scores  the server may know all scores, and no label
      local               no party is trusted: each record's report is private
      secure-sum          the server sees sums over the clients only
      exact-sum           the same without noise: there is no differential privacy
      encrypted           the aggregator computes on encrypted counts
      mpc                 clients compute together, by cryptography

    Exit status:
      0  a protocol is recommended
      2  an error; one sentence says which
      3  no protocol is feasible
    """
    if positives is None and classes is None:
        raise click.UsageError("Missing option '--positives'.")
    metric, target = (None, None) if want is None else forecast.wanted(want)
    asked |= {"classes": classes, "per_person": per_person or 0, "metric": metric, "target": target}
    made = make_plan(positives=positives, **asked)
    output.show(made.to_dict(), lambda: str(made))
    check_signal(made.recommended is not None)
