"""Writes every file of vectors anew."""

import json
from pathlib import Path

from tests.vectors.making import FILES

for name, made in FILES.items():
    path = Path(__file__).with_name(f"{name}.json")
    path.write_text(json.dumps(made(), indent=1) + "\n", encoding="utf-8")
