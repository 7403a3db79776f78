"""A replay in a browser: silent, without a connection, by keyboard alone, on a phone, in the dark, on paper."""

from __future__ import annotations

import pytest
from hushnet.simulator.replay import write_replay

from .test_replay import results  # noqa: F401 (a fixture)


@pytest.fixture
def opened(browser, results):  # noqa: F811
    """A function that opens the page, at an instant if one is given."""
    pages = []
    path = results.parent / "browser.html"
    if not path.exists():
        write_replay(results, ["cd,network.latency.mean=2", "private,network.latency.mean=2"], out=path)

    def show(link="", **options):
        page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **options})
        pages.append(page)
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(path.as_uri() + link)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield show
    for page in pages:
        assert page.complaints == []
        assert len(page.asked) == 1
        page.close()


def instant(page):
    return float(page.get_attribute("html", "data-time"))


def painted(page, selector=".stage"):
    """Different colours in a canvas."""
    return page.eval_on_selector(
        selector,
        "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size",
    )


def counts(page, animation=0):
    rows = "rows => Object.fromEntries(rows.map(row => [...row.children].map(cell => cell.textContent)))"
    return page.eval_on_selector_all(f".counts[data-animation='{animation}'] div", rows)


def test_it_draws_without_a_complaint_or_a_connection(opened):
    page = opened()
    assert page.locator(".stage").count() == 2
    assert painted(page) > 5
    assert painted(page, "#ages") > 3


def test_a_link_opens_at_its_instant(opened):
    page = opened("#t=7.5")
    assert instant(page) == 7.5
    assert "7.50" in page.text_content("#clock")
    page.evaluate("window.location.hash = '#t=3'")
    page.wait_for_selector("html[data-time='3']")
    assert page.get_attribute("#here", "href") == "#t=3"
    assert instant(opened("#t=9999")) == 12
    assert 0 <= instant(opened("#t=nonsense")) < 12


def test_what_is_counted_adds_up_at_any_instant(opened):
    page = opened("#t=6")
    for animation in (0, 1):
        shown = counts(page, animation).items()
        numbers = {name: int(value.replace(",", "")) for name, value in shown if name[0] != "ε"}
        parts = sum(numbers[name] for name in ("delivered", "lost", "dropped", "in flight"))
        assert numbers["sent"] == parts > 10


def test_the_keyboard_is_enough(opened):
    page = opened("#t=0")
    page.keyboard.press("ArrowRight")
    assert instant(page) == pytest.approx(0.1)
    page.keyboard.press("Shift+ArrowRight")
    assert instant(page) == pytest.approx(1.1)
    page.keyboard.press("End")
    assert instant(page) == 12
    page.keyboard.press("Home")
    assert instant(page) == 0
    page.keyboard.press("Space")
    while instant(page) < 0.2:  # the page moves on by itself; a test that hangs is ended from outside
        page.wait_for_timeout(20)
    assert page.get_attribute("#play", "aria-pressed") == "true"
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "play"


@pytest.mark.parametrize(
    "options",
    [{"viewport": {"width": 390, "height": 844}}, {"color_scheme": "dark"}, {"reduced_motion": "reduce"}],
    ids=lambda options: next(iter(options)),
)
def test_it_fits_a_phone_the_dark_and_whoever_wants_no_motion(opened, options):
    page = opened("#t=5", **options)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert painted(page) > 5
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == ("color_scheme" not in options)
