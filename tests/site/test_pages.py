"""The site in a real Chromium, opened from disk as a reader does."""

import csv
import io
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from lab.numbers.paired import Difference, holm
from lab.report import report
from tests.site.site_runs import HOSTILE, LONG, NUPA, SCRATCH, estimate, nupa_part, nupa_sample, write_run

pytestmark = pytest.mark.slow

READY = """() => {
    const asked = location.hash.slice(1).split(/[/?]/)[0] || "runs";
    return !document.getElementById(asked).hidden && !document.querySelector("[aria-busy]");
}"""
"""Whether the view that the address names is shown and filled; a click changes the address before the page reacts.

Charts are rendered once they come near the viewport (content-visibility), and have no inner text before that: tests
read their text content.
"""


@pytest.fixture(scope="module")
def site(runs, log, tmp_path_factory) -> str:
    return report([runs], tmp_path_factory.mktemp("site") / "report", log).as_uri()


@pytest.fixture(scope="module")
def window(chromium) -> tuple[Any, list[str]]:
    """One page for all tests, because opening a page takes time; and its complaints."""
    page, complaints = chromium.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else complaints.append(asked.url))
    return page, complaints


@pytest.fixture
def open_page(window, site) -> Iterator[Callable[..., Any]]:
    """Opens a view afresh; by the end it must have written no error and asked for nothing but files."""
    page, complaints = window

    def opened(view: str = "", url: str = site) -> Any:
        page.goto("about:blank")
        page.goto(f"{url}#{view}")
        page.wait_for_function(READY)
        return page

    yield opened
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert complaints == []


def go(page: Any, view: str) -> None:
    page.evaluate(f"location.hash = '{view}'")
    page.wait_for_selector(f"#{view.split('/')[0]}:not([hidden])")
    page.wait_for_function(READY)


def test_every_view_opens_and_every_run_is_listed_with_its_state(open_page):
    page = open_page()
    rows = page.locator("#runs-table tbody tr")
    assert rows.count() == 7
    assert "running" in rows.filter(has_text="unfinished").inner_text()
    assert "another version" in rows.filter(has_text="old").inner_text()
    page.locator("#runs-filter").fill("scratch")
    assert page.locator("#runs-count").inner_text() == "2 of 7 runs"
    page.get_by_role("link", name="scratch", exact=True).click()
    page.wait_for_function(READY)
    assert "encoding: rope" in page.locator("#run-view").inner_text()
    for view in (
        "performance",
        "heatmap",
        "errors",
        "samples",
        "compare",
        "training",
        "cost",
        "probing",
        "adders",
        "findings",
    ):
        page.get_by_role("navigation").locator(f"a[href='#{view}']").click()
        page.wait_for_function(READY)
        assert page.locator(f"#{view} h1").is_visible()
        assert page.locator("main > section:visible").count() == 1
    assert "Not measured" in page.locator("#cost").text_content()


