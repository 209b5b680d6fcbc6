"""Tools to test a protocol of any package: laws, and rehearsals with faults.

The stub next to this file lists the public names; each is imported when it is first used. Under
pytest a broken law shows the values of its assertion.

Examples
--------
>>> from tacit.testing import Fault
>>> Fault("drop", party=2, round=0).way
'up'
"""

import sys

import lazy_loader

pytest = sys.modules.get("pytest")
if pytest is not None:
    pytest.register_assert_rewrite("tacit.testing.checks", "tacit.testing.recording")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
