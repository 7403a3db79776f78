"""The rows in which two runs differ, by hand and in runs on the same luck."""

from __future__ import annotations

from hushnet.simulator.replay import write_replay
from hushnet.simulator.replay.chosen import chosen
from hushnet.simulator.replay.film import FATES, film
from hushnet.simulator.replay.parting import MOST_ROWS, PartingRow, parting
from hushnet.simulator.replay.rerun import rerun

from .test_replay import results  # noqa: F401 (a fixture)


def film_of(steps=(), messages=(), absences=()):
    columns = dict(zip(("from", "to", "start", "end", "fate"), map(list, zip(*messages, strict=True)), strict=False))
    return {
        "agents": ["a", "b", "c"],
        "steps": {"agent": [agent for agent, _ in steps], "at": [at for _, at in steps]},
        "messages": columns or {name: [] for name in ("from", "to", "start", "end", "fate")},
        "absences": list(absences),
    }


def test_what_one_run_alone_has_and_what_became_of_what_both_have():
    delivered, lost = FATES.index("delivered"), FATES.index("lost")
    first = film_of([(0, 1.0), (1, 2.0)], [(0, 1, 1.0, 1.5, delivered), (0, 2, 1.0, 1.7, delivered)], [(2, 3.0, 4.0)])
    second = film_of([(0, 1.0), (1, 2.5)], [(0, 1, 1.0, 1.5, delivered), (0, 2, 1.0, None, lost)], [(2, 3.0, None)])
    found = parting(first, second, FATES)
    assert found.rows == (
        PartingRow(1.0, "message a to c", "delivered at 1.7", "lost"),
        PartingRow(2.0, "b makes a step", "made", "–"),
        PartingRow(2.5, "b makes a step", "–", "made"),
        PartingRow(3.0, "c goes away", "until 4", "to the end"),
    )
    assert (found.differing, found.common) == (4, 2)


def test_a_message_that_is_sent_twice_at_once_is_two():
    delivered = FATES.index("delivered")
    twice = film_of(messages=[(0, 1, 1.0, 1.5, delivered)] * 2)
    once = film_of(messages=[(0, 1, 1.0, 1.5, delivered)])
    assert parting(twice, once, FATES).rows == (PartingRow(1.0, "message a to b", "delivered at 1.5", "–"),)


def test_runs_on_the_same_luck_part_where_their_delays_do(results):  # noqa: F811
    films = []
    for mean in ("0.1", "2"):
        (entry,) = chosen(results, [f"cd,network.latency.mean={mean}"])
        films.append(film(rerun(results, entry, (0.0, 12.0))))
    found = parting(*films, FATES)
    assert len(films[0]["steps"]["at"]) == len(films[1]["steps"]["at"]) > 20
    assert not any("step" in row.what or "away" in row.what for row in found.rows)
    columns = [film["messages"] for film in films]
    ends = [
        dict(zip(zip(each["from"], each["to"], each["start"], strict=True), each["end"], strict=True))
        for each in columns
    ]
    assert set(ends[0]) == set(ends[1])
    assert found.differing == sum(ends[0][key] != ends[1][key] for key in ends[0]) > 20
    assert len(found.rows) == min(MOST_ROWS, found.differing)
    same = parting(films[0], films[0], FATES)
    assert same.differing == 0 < same.common


def test_the_page_lists_them_and_links_to_their_instants(browser, results):  # noqa: F811
    path = results.parent / "parting.html"
    write_replay(results, ["cd,network.latency.mean=0.1", "cd,network.latency.mean=2"], out=path)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    rows = page.locator("section[aria-labelledby=parting] tbody tr")
    assert rows.count() == MOST_ROWS
    link = rows.nth(7).locator("a")
    at = float(link.text_content())
    link.click()
    while abs(float(page.locator("html").get_attribute("data-time")) - at) >= 0.001:  # a page without eval
        page.wait_for_timeout(20)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()


def test_one_run_alone_parts_from_nobody(results):  # noqa: F811
    path = results.parent / "alone.html"
    write_replay(results, ["cd,network.latency.mean=2"], out=path)
    assert "Where the two part" not in path.read_text()
