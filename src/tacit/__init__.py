"""tacit: measure a binary classifier on data that several parties may not show each other.

Examples
--------
>>> import tacit
>>> scores, labels = tacit.binormal_scores(positives=3000, negatives=7000, auc=0.8, seed=0)
>>> clients = tacit.Clients.split(scores, labels, clients=5, seed=0)
>>> result = tacit.evaluate(clients, tacit.FedAUC(epsilon=1.0), seed=1)
>>> result.spent.epsilon
1.0
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
