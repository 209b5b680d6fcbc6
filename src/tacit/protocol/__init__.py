"""What everyone who writes a protocol imports: queries, steps, forecasts, messages.

The stub next to this file lists the public names; each is imported when it is first used.

Examples
--------
>>> from tacit.protocol import View
>>> View.SUM.value
'sum'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
