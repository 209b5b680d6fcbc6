"""What the package offers, and where it is; a name is imported when it is first used."""

from .api import evaluate
from .data.categories import Groups
from .data.check import check_files
from .data.clients import Clients
from .data.errors import DataError
from .data.form import FileForm
from .data.reading import read, read_with_groups
from .data.scales import ScaleWarning, rescale
from .data.splitting import binormal_scores, resample_scores
from .ledger.entries import BudgetError
from .ledger.ledger import Ledger
from .local.hierarchical.protocol import HierarchicalAUC
from .local.paired.protocol import PairedUStatistic
from .local.two_round.protocol import TwoRoundAUC
from .local.ustatistic.protocol import UStatistic
from .outcomes.bounded import BoundedMean
from .outcomes.regression import RegressionError
from .outcomes.survival.protocol import TimeToEvent
from .planning.planner import plan
from .privacy.cost import Adjacency, Cost, compose
from .protocol.conversation import Protocol
from .protocol.steps import ClientState
from .protocols.baselines import ExactAUC
from .protocols.dpauc import DPAUC
from .protocols.encrypted.classes import EncryptedClassAUC
from .protocols.encrypted.protocol import EncryptedAUC
from .protocols.fedauc.comparing import ComparedAUC
from .protocols.fedauc.protocol import FedAUC
from .protocols.histogram.grouped import GroupedHistogram
from .protocols.histogram.protocol import ScoreHistogram
from .protocols.missing import MissingRecords
from .protocols.multiclass.protocol import MulticlassHistogram
from .protocols.published.calibration import PublishedHistogram
from .protocols.published.dpauc import PublishedDPAUC
from .protocols.published.fedauc import PublishedFedAUC, PublishedResponseAUC
from .protocols.published.fhe.protocol import FheAUC
from .protocols.published.noisy_scores import NoisyScores
from .protocols.published.ustatistics import PublishedHierarchicalAUC, PublishedUStatistic
from .results.curves.calibrator import Calibrator
from .results.curves.histogram import Histogram
from .results.displays import CalibrationDisplay, RocCurveDisplay
from .results.estimate import Estimate, Interval
from .results.evaluation import Evaluation
from .results.several import Comparison, GroupedEvaluation
from .running.evaluating import repeat
from .running.several import compare, evaluate_groups
from .testing.rehearsal import Fault, rehearse

__all__ = [
    "DPAUC",
    "Adjacency",
    "BoundedMean",
    "BudgetError",
    "CalibrationDisplay",
    "Calibrator",
    "ClientState",
    "Clients",
    "ComparedAUC",
    "Comparison",
    "Cost",
    "DataError",
    "EncryptedAUC",
    "EncryptedClassAUC",
    "Estimate",
    "Evaluation",
    "ExactAUC",
    "Fault",
    "FedAUC",
    "FheAUC",
    "FileForm",
    "GroupedEvaluation",
    "GroupedHistogram",
    "Groups",
    "HierarchicalAUC",
    "Histogram",
    "Interval",
    "Ledger",
    "MissingRecords",
    "MulticlassHistogram",
    "NoisyScores",
    "PairedUStatistic",
    "Protocol",
    "PublishedDPAUC",
    "PublishedFedAUC",
    "PublishedHierarchicalAUC",
    "PublishedHistogram",
    "PublishedResponseAUC",
    "PublishedUStatistic",
    "RegressionError",
    "RocCurveDisplay",
    "ScaleWarning",
    "ScoreHistogram",
    "TimeToEvent",
    "TwoRoundAUC",
    "UStatistic",
    "binormal_scores",
    "check_files",
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
