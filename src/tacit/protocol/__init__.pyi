"""What a protocol's author imports, and where it is."""

from .conversation import (
    ClientState,
    Conversation,
    Field,
    Lasting,
    Layout,
    Protocol,
    Query,
    Reply,
    Step,
    View,
    step,
    unshared,
)
from .declarations.audits import AttackSizes, AuditCase, AuditTrial, Guesses, SelfTestCases
from .declarations.defaults import Declarations
from .declarations.forecast import Family, Forecast, Planning, accepted
from .declarations.laws import ErrorCase, LawTraits
from .declarations.metric import AUC, Metric
from .declarations.scenario import Scenario, Shape
from .declarations.threats import ThreatModel
from .declarations.traffic import (
    Round,
    Traffic,
    measured_forecast,
    measured_traffic,
    traffic_of_rounds,
)
from .declarations.trust import Trust
from .foundations import (
    NOTHING,
    UNPROTECTED,
    Adjacency,
    Clients,
    Cost,
    Curve,
    DataError,
    Figure,
    Histogram,
    NoiseSource,
    NoNoise,
    Ragged,
    RandomisedResponse,
    ServerResult,
    SimulatedNoise,
    SystemNoise,
    check_budget,
)
from .mpc import MPCProgram, Peers, SharedRun
from .registry import SettingError, kind_of, protocol_names, protocol_of, register
from .releases import Released, Sums, ask, by_view, release
from .settings.choices import Choice
from .settings.declaring import EPSILON, setting
from .settings.scaled import ScaledScores, scale_setting
from .settings.score_range import UNIT_INTERVAL, check_scores_in_unit_interval
from .settings.trusts import Each, ExactSum, Local, SecureSum, trust_setting

__all__ = [
    "AUC",
    "EPSILON",
    "NOTHING",
    "UNIT_INTERVAL",
    "UNPROTECTED",
    "Adjacency",
    "AttackSizes",
    "AuditCase",
    "AuditTrial",
    "Choice",
    "ClientState",
    "Clients",
    "Conversation",
    "Cost",
    "Curve",
    "DataError",
    "Declarations",
    "Each",
    "ErrorCase",
    "ExactSum",
    "Family",
    "Field",
    "Figure",
    "Forecast",
    "Guesses",
    "Histogram",
    "Lasting",
    "LawTraits",
    "Layout",
    "Local",
    "MPCProgram",
    "Metric",
    "NoNoise",
    "NoiseSource",
    "Peers",
    "Planning",
    "Protocol",
    "Query",
    "Ragged",
    "RandomisedResponse",
    "Released",
    "Reply",
    "Round",
    "ScaledScores",
    "Scenario",
    "SecureSum",
    "SelfTestCases",
    "ServerResult",
    "SettingError",
    "Shape",
    "SharedRun",
    "SimulatedNoise",
    "Step",
    "Sums",
    "SystemNoise",
    "ThreatModel",
    "Traffic",
    "Trust",
    "View",
    "accepted",
    "ask",
    "by_view",
    "check_budget",
    "check_scores_in_unit_interval",
    "kind_of",
    "measured_forecast",
    "measured_traffic",
    "protocol_names",
    "protocol_of",
    "register",
    "release",
    "scale_setting",
    "setting",
    "step",
    "traffic_of_rounds",
    "trust_setting",
    "unshared",
]
