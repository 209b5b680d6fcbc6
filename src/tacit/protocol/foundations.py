"""Names of lower packages that a protocol's author needs, so that one import has them all."""

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.ragged import Ragged
from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise
from tacit.results.curves.curve import Curve
from tacit.results.curves.histogram import Histogram
from tacit.results.figure import Figure
from tacit.results.server_result import ServerResult
