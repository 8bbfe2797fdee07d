from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from seer_otel.local.pages import figures
from seer_otel.local.pages.choices import evaluators
from seer_otel.local.pages.filters import Filters
from seer_otel.local.schema import parse
from seer_otel.local.storage import tables
from seer_otel.local.storage.tables import State

from .filling import NOW

if TYPE_CHECKING:
    from .conftest import Site

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOSTILE = "<script>alert(1)</script>\"'&"


def card(page: str, title: str) -> str:
    """The text of the card with this title."""
    found = re.search(rf"<h3>{title}</h3>(.*?)</article>", page, re.DOTALL)
    assert found is not None, title
    return " ".join(html.unescape(re.sub("<svg.*?</svg>|<[^>]*>", " ", found[1], flags=re.DOTALL)).split())


def fill(site: Site, values: list[float], at: timedelta, metric: str = "recall") -> None:
    """Add a trace for each value, that long before NOW."""
    for value in values:
        site.filling.trace("question", NOW - at, {metric: value})


def test_a_store_without_events(site: Site) -> None:
    """It shows a first event with this server's own address, whose body the backend accepts."""
    page = html.unescape(site.get("/"))
    assert f"export SEER_INGESTION_URL={site.url}/v1/log" in page
    found = re.search(
        rf"curl -s {site.url}/v1/log -H 'Content-Type: application/json' -d '(.*?)'<", page, re.DOTALL
    )
    assert found is not None
    assert parse(found[1].encode()).sample_rate == 1.0
    program = re.search(r"python -c '(.*?)'<", page, re.DOTALL)
    assert program is not None
    compile(program[1], "<page>", "exec")
    assert f'"{site.url}/v1/log"' in program[1]


def test_the_address_is_escaped(site: Site) -> None:
    """The Host header stands in the page as text."""
    assert "<script>alert" not in site.client.get("/", headers={"Host": '"><script>alert(1)</script>'}).text


def test_a_card(site: Site) -> None:
    """Mean, 95 % interval and n of the period, and the change against the period before, said to be noise or not."""
    fill(site, [1.0] * 30 + [0.5] * 10, HOUR)
    fill(site, [0.5] * 40, 8 * DAY)
    site.filling.write(site.engine)
    page = site.get("/")
    assert re.fullmatch(r"87.5% 95% interval 8\d\.\d.9\d\.\d% · n 40 ▲ \+37.5 points", card(page, "Recall"))
    assert re.fullmatch(
        r"25.0% 95% interval 14\.\d.40\.\d% · n 40 ▼ .75.0 points", card(page, "Recall below 1")
    )
    assert card(page, "nDCG") == "\N{EN DASH} n 0 nothing before to compare"
    assert 'class="good">▲ +37.5' in page
    # Less of what is bad is good.
    assert 'class="good">▼' in page


def test_a_change_within_noise(site: Site) -> None:
    """A change that chance explains is said to be noise, and has no colour."""
    fill(site, [1.0, 0.0] * 10, HOUR)
    fill(site, [1.0, 0.0] * 9 + [0.0], 8 * DAY)
    site.filling.write(site.engine)
    assert card(site.get("/"), "Recall").endswith("n 20 few ▲ +2.6 points , within noise")


@pytest.mark.parametrize(
    ("n", "ends"), [(9, "n 9 very few"), (10, "n 10 few"), (29, "n 29 few"), (30, "n 30")]
)
def test_small_numbers(site: Site, n: int, ends: str) -> None:
    """Under n = 30 a figure is marked, and under n = 10 it has no interval."""
    fill(site, [0.5] * n, HOUR)
    site.filling.write(site.engine)
    text = card(site.get("/"), "Recall")
    assert text.removesuffix(" nothing before to compare").endswith(ends)
    assert ("interval" in text) == (n >= 10)


def test_what_is_in_no_average(site: Site) -> None:
    """Incomplete and failed traces are counted and linked, and change no figure."""
    fill(site, [1.0], HOUR)
    site.filling.trace("cut", NOW - HOUR, {"recall": 0.0}, left_out="passages_cut")
    site.filling.trace("failed", NOW - HOUR, state=State.FAILED)
    site.filling.trace("empty", NOW - HOUR, {"recall": 1.0}, passages=0)
    site.filling.write(site.engine)
    page = site.get("/")
    assert card(page, "Recall").startswith("100.0% n 2")
    assert "1 cut or partial , in no average" in card(page, "Evaluated traces")
    assert card(page, "Not evaluated") == card(page, "Empty contexts") == "1 Show them"
    assert 'href="/queries?flag=failed"' in page


def test_labelled_figures_stand_apart(site: Site) -> None:
    """They are there only where something is labelled."""
    fill(site, [1.0], HOUR)
    site.filling.write(site.engine)
    assert "GT recall" not in site.get("/")
    fill(site, [0.5], HOUR, "gt_recall")
    site.filling.write(site.engine)
    page = site.get("/")
    assert card(page, "GT recall").startswith("50.0% n 1")
    assert "Evaluator precision" not in page


