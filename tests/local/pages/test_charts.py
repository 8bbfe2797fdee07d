from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.statistics import Interval
from seer_otel.local.pages import charts
from seer_otel.local.pages.charts import Point

share = st.one_of(st.none(), st.floats(-1, 2, allow_nan=False))


def numbers(svg: str, tag: str, attribute: str) -> list[str]:
    """The values of an attribute of all elements of a tag."""
    return [found.attrib[attribute] for found in ET.fromstring(svg).iter() if found.tag == tag]


def test_an_interval_bar() -> None:
    """The bar ends at the share, the whisker's ends at the interval's."""
    svg = charts.interval_bar(0.5, Interval(0.25, 0.75), width=101)
    assert numbers(svg, "rect", "width") == ["100", "50"]
    assert numbers(svg, "path", "d") == ["M25.8 5H75.2M25.8 2V8M75.2 2V8"]
    assert numbers(charts.interval_bar(None), "rect", "width") == ["159"]


def test_a_share_bar() -> None:
    """It is full to the share, and empty where there is nothing."""
    assert numbers(charts.share_bar(1, 4, 81), "rect", "width") == ["80", "20"]
    assert numbers(charts.share_bar(0, 0, 81), "rect", "width") == ["80", "0"]


def test_gaps() -> None:
    """A line breaks where there is no value, and a value between two gaps is a dot."""
    svg = charts.trend([Point(0, 0.5), Point(1, 0.5), Point(3, 0.5)], 6, "Recall")
    lines = [d for d in numbers(svg, "path", "d") if "H" not in d]
    assert lines == ["M50 75L150 75"]
    assert numbers(svg, "circle", "cx") == ["350"]


def test_a_band_ends_where_intervals_do() -> None:
    """A band covers neighbouring points that have an interval, upper ends forth and lower ends back."""
    interval = Interval(0.0, 1.0)
    svg = charts.trend([Point(0, 0.5, interval), Point(1, 0.5, interval), Point(2, 0.5)], 3, "Recall")
    assert [d for d in numbers(svg, "path", "d") if d.endswith("Z")] == ["M100 8L300 8L300 142L100 142Z"]


def test_a_label_is_escaped() -> None:
    """A text from outside stays a text."""
    svg = charts.sparkline([1, 2], '"><script>')
    assert "<script" not in svg
    assert ET.fromstring(svg).attrib["aria-label"] == '"><script>'


@given(st.lists(st.tuples(share, share, share), max_size=8))
def test_all_charts_are_well_formed(values: list[tuple[float | None, float | None, float | None]]) -> None:
    """Whatever the values, the SVG is well-formed, holds no style attribute, and keeps within its box."""
    points = [
        Point(x, value, None if low is None or high is None else Interval(low, high))
        for x, (value, low, high) in enumerate(values)
    ]
    drawn = [
        charts.trend(points, len(values), "label"),
        charts.sparkline([point.value for point in points], "label"),
    ]
    drawn += [charts.interval_bar(point.value, point.interval) for point in points]
    for svg in drawn:
        root = ET.fromstring(svg)
        width, height = (float(text) for text in root.attrib["viewBox"].split()[2:])
        assert "style" not in svg
        for element in root.iter():
            for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", element.attrib.get("d", "")):
                assert 0 <= float(x) <= width
                assert 0 <= float(y) <= height
