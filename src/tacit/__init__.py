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

from tacit.data.clients import Clients, DataError
from tacit.data.reading import read
from tacit.data.rescaling import rescale
from tacit.data.splitting import binormal_scores, resample_scores
from tacit.privacy.cost import Adjacency, Cost, compose
from tacit.protocols.allocation import Release
from tacit.protocols.baselines import ExactAUC, NoisyScores
from tacit.protocols.conversation import Memory, Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.encrypted_auc import EncryptedAUC
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.hierarchical_auc import HierarchicalAUC
from tacit.protocols.score_histogram import ScoreHistogram
from tacit.protocols.two_round_auc import TwoRoundAUC
from tacit.protocols.ustatistic import UStatistic
from tacit.results.calibrator import Calibrator
from tacit.results.estimate import Estimate, Interval
from tacit.results.evaluation import Evaluation
from tacit.results.histogram import Histogram
from tacit.running.evaluating import evaluate, repeat

__version__ = "0.1.0"

__all__ = [
    "DPAUC",
    "Adjacency",
    "Calibrator",
    "Clients",
    "Cost",
    "DataError",
    "EncryptedAUC",
    "Estimate",
    "Evaluation",
    "ExactAUC",
    "FedAUC",
    "HierarchicalAUC",
    "Histogram",
    "Interval",
    "Memory",
    "NoisyScores",
    "Protocol",
    "Release",
    "ScoreHistogram",
    "TwoRoundAUC",
    "UStatistic",
    "binormal_scores",
    "compose",
    "evaluate",
    "read",
    "repeat",
    "resample_scores",
    "rescale",
]
