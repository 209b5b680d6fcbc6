"""Make the synthetic records of the three clinics again: python make_records.py [FOLDER]."""

import sys
from pathlib import Path

import numpy as np
from numpy.random import Generator, default_rng

CLINICS = {"a": 400, "b": 420, "c": 380}
"""Records."""

CLASSES, SHARES = ("bacterial", "viral", "healthy"), (0.3, 0.3, 0.4)
WARDS = ("day", "night")
HEADER = "p_bacterial,p_viral,p_healthy,diagnosis,score,label,ward"


def row(random: Generator) -> str:
    """A probability of each class, the class, and for the first class score and label; a ward."""
    diagnosis = random.choice(3, p=SHARES)
    evidence = random.normal(1.2 * (np.arange(3) == diagnosis), 1.0)
    parts = np.exp(evidence) / np.exp(evidence).sum()
    ward = WARDS[int(random.random() < 0.4)]
    shown = ",".join(f"{part:.4f}" for part in parts)
    return f"{shown},{CLASSES[diagnosis]},{parts[0]:.4f},{int(diagnosis == 0)},{ward}"


def main(folder: Path) -> None:
    """Write ``records.csv`` into the folder of every clinic."""
    for seed, (name, size) in enumerate(CLINICS.items()):
        random = default_rng(seed)
        rows = [row(random) for _ in range(size)]
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "records.csv").write_text(
            "\n".join([HEADER, *rows]) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
