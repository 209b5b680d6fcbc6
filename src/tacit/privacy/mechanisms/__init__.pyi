"""The mechanisms and what else a noise source draws, and where it is."""

from .gaussian import DiscreteGaussian, Gaussian, Normal
from .interface import Distribution, Mechanism, Together
from .laplace import DiscreteLaplace, Laplace, PolyaShare, Staircase
from .response import Bits, Choices, RandomisedResponse, UniformIntegers

__all__ = [
    "Bits",
    "Choices",
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