def test_the_overview_is_sorted_by_any_column_and_seeds_unfold(open_page, log, tmp_path):
    for name, right, seed in (("grid_a_0", 9, 0), ("grid_a_1", 8, 1), ("other_b", 10, 0), ("third_c", 2, 0)):
        share = {"exact_match": estimate(right, 10)}
        config = f"seed: {seed}\n{SCRATCH.replace('0.2M', name[:5])}"
        write_run(tmp_path, name, config, summary={"version": 1, "lengths": {"add_integer": {"2": share}}})
    page = open_page(url=report([tmp_path], tmp_path / "report", log).as_uri())
    names = "[...document.querySelectorAll('#runs-table tbody')].map((body) => body.querySelector('bdi').textContent)"
    assert page.evaluate(names) == ["grid_a", "other_b", "third_c"]
    page.get_by_role("button", name="exact match").click()
    assert page.evaluate(names) == ["third_c", "grid_a", "other_b"]
    page.get_by_role("button", name="exact match").click()
    assert page.evaluate(names) == ["other_b", "grid_a", "third_c"]
    assert page.locator("#runs-table th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert page.get_by_role("link", name="grid_a_1").is_hidden()
    page.get_by_role("button", name="2 seeds").click()
    page.get_by_role("link", name="grid_a_1").click()
    page.wait_for_function(READY)
    assert "trained lengths" in page.locator("#run-view table").inner_text()


def test_models_tasks_metric_and_kind_of_chart_can_be_chosen(open_page):
    page = open_page("performance")
    view = page.locator("#performance-view")
    assert view.locator("figcaption").all_text_contents() == ["add, integer", "max, float"]
    assert view.locator(".legend li").all_inner_texts() == ["first", "second"]
    # two models in two ranges each; L and XL were not measured
    assert view.locator("svg.chart").first.locator("rect.fill").count() == 4
    assert view.locator("svg.chart").first.get_by_text("not measured").count() == 2
    page.get_by_role("checkbox", name="float", exact=True).uncheck()
    assert view.locator("figcaption").all_text_contents() == ["add, integer"]
    page.get_by_text("Models: first, second").click()
    page.get_by_label("Filter models").fill("scratch")
    page.locator("#performance-choosers").get_by_label("scratch", exact=True).check()
    page.get_by_label("Against").select_option("length")
    page.wait_for_function(READY)
    assert view.locator(".line").count() == 3 + 3  # in the legend and in the chart
    view.get_by_text("The same as a table").click()
    assert "90 % (60-98), n = 10" in view.locator("table").inner_text()
    page.get_by_label("Metric").select_option("dlength")
    page.wait_for_function(READY)
    view.get_by_text("The same as a table").click()
    assert "0.5 (0.1-1.5), n = 36" in view.locator("table").inner_text()


def test_charts_offer_the_readings_that_the_runs_have(open_page, log, tmp_path):
    parts = {
        name: nupa_part(right, 36, (3, 4))["strict"] for name, right in (("strict", 9), ("loose", 18), ("final", 27))
    }
    part = {"lengths": [3, 4], "asked": 36, "api_errors": 0, **parts}
    summary = {"version": 1, "nupa": {"add_integer": {"ranges": {"S": part}, "domains": {}, "lengths": {}}}}
    write_run(tmp_path / "runs", "read", NUPA, summary=summary)
    url = report([tmp_path / "runs"], tmp_path / "report", log).as_uri()
    for view in ("performance", "heatmap"):
        page = open_page(view, url=url)
        choice = page.locator(f"#{view}-choosers").get_by_label("Reading")
        assert choice.locator("option").evaluate_all("found => found.map(one => one.value)") == [
            "strict",
            "loose",
            "final",
        ]
        choice.select_option("final")
        page.wait_for_function(READY)
        assert "final reading" in page.locator(f"#{view}-view").inner_text()
        assert "reading=final" in page.url
    assert "75" in page.locator("#heatmap-view td").first.inner_text()


def test_a_damaged_run_is_said_to_be_damaged_and_not_plotted_first(open_page, log, tmp_path):
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": {}}
    summary = {"version": 1, "nupa": {"add_integer": add}}
    damaged = write_run(tmp_path, "a", NUPA, summary={**summary, "nupa": {"add_integer": add, "max_float": add}})
    (damaged / "config.yaml").write_text("[a, list")
    write_run(tmp_path, "whole", NUPA, summary=summary)
    page = open_page("runs", url=report([tmp_path], tmp_path / "report", log).as_uri())
    assert "damaged" in page.locator("#runs-table tbody tr").first.inner_text()
    go(page, "performance")
    shown = page.locator("#performance-view .legend li").all_inner_texts()
    assert "whole" in shown
    assert "a" not in shown


@pytest.mark.parametrize("width", [390, 700, 1400])
def test_an_address_that_is_opened_directly_shows_its_title_below_the_header(open_page, site, width):
    page = open_page("runs")
    page.set_viewport_size({"width": width, "height": 500})
    for view in ("performance", "heatmap", "samples", "findings"):
        page.goto("about:blank")
        page.goto(f"{site}#{view}")
        page.wait_for_function(READY)
        page.wait_for_timeout(200)  # the browser goes to the address's element when all is loaded
        top = page.locator(f"#{view} h1").bounding_box()["y"]
        header = page.locator("header").bounding_box()
        assert top >= header["y"] + header["height"], view


@pytest.mark.parametrize("width", [390, 1400])
def test_labels_of_what_was_not_measured_do_not_overlap(open_page, log, tmp_path, width):
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": {}}
    tasks = ("add_integer", "add_float", "max_integer", "max_float", "get_digit_integer")
    write_run(tmp_path, "run", NUPA, summary={"version": 1, "nupa": dict.fromkeys(tasks, add)})
    page = open_page("performance", url=report([tmp_path], tmp_path / "report", log).as_uri())
    page.set_viewport_size({"width": width, "height": 800})
    for chart in page.locator("#performance-view svg.chart").all():
        boxes = [label.bounding_box() for label in chart.locator("text.absent").all()]
        assert len(boxes) >= 3
        for left, right in itertools.pairwise(boxes):
            assert left["x"] + left["width"] + 3 < right["x"]


def test_a_bar_that_is_pointed_at_says_its_figure_with_n_and_interval(open_page):
    page = open_page("performance")
    page.locator("#performance-view .bar").nth(1).hover()
    assert page.get_by_role("tooltip").inner_text() == "second\nadd, integer, S (1-4 digits): 83 % (68-92), n = 36"
    page.keyboard.press("Escape")
    assert page.get_by_role("tooltip").count() == 0


def test_what_a_reader_chose_stands_in_the_address_and_a_link_shows_the_same(open_page):
    page = open_page("performance")
    page.locator("#performance-choosers").get_by_label("Metric").select_option("dlength")
    page.locator("#performance-choosers").get_by_label("Against").select_option("length")
    page.locator("#performance-choosers").get_by_role("checkbox", name="float", exact=True).uncheck()
    page.wait_for_function(READY)
    shown, address = page.locator("#performance-view figcaption").all_text_contents(), page.evaluate("location.hash")
    assert "metric=dlength" in address
    page = open_page(address.removeprefix("#"))
    assert page.locator("#performance-view figcaption").all_text_contents() == shown
    assert page.locator("#performance-choosers").get_by_label("Against").input_value() == "length"
    assert not page.locator("#performance-choosers").get_by_role("checkbox", name="float", exact=True).is_checked()


def test_a_run_has_its_name_in_its_address_and_samples_what_was_sought(open_page):
    page = open_page()
    page.locator("#runs-table a").first.click()
    page.wait_for_function(READY)
    name = page.locator("#run-name").inner_text()
    assert page.evaluate("decodeURIComponent(location.hash)") == f"#run/{name}"
    page = open_page("samples")
    page.locator("#samples-choosers").get_by_label("Outcome").select_option("not right")
    page.wait_for_function(READY)
    said, address = page.locator("#samples-said").inner_text(), page.evaluate("location.hash")
    assert open_page(address.removeprefix("#")).locator("#samples-said").inner_text() == said


def test_a_chart_is_saved_as_a_picture_and_a_table_as_csv_that_reads_back(open_page):
    page = open_page("performance")
    page.locator(".cards figure").first.hover()
    with page.expect_download() as picture:
        page.locator(".cards figure .save").first.click()
    assert picture.value.suggested_filename.endswith(".png")
    image = plt.imread(picture.value.path())
    assert image.shape[0] >= 400
    assert len({tuple(colour) for colour in image.reshape(-1, image.shape[-1])[::97]}) > 3
    page.locator(".as-table > summary").first.click()
    table = page.locator("#performance-view .as-table .wide")
    with page.expect_download() as download:
        table.locator(".save").click()
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8-sig"))))
    assert rows[0] == table.locator("thead th").all_inner_texts()
    shown = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert [[cell or "not measured" for cell in row] for row in rows[1:]] == shown


def test_the_heat_map_shows_a_model_or_the_difference_of_two(open_page):
    page = open_page("heatmap")
    row = page.locator("#heatmap-view tbody tr").first
    assert row.locator("th").inner_text() == "add, integer"
    assert row.locator("td").all_inner_texts() == ["8.3", "0", "not measured", "not measured"]
    measured = page.locator("#heatmap-view tbody tr:visible").count()
    assert page.locator("#heatmap-view [role=status]").inner_text().startswith(f"{measured} of 53 tasks measured")
    page.get_by_text("Show the others too").click()
    assert page.locator("#heatmap-view tbody tr:visible").count() == 53 > measured
    page.get_by_label("Model", exact=True).select_option(label="second")
    page.get_by_label("Minus").select_option(label="first")
    page.wait_for_function(READY)
    assert row.locator("td").nth(0).text_content() == "+75 intervals apart"
    assert row.locator("td").nth(1).inner_text() == "0"


def test_models_are_ranked_over_what_all_of_them_were_asked(open_page):
    page = open_page("performance")
    rows = page.locator("#performance-view .wide").first.locator("tbody tr")
    assert [row.locator("th").inner_text() for row in rows.all()] == ["second", "first"]
    shares = [float(row.locator("td").first.inner_text().partition(" ")[0]) for row in rows.all()]
    assert shares[0] > shares[1]
    glance = page.locator("#performance-view .heat")
    assert glance.locator("thead th").all_inner_texts() == ["task", "first", "second"]
    assert glance.locator("tbody th").all_inner_texts() == ["add, integer", "max, float"]
    assert glance.locator("tbody tr").first.locator("td").all_inner_texts() == ["4.2", "42"]


def test_a_run_page_says_what_was_found_or_how_far_a_running_run_is(open_page, log, tmp_path):
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": {}}
    write_run(tmp_path, "done", NUPA, summary={"version": 1, "nupa": {"add_integer": add}})
    steps = [{"step": 10, "loss": 0.5}, {"step": 20, "loss": 0.25}, {"step": 20, "valid_loss": 0.3}]
    write_run(tmp_path, "going", f"{SCRATCH}training: {{max_steps: 1000}}\n", "running", metrics=steps)
    page = open_page("run/done", url=report([tmp_path], tmp_path / "report", log).as_uri())
    assert page.locator("#run-view .found li").first.inner_text().startswith("exact match, % (95 % interval), n=36: 8 ")
    go(page, "run/going")
    assert page.locator("#run-view .found li").all_inner_texts() == ["step 20 of 1,000, loss 0.250"]


def test_an_open_page_follows_a_run_that_is_running_and_keeps_its_place(open_page, log, tmp_path):
    metrics = write_run(tmp_path, "going", SCRATCH, "running", metrics=[{"step": 10, "loss": 0.5}]) / "metrics.jsonl"
    page = open_page("run/going", url=report([tmp_path], tmp_path / "report", log).as_uri())
    assert page.locator("#run-view .found li").inner_text() == "step 10, loss 0.500"
    metrics.write_text('{"step": 20, "loss": 0.25}\n')
    report([tmp_path], tmp_path / "report", log)
    page.wait_for_function("document.querySelector('#run-view .found li')?.textContent === 'step 20, loss 0.250'")
    assert page.url.endswith("#run/going")


def test_an_open_page_never_shows_another_run_in_place_of_its_own(open_page, window, log, tmp_path):
    figures = write_run(tmp_path, "b", NUPA) / "figures"
    figures.mkdir()
    (figures / "lengths.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    page = open_page(url=report([tmp_path], tmp_path / "report", log).as_uri())
    write_run(tmp_path, "a", NUPA)
    report([tmp_path], tmp_path / "report", log)
    go(page, "run/b")
    assert "runs/0/run.js is missing: reload the page" in page.locator("#run-view").inner_text()
    (complaint,) = window[1]
    assert "ERR_FILE_NOT_FOUND" in complaint
    window[1].clear()
    page.reload()
    page.wait_for_function("document.querySelector('#run-view img')?.src.endsWith('/runs/1/figures/lengths.png')")
    assert "name: b" in page.locator("#run-view").inner_text()


def test_errors_are_counted_by_length(open_page):
    page = open_page("errors")
    page.get_by_text("The same as a table").click()
    row = page.locator("#errors-view tbody tr").first
    row.wait_for()
    cells = row.locator("th, td").all_inner_texts()
    columns = page.locator("#errors-view thead th").all_inner_texts()
    assert dict(zip(columns, cells, strict=True)) == {
        "task": "add, integer",
        "digits": "3",
        "right": "0",
        "a run of digits too high": "1",
        "several digits wrong": "0",
        "no number found": "1",
    }


def test_samples_are_chosen_and_opened_and_hostile_text_is_text(open_page):
    page = open_page("samples")
    cards = page.locator(".sample")
    assert cards.count() == 20
    page.get_by_label("Outcome").select_option("no number found")
    page.wait_for_function(READY)
    assert cards.count() == 1
    cards.first.locator("summary").click()
    box = page.get_by_role("region", name="Completion")
    shown = box.inner_text()
    assert "</script><script>document.title='owned'</script><img src=x onerror" in shown
    for code in ("␀", "␛", "U+202E", "U+D800", "U+2028"):
        assert code in shown
    assert not set("\x00\x1b‮\u2028") & set(shown)
    assert len(shown) < len(HOSTILE) + 60
    assert box.evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"
    assert page.title() == "Samples · The number lab"
    assert page.locator("main img[src=x]").count() == 0


def test_wrong_missing_and_surplus_digits_are_marked_and_a_long_text_is_shown_when_asked_for(open_page):
    page = open_page("samples")
    page.get_by_label("Length").select_option("4 digits")
    page.wait_for_function(READY)
    card = page.locator(".sample").filter(has_text="#3")
    assert card.locator(".surplus").all_inner_texts() == ["12"]
    assert card.get_by_role("img").get_attribute("aria-label") == "truth 345, answer 12345: 3 right, 2 surplus"
    card.locator("summary").click()
    box = card.get_by_role("region", name="Completion")
    assert len(box.inner_text()) == 1000
    card.get_by_role("button", name="Show all 1,000,001 characters").click()
    page.wait_for_function("document.querySelector('.sample[open] .body').textContent.includes('7!')")
    assert box.evaluate("node => node.textContent.length") == len(LONG)
    page.get_by_label("Length").select_option("3 digits")
    page.wait_for_function(READY)
    assert page.locator(".sample .wrong").all_inner_texts() == ["8"]


def test_it_can_be_used_with_the_keyboard_alone(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_role("link", name="Samples").press("Enter")
    page.wait_for_function("document.activeElement.textContent === 'Samples'")
    page.wait_for_function(READY)
    page.get_by_label("Task").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.querySelectorAll('.sample').length && !document.querySelector('[aria-busy]')")
    assert page.evaluate("document.activeElement.labels[0].textContent") == "Task"
    page.get_by_role("button", name="Next").first.press("Enter")
    page.wait_for_function("document.getElementById('samples-said').textContent.startsWith('21 to 40')")
    page.locator(".sample summary").first.press("Enter")
    page.locator(".sample[open] pre").nth(1).wait_for()  # prompt and completion
    fields = "[...document.querySelectorAll('main select, main input')]"
    assert page.evaluate(f"{fields}.every((field) => field.labels.length || field.ariaLabel)")
    assert page.evaluate("[...document.querySelectorAll('table')].every((found) => found.caption)")


def test_training_and_probing_and_the_findings_are_shown(open_page):
    page = open_page("training")
    assert page.locator("#training-view figcaption").all_text_contents()[0].startswith("validation loss")
    assert page.locator("#training-view figure").count() == 2
    page.get_by_label("Quantity").select_option("learning rate")
    page.wait_for_function(READY)
    assert "Not measured: learning rate of scratch." in page.locator("#training-view").inner_text()
    go(page, "probing")
    page.get_by_role("button", name="Show it here").click()
    assert page.frame_locator("iframe").get_by_role("heading").inner_text() == "Attention"
    go(page, "findings")
    assert page.locator(".entry").count() == 2
    page.locator("#findings-filter").fill("multiply")
    assert page.locator(".entry:visible").count() == 1


def test_a_phone_shows_it_without_scrolling_sideways(open_page):
    page = open_page()
    page.set_viewport_size({"width": 375, "height": 700})
    for view in ("runs", "performance", "heatmap", "errors", "samples", "training", "adders", "findings"):
        go(page, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, view


def test_dark_is_dark_and_print_is_white_without_what_cannot_be_pressed(open_page):
    page = open_page("performance")
    page.emulate_media(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 22, 26)"
    page.emulate_media(media="print")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    assert page.locator("#performance-choosers").is_hidden()
    assert page.locator("#performance-view svg.chart").first.is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_a_run_of_its_own_that_scored_nothing_is_a_site_too(open_page, runs, log, tmp_path):
    alone = report([runs / "unfinished"], tmp_path / "report", log).as_uri()
    page = open_page("performance", url=alone)
    for view in ("heatmap", "training", "errors", "samples"):
        go(page, view)
    assert page.locator(".sample").count() == 1
    assert "running" in page.locator("#runs-table").text_content()


def test_a_hundred_thousand_samples_leave_the_page_small_and_quick(open_page, log, tmp_path: Path):
    texts = [f" {number}" for number in range(100_000)]
    samples = [
        nupa_sample(number, text[1:], str(number + number % 2), text, length=3 + number % 90)
        for number, text in enumerate(texts)
    ]
    cells = {str(length): nupa_part(length % 36, 36, (length, length)) for length in range(3, 93)}
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": cells}
    write_run(tmp_path, "large", NUPA, summary={"version": 1, "nupa": {"add_integer": add}}, samples=samples)
    page_file = report([tmp_path / "large"], tmp_path / "report", log)
    assert page_file.stat().st_size < 1_000_000
    started = time.monotonic()
    page = open_page("samples", url=page_file.as_uri())
    page.get_by_label("Outcome").select_option("right")
    page.wait_for_function(READY)
    seconds = time.monotonic() - started
    print(f"index.html {page_file.stat().st_size:,} bytes; open, filter and show: {seconds:.1f} s")
    assert page.locator("#samples-said").inner_text() == "1 to 20 of 50,000"
    assert seconds < 30  # on a busy machine


@pytest.fixture(scope="module")
def compared(log, tmp_path_factory) -> str:
    """Two runs of 40 problems, in which the second gains 9 additions and loses 1, and a run on fewer problems.
    A fourth run has no answer to the three problems that only the first solves besides."""
    folder = tmp_path_factory.mktemp("compared")

    def answered(right: Callable[[int], bool]) -> list[dict[str, Any]]:
        tasks = ({"task": "add"}, {"task": "max"})
        return [
            nupa_sample(index, "7" if right(index) else "8", "7", f" told {index}", **tasks[index // 20])
            for index in range(40)
        ]

    write_run(folder, "before", f"{NUPA}seed: 0\n", samples=answered(lambda index: index in (0, 1, 2) or index > 30))
    write_run(folder, "after", f"{NUPA}seed: 1\n", samples=answered(lambda index: 1 <= index <= 11 or index > 30))
    failing = answered(lambda index: index > 30)
    for sample in failing[:3]:
        sample["api_error"] = "HTTP 400"
    write_run(folder, "failing", f"{NUPA}seed: 2\n", samples=failing)
    write_run(folder, "elsewhere", NUPA, samples=answered(bool)[:20])
    return report([folder], folder / "report", log).as_uri()


def test_two_runs_on_the_same_problems_are_compared_problem_by_problem(open_page, compared):
    page = open_page("compare", compared)
    chosen = page.locator("#compare-choosers")
    assert chosen.get_by_label("First").locator("option").all_inner_texts() == ["after", "before", "failing"]
    chosen.get_by_label("First").select_option(label="before")
    page.wait_for_function(READY)
    rows = [
        row.locator("th, td").all_inner_texts()
        for row in page.locator("#compare-view table").first.locator("tbody tr").all()
    ]
    whole = Difference(both=11, gained=9, lost=1, neither=19)
    adjusted = holm([whole.p, 1.0, whole.p])
    assert rows == [
        ["add, integer", "20", "3", "11", "1", "9", f"{adjusted[0]:.3f}"],
        ["max, integer", "20", "9", "9", "0", "0", "1.000"],
        ["all", "40", "12", "20", "1", "9", f"{adjusted[2]:.3f}"],
    ]
    differences = page.locator("#compare-view table").last.locator("tbody tr").all_inner_texts()
    assert [row.split() for row in differences] == [["name", "before", "after"], ["seed", "0", "1"]]
    pairs = page.locator("#compare-pairs")
    assert "1 to 10 of 10" in pairs.inner_text()
    pairs.get_by_label("Show").select_option("lost")
    page.wait_for_function(READY)
    assert pairs.locator("details").count() == 1
    assert "#0" in pairs.locator("details").inner_text()
    assert "told 0" in pairs.locator("details").inner_text()


def test_a_question_without_an_answer_is_not_compared_as_a_wrong_one(open_page, compared):
    page = open_page("compare/before?with=failing", compared)
    rows = page.locator("#compare-view table").first.locator("tbody tr").all()
    assert rows[0].locator("th, td").all_inner_texts() == ["add, integer", "17", "0", "0", "0", "0", "1.000"]
    assert "No problem fits" in page.locator("#compare-pairs").inner_text()


@pytest.mark.parametrize("place", ["compare/before?with=elsewhere", "compare/nowhere", "compare/elsewhere?with=before"])
def test_an_address_of_runs_that_cannot_be_compared_shows_no_others(open_page, compared, place):
    page = open_page(place, compared)
    assert "no runs here that were asked the same problems" in page.locator("#compare-view").inner_text()
    assert page.locator("#compare-view table").count() == 0
    assert page.locator("#compare-pairs").inner_text() == ""


def test_a_run_links_to_its_comparison(open_page, compared):
    page = open_page("runs", compared)
    page.get_by_role("link", name="before").click()
    page.wait_for_function(READY)
    page.get_by_role("link", name="compare", exact=True).click()
    page.wait_for_function(READY)
    assert page.locator("#compare-choosers").get_by_label("First").locator("option:checked").inner_text() == "before"
    go(page, "runs")
    page.get_by_role("link", name="elsewhere").click()
    page.wait_for_function(READY)
    assert page.get_by_role("link", name="compare", exact=True).count() == 0


def test_samples_are_searched_for_a_text(open_page, compared):
    page = open_page("samples", compared)
    page.get_by_label("Text").fill("TOLD 1")
    page.get_by_label("Text").press("Enter")
    page.wait_for_function(READY)
    page.wait_for_function("document.getElementById('samples-said').textContent.includes('of 11')")
    page.get_by_label("Text").fill("nowhere")
    page.get_by_label("Text").press("Enter")
    page.wait_for_function("document.getElementById('samples-said').textContent === 'No sample fits'")


def test_the_overview_names_the_findings_and_a_link_opens_one(open_page):
    page = open_page()
    page.locator("#runs summary").first.click()
    page.get_by_role("link", name="F-001").first.click()
    page.wait_for_selector("#findings #F-001[open]")
    assert page.url.endswith("#findings/F-001")
    assert page.locator("#findings details.entry[open]").count() == 1
