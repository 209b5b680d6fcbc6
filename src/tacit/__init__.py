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
from tacit.data.groups import Groups
from tacit.data.reading import read, read_with_groups
from tacit.data.rescaling import rescale
from tacit.data.splitting import binormal_scores, resample_scores
from tacit.planning.planner import plan
from tacit.privacy.cost import Adjacency, Cost, compose
from tacit.privacy.ledger import BudgetError, Ledger
from tacit.protocols.allocation import Release
from tacit.protocols.baselines import ExactAUC, NoisyScores
from tacit.protocols.compared_auc import ComparedAUC
from tacit.protocols.conversation import Memory, Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.encrypted_auc import EncryptedAUC
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.hierarchical_auc import HierarchicalAUC
from tacit.protocols.paired_ustatistic import PairedUStatistic
from tacit.protocols.score_histogram import ScoreHistogram
from tacit.protocols.two_round_auc import TwoRoundAUC
from tacit.protocols.ustatistic import UStatistic
from tacit.results.calibrator import Calibrator
from tacit.results.comparison import Comparison
from tacit.results.estimate import Estimate, Interval
from tacit.results.evaluation import Evaluation
from tacit.results.grouped import GroupedEvaluation
from tacit.results.histogram import Histogram
from tacit.running.comparing import compare
from tacit.running.evaluating import evaluate, repeat
from tacit.running.grouping import evaluate_groups
from tacit.running.rehearsal import Fault, rehearse

__version__ = "0.1.0"

__all__ = [
    "DPAUC",
    "Adjacency",
    "BudgetError",
    "Calibrator",
    "Clients",
    "ComparedAUC",
    "Comparison",
    "Cost",
    "DataError",
    "EncryptedAUC",
    "Estimate",
    "Evaluation",
    "ExactAUC",
    "Fault",
    "FedAUC",
    "GroupedEvaluation",
    "Groups",
    "HierarchicalAUC",
    "Histogram",
    "Interval",
    "Ledger",
    "Memory",
    "NoisyScores",
    "PairedUStatistic",
    "Protocol",
    "Release",
    "ScoreHistogram",
    "TwoRoundAUC",
    "UStatistic",
    "binormal_scores",
    "compare",
    "compose",
    "evaluate",
    "evaluate_groups",
    "plan",
    "read",
    "read_with_groups",
    "rehearse",
    "repeat",
    "resample_scores",
    "rescale",
]
