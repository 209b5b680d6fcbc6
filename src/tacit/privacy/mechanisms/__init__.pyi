"""The mechanisms and what else a noise source draws, and where it is."""

from .choices import Bits, Choices, UniformIntegers
from .gaussian import DiscreteGaussian, Gaussian, Normal
from .interface import Distribution, Mechanism
from .laplace import DiscreteLaplace, Laplace, PolyaShare
from .response import RandomisedResponse
from .staircase import ContinuousStaircase, Staircase
from .together import Together

__all__ = [
    "Bits",
    "Choices",
    "ContinuousStaircase",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Distribution",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Normal",
    "PolyaShare",
    "RandomisedResponse",
    "Staircase",
    "Together",
    "UniformIntegers",
]
