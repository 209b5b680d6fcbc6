"""Noise mechanisms: each object owns its cost, its variance, its privacy loss and its sampling.

The stub next to this file lists the public names; each is imported when it is first used.

Examples
--------
>>> from tacit.privacy.mechanisms import DiscreteLaplace
>>> float(DiscreteLaplace(sensitivity=2, epsilon=0.5).scale)
4.0
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
