"""A report is for everybody: by keyboard, without a script, on a narrow screen and on paper."""

from __future__ import annotations

import itertools

FOCUSED = """() => {
  const e = document.activeElement;
  e.dataset.seen ??= Math.random();
  return e.matches("a[href], input, select, summary") ? e.dataset.seen : "";
}"""


def test_the_keyboard_reaches_and_works_every_control(opened, swept):
    found = opened(swept)
    page = found.page
    wanted = page.eval_on_selector_all(
        "a[href], input, select, summary",
        "all => all.filter(e => e.checkVisibility({checkVisibilityCSS: true})).length",
    )
    seen = set()
    for _ in range(wanted + 30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate(FOCUSED))
    assert len(seen - {""}) >= wanted
    page.get_by_label("coordinate descent", exact=True).focus()
    page.keyboard.press("Space")
    assert len(found.drawn("curve")) == 2
    page.get_by_label("Horizontal axis").focus()
    page.keyboard.press("ArrowDown")
    assert found.page.input_value("#curve-axis") == "activations"


def test_every_control_has_a_label_and_headings_are_in_order(opened, swept):
    found = opened(swept)
    unlabelled = "all => all.filter(e => !e.labels?.length || !e.labels[0].textContent.trim()).length"
    assert found.page.eval_on_selector_all("input, select", unlabelled) == 0
    levels = found.page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    named = "all => all.every(e => e.getAttribute('aria-label'))"
    assert found.page.eval_on_selector_all("[role=img], [role=region]", named)
    assert found.page.eval_on_selector_all("[id]", "all => all.length - new Set(all.map(e => e.id)).size") == 0


CONTRASTS = """() => {
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const written = e => e.offsetParent && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  return [...document.querySelectorAll("body *")].filter(written).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
}"""


def test_every_text_stands_out_from_its_ground(still):
    contrasts = still.page.evaluate(CONTRASTS)
    assert len(contrasts) > 50
    assert min(contrasts) >= 4.5


def test_nothing_sticks_out_of_a_narrow_screen(opened, swept):
    found = opened(swept, viewport={"width": 380, "height": 800})
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 380


def test_on_paper_controls_are_gone_and_the_legend_shows_what_is_drawn(opened, results):
    found = opened(results)
    found.page.get_by_label("coordinate descent", exact=True).uncheck()
    found.page.emulate_media(media="print")
    assert not found.page.is_visible("#curve-choices")
    assert not found.page.is_visible("#protocols input >> nth=0")
    labels = found.page.locator("#protocols label")
    assert [labels.nth(k).is_visible() for k in range(3)] == [True, False, True]
    assert found.page.is_visible("#curve .main-svg >> nth=0")


def test_without_a_script_the_tables_are_there(opened, results):
    found = opened(results)
    context = found.page.context.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(found.page.url)
    assert page.locator("#headline tbody tr").count() == 3
    assert page.is_visible("noscript p")
    context.close()
