"""What the package offers, and where it is; a name is imported when it is first used."""

from .data.clients import Clients, DataError
from .data.file_units import ScaleWarning
from .data.groups import Groups
from .data.reading import read, read_with_groups
from .data.rescaling import rescale
from .data.splitting import binormal_scores, resample_scores
from .planning.planner import plan
from .privacy.cost import Adjacency, Cost, compose
from .privacy.ledger import BudgetError, Ledger
from .protocols.allocation import Release
from .protocols.baselines import ExactAUC, NoisyScores
from .protocols.compared_auc import ComparedAUC
from .protocols.conversation import Memory, Protocol
from .protocols.dpauc import DPAUC
from .protocols.encrypted_auc import EncryptedAUC
from .protocols.fedauc import FedAUC
from .protocols.hierarchical_auc import HierarchicalAUC
from .protocols.paired_ustatistic import PairedUStatistic
from .protocols.score_histogram import ScoreHistogram
from .protocols.two_round_auc import TwoRoundAUC
from .protocols.ustatistic import UStatistic
from .results.calibrator import Calibrator
from .results.comparison import Comparison
from .results.estimate import Estimate, Interval
from .results.evaluation import Evaluation
from .results.grouped import GroupedEvaluation
from .results.histogram import Histogram
from .running.comparing import compare
from .running.evaluating import evaluate, repeat
from .running.grouping import evaluate_groups
from .running.rehearsal import Fault, rehearse

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
    "ScaleWarning",
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

__version__: str
