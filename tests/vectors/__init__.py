"""Golden messages of every format, in the JSON files of this folder.

A file holds valid messages with their fields, from which another implementation can be written and
tested, and invalid ones, each with a part of the error. A change of a file is a change of its
format, which needs another version in the header.
"""

import json
from pathlib import Path
from typing import Any


def vectors(name: str) -> dict[str, Any]:
    """The content of a file."""
    return json.loads(Path(__file__).with_name(f"{name}.json").read_bytes())