def test_the_evaluator_stands_with_its_figures(site: Site) -> None:
    """Name, version and measured accuracy."""
    fill(site, [1.0], HOUR)
    site.filling.write(site.engine)
    assert "estimated by lexical 1 (macro F1 .746 [.728, .763] on five public sets)" in site.get("/")


def test_ingest(site: Site) -> None:
    """Accepted, sampled out, repeated and refused requests of the period, what waits, and when the last came."""
    site.filling.trace("kept", NOW - HOUR, {"recall": 1.0}, milliseconds=4.2)
    site.filling.trace("not kept", NOW - 2 * HOUR, state=State.SAMPLED_OUT)
    site.filling.trace("waits", NOW - timedelta(minutes=5), state=State.PENDING)
    site.filling.trace("long ago", NOW - 40 * DAY, state=State.SAMPLED_OUT)
    site.filling.arrive("duplicate", NOW - HOUR, 4)
    site.filling.arrive("invalid_event", NOW - HOUR, 2)
    site.filling.arrive("invalid_json", NOW - HOUR, 3)
    site.filling.write(site.engine)
    page = site.get("/")
    assert card(page, "Accepted events").startswith("3 ")
    assert card(page, "Last event").startswith("5 min ago")
    assert card(page, "Of these to evaluate") == "66.7% 1 sampled out"
    assert card(page, "Duplicates").startswith("4 ")
    assert card(page, "Rejected") == "5 invalid_json 3, invalid_event 2"
    assert card(page, "Backlog") == "1 oldest came 5 min ago"
    assert card(page, "Evaluation time") == "4.2 ms P50 of one event; P95 4.2 ms"


def test_a_period_without_events(site: Site) -> None:
    """It says so, with the time of the latest event, instead of the first-event page."""
    fill(site, [1.0], 40 * DAY)
    site.filling.write(site.engine)
    page = site.get("/")
    assert "Nothing was evaluated in this period." in page
    assert "22 Oct 2026, 09:30" in page
    assert card(page, "Recall").startswith("\N{EN DASH} n 0")


def test_before_anything_was_judged(site: Site) -> None:
    """It says how many events wait, and the list of queries is empty."""
    site.filling.trace("question", NOW - HOUR, state=State.PENDING)
    site.filling.write(site.engine)
    page = site.get("/")
    assert "1 event waits to be judged." in page
    assert "No query in this period." in site.get("/queries")


def test_segments(site: Site) -> None:
    """One group for each column that tells traces apart, the largest value first, small ones grey and marked."""
    for index, n in {"small": 5, "large": 40}.items():
        for _ in range(n):
            site.filling.trace(
                "question", NOW - HOUR, {"recall": 0.5}, segment=("prod", "", index, "retrieve")
            )
    site.filling.write(site.engine)
    page = site.get("/")
    groups = re.findall(r'scope="rowgroup"[^>]*>([^<]*)', page)
    assert groups == ["Index"]
    rows = re.findall(
        r'<tr ?(class="few")?>\s*<th scope="row"><a href="([^"]*)">(\w+)', page.partition("rowgroup")[2]
    )
    assert rows == [("", "/?index=large", "large"), ('class="few"', "/?index=small", "small")]


def test_segments_by_metadata(full_site: Site) -> None:
    """Any metadata key makes a group of its own, whose parts add up, and whose rows link to that filter."""
    page = full_site.get("/?by=model&env=prod")
    assert re.findall(r'scope="rowgroup"[^>]*>([^<]*)', page)[-1] == "model"
    rows = re.findall(r'<a href="(/\?env=prod&amp;meta[^"]*)">(\w+).*?<td class="num">(\d+)', page, re.DOTALL)
    assert {row[0] for row in rows} == {"/?env=prod&amp;meta.model=large", "/?env=prod&amp;meta.model=small"}
    whole = card(page, "Evaluated traces").split(" ")[0].replace(",", "")
    assert sum(int(row[2]) for row in rows) == int(whole)
    assert full_site.get("/?by=" + "x" * 200)


def test_a_filter_by_metadata_reads_the_results_to_the_same_sums(full_site: Site) -> None:
    """Rollups and results give the same sums, by metric, by bucket and by segment."""
    with full_site.engine.connect() as connection:
        known = evaluators(connection)
        plain = Filters.of({"env": "prod"}, NOW, known)
        # All of these have the metadata, too.
        same = Filters.of({"env": "prod", "meta.env": "prod"}, NOW, known)
        found = [
            (
                figures.totals(connection, filters),
                figures.by_bucket(connection, filters, 6, ("recall", "traces")),
                figures.by_segment(connection, filters),
            )
            for filters in (plain, same)
        ]
    assert set(found[0][0]) >= {"recall", "flagged", "traces", "empty", "failed", "left_out", "exact_match"}
    flat = [
        {
            (place, *key): sums
            for place, key, sums in [
                *(("total", (metric,), sums) for metric, sums in totals.items()),
                *(("bucket", (at, metric), s) for at, of in buckets.items() for metric, s in of.items()),
                *(
                    (name, (value, metric), s)
                    for name, values in segments.items()
                    for value, of in values.items()
                    for metric, s in of.items()
                ),
            ]
        }
        for totals, buckets, segments in found
    ]
    assert flat[0].keys() == flat[1].keys()
    for key, sums in flat[0].items():
        other = flat[1][key]
        assert (sums.n, sums.total, sums.squares) == (
            other.n,
            pytest.approx(other.total),
            pytest.approx(other.squares),
        )


