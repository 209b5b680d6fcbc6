"""Prints how often intervals of classes and groups cover, for a number of records."""

from __future__ import annotations

import sys

import tacit
from tests.classified import CLASSES, GROUPS, class_clients, coverages, group_clients
from tests.protocols.multiclass.test_protocol import exact_aucs
from tests.protocols.multiclass.test_protocol import figures as class_figures
from tests.protocols.private_groups.test_protocol import exact_figures
from tests.protocols.private_groups.test_protocol import figures as group_figures

RUNS = 200


def main(records: int, runs: int = RUNS) -> None:
    """Measure the coverage at epsilon 1 and 10 clients.

    Parameters
    ----------
    records : of all clients.
    runs : with independent noise.
    """
    several = class_clients(records)
    protocol = tacit.MulticlassHistogram(epsilon=1.0, classes=CLASSES)
    aucs = exact_aucs(several)
    found = coverages(several, protocol, lambda r: class_figures(several, aucs, r), runs)
    grouped = group_clients(records)
    by_group = tacit.GroupedHistogram(epsilon=1.0, group_names=GROUPS)
    rates = [exact_figures(grouped, group) for group in range(len(GROUPS))]
    of_groups = coverages(grouped, by_group, lambda r: group_figures(rates, r), runs)
    for kind, covered in (("class", found), ("group", of_groups)):
        for name, each in covered.items():
            sys.stdout.write(f"{kind:6} {name:26} {100 * each:.1f} %\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
