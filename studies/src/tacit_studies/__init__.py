"""Measures every table and figure of the papers again, beside the printed numbers.

Examples
--------
>>> import tacit_studies
>>> scores = tacit_studies.Scores()
>>> rows = tacit_studies.TABLES["fedauc-figure-8"].measure(scores, seed=0)
>>> rows[0].row, rows[0].column, rows[0].paper
('IID', 'percentile 0', None)
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
