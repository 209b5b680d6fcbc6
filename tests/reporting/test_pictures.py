"""Pictures: where things lie in them."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as Tree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.reporting.page import environment
from tacit.reporting.pictures import LEFT, SIDE, TOP, Graph, IntervalBar, Series
from tacit.results.estimate import Estimate, Interval

RATES = st.floats(0, 1)


LINE = [(0.0, 0.0), (0.25, 0.5), (1.0, 1.0)]


def svg_of(*series: Series) -> str:
    texts = "A <title>", 'A "description"', "across", "up"
    return drawn("graph", Graph("p", *texts, series, "a caption", ()))


def drawn(macro: str, picture: Graph | IntervalBar) -> str:
    """A picture as its template draws it."""
    return str(getattr(environment().get_template("charts.html").module, macro)(picture))


def parsed(svg: str) -> Tree.Element:
    return Tree.fromstring(svg.strip())  # noqa: S314


def points(path: str) -> list[tuple[float, float]]:
    """The points of a path, back in rates."""
    result = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)
    return [((float(x) - LEFT) / SIDE, 1 - (float(y) - TOP) / SIDE) for x, y in result]


def of_class(svg: str, name: str) -> list[Tree.Element]:
    return [element for element in parsed(svg).iter() if element.get("class") == name]


@given(st.lists(st.tuples(RATES, RATES), min_size=2, max_size=8))
def test_a_line_goes_through_its_points(line: list[tuple[float, float]]) -> None:
    (path,) = of_class(svg_of(Series("line", "", line)), "line")
    for result, expected in zip(points(str(path.get("d"))), line, strict=True):
        assert result == pytest.approx(expected, abs=0.06 / SIDE)


def test_a_band_runs_along_its_lower_edge_and_back_along_the_upper() -> None:
    lower, upper = [(0.0, 0.1), (1.0, 0.8)], [(0.0, 0.3), (1.0, 0.9)]
    (path,) = of_class(svg_of(Series("line", "", LINE, lower, upper)), "band line")
    expected = [*lower, *reversed(upper)]
    for result, one in zip(points(str(path.get("d"))), expected, strict=True):
        assert result == pytest.approx(one, abs=1e-3)


def test_scattered_points_have_a_bar_each_and_no_line() -> None:
    line = [(0.2, 0.3), (0.5, 0.4)]
    ends = [(0.2, 0.1), (0.5, 0.2)], [(0.2, 0.6), (0.5, 0.7)]
    svg = svg_of(Series("dots", "", line, *ends))
    assert len(of_class(svg, "dot")) == 2
    assert of_class(svg, "line") == []
    (bars,) = of_class(svg, "whiskers")
    assert str(bars.get("d")).count("M") == 2


def test_a_picture_says_what_it_is() -> None:
    svg = parsed(svg_of(Series("line", "", LINE)))
    names = str(svg.get("aria-labelledby")).split()
    said = {element.get("id"): element.text for element in svg.iter() if element.get("id")}
    assert [said[name] for name in names] == ["A <title>", 'A "description"']
    assert svg.get("role") == "img"


@given(
    st.floats(-5, 5), st.floats(0, 3), st.floats(0, 3), st.booleans(), st.sampled_from([0, 1e-7, 1])
)
def test_an_interval_bar_holds_all_it_shows(
    value: float, inner: float, outer: float, marked: bool, width: float
) -> None:
    low, high = value - inner * width, value + inner * width
    wide = (low - outer * width, high + outer * width)
    intervals = Interval(low, high), Interval(*wide)
    estimate = Estimate(value, 0, 0, intervals=intervals)
    exact = value if marked else math.nan
    svg = drawn("interval_bar", IntervalBar("b", "A bar", [("", estimate)], exact))
    assert len(of_class(svg, "exact")) == marked
    (axis,) = of_class(svg, "axis")
    left, right = (float(x) for x in re.findall(r"[\d.]+", str(axis.get("d")))[::2])
    (dot,) = of_class(svg, "value")
    assert left <= float(str(dot.get("cx"))) <= right
    for kind in ("population", "records"):
        (bar,) = of_class(svg, kind)
        start, _, end = (float(x) for x in re.findall(r"-?[\d.]+", str(bar.get("d"))))
        assert left - 0.1 <= start <= float(str(dot.get("cx"))) + 0.1 <= end + 0.2 <= right + 0.3