def test_the_parts_make_the_whole(full_site: Site) -> None:
    """Buckets and segments add up to the totals, which a narrower filter lessens."""
    with full_site.engine.connect() as connection:
        filters = Filters.of({}, NOW, evaluators(connection))
        whole = figures.totals(connection, filters)["recall"].n
        assert (
            sum(of["recall"].n for of in figures.by_bucket(connection, filters, 3, ("recall",)).values())
            == whole
        )
        for values in figures.by_segment(connection, filters).values():
            assert sum(of["recall"].n for of in values.values()) == whole
        narrow = Filters.of({"index": "docs-v1", "meta.model": "small"}, NOW, evaluators(connection))
        assert 0 < figures.totals(connection, narrow)["recall"].n < whole / 3


def test_a_trend(site: Site) -> None:
    """A bucket has its mean, interval and n, for uPlot and in a table that links to its queries."""
    fill(site, [0.5] * 12, 25 * HOUR)
    fill(site, [0.5], 50 * HOUR)
    site.filling.write(site.engine)
    page = site.get("/")
    data = json.loads(html.unescape(re.findall(r'data-trend="([^"]*)"', page)[0]))
    [_, at] = [place for place, n in enumerate(data["n"]) if n]
    assert (data["mean"][at], data["n"][at], data["low"][at]) == (0.5, 12, 0.5)
    assert data["mean"][at - 1] is None
    assert (data["step"], data["top"]) == (12 * 3600, 0.5)
    links = re.findall(r'<th scope="row"><a href="(/queries\?since[^"]*)">', page)
    assert html.unescape(links[1]) == "/queries?since=2026-11-30T00%3A00Z&until=2026-11-30T12%3A00Z"
    assert "1 to 12 of 12" in site.get(html.unescape(links[1]))


def test_a_single_bucket_is_no_trend(site: Site) -> None:
    """What came within one bucket is not drawn."""
    fill(site, [0.5] * 12, HOUR)
    site.filling.write(site.engine)
    page = site.get("/")
    assert "data-trend" not in page
    assert "All of this came within 12 hours; there are no trends yet." in page


@pytest.mark.parametrize(("range_", "hours"), [("24h", 1), ("7d", 3), ("30d", 12), ("90d", 48)])
def test_buckets(range_: str, hours: int) -> None:
    """A bucket has so many hours that there are at most sixty of them."""
    assert figures.bucket_hours(Filters.of({"range": range_}, NOW), 60) == hours


def test_user_text_is_escaped(site: Site) -> None:
    """Segments, metadata keys and filters are text, whatever they hold."""
    for other in ("", "b"):
        site.filling.trace(
            HOSTILE, NOW - HOUR, {"recall": 1.0}, segment=(HOSTILE, HOSTILE + other, HOSTILE, HOSTILE),
            metadata={HOSTILE: HOSTILE},
        )  # fmt: skip
    site.filling.write(site.engine)
    for params in (
        {},
        {"env": HOSTILE, f"meta.{HOSTILE}": HOSTILE},
        {"index": HOSTILE * 2},
        {"evaluator": HOSTILE},
    ):
        response = site.client.get("/", params=params)
        assert response.status_code == 200
        assert "<script>alert" not in response.text
    assert html.escape(HOSTILE, quote=False)[:30] in site.get("/")


@pytest.mark.parametrize(
    "query", ["range=1y&since=2026-01-01", "meta.=x", "meta_key=&meta_value=x", "env=%00", "env=%ff"]
)
def test_odd_parameters(full_site: Site, query: str) -> None:
    """What can be meant somehow is a page."""
    assert "<h1>Overview</h1>" in full_site.get(f"/?{query}")


@pytest.mark.parametrize("query", ["since=x", "since=2026-12-01&until=2026-11-01", "env=" + "x" * 300])
def test_bad_parameters(full_site: Site, query: str) -> None:
    """What cannot be meant is a 400 page that says why."""
    assert "This address cannot be meant" in full_site.get(f"/?{query}", 400)


def test_the_default_screen_reads_no_results(full_site: Site) -> None:
    """Without a filter by metadata neither results nor events are scanned: a million of them make no difference."""
    import sqlalchemy as sa

    statements: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    sa.event.listen(full_site.engine, "before_cursor_execute", note)
    try:
        full_site.get("/?range=30d&env=prod")
        read = list(statements)
        full_site.get("/?meta.env=prod")
    finally:
        sa.event.remove(full_site.engine, "before_cursor_execute", note)
    table = tables.results.name
    assert not any(re.search(rf"FROM {table}\b", statement) for statement in read)
    assert any(re.search(rf"FROM {table}\b", statement) for statement in statements)
