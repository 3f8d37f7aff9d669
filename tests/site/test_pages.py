"""The site in a real Chromium, opened from disk as a reader does."""

import csv
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import matplotlib.pyplot as plt
import pytest

from lab.numbers.metrics import score
from lab.numbers.paired import Difference, holm
from lab.numbers.representations import Float, Integer
from lab.numbers.tasks import TASKS
from lab.report import report
from tests.site.site_runs import HOSTILE, LONG, NUPA, SCRATCH, estimate, nupa_part, nupa_sample, write_run

pytestmark = pytest.mark.slow

READY = """() => {
    const view = document.getElementById("view");
    return view.dataset.address === location.hash && !view.hasAttribute("aria-busy");
}"""
"""Whether the view that the address names is shown and drawn; a click changes the address before the page reacts."""


@pytest.fixture(scope="module")
def site(runs, tmp_path_factory) -> str:
    return report([runs], tmp_path_factory.mktemp("site") / "report").as_uri()


@pytest.fixture(scope="module")
def window(chromium) -> tuple[Any, list[str]]:
    """One page for all tests, because opening a page takes time; and its complaints."""
    page, complaints = chromium.new_page(), []
    page.set_default_timeout(60_000)  # on a busy machine
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else complaints.append(asked.url),
    )
    return page, complaints


@pytest.fixture
def open_page(window, site) -> Iterator[Callable[..., Any]]:
    """Opens a view afresh; by the end it must have written no error and asked for nothing but files."""
    page, complaints = window

    def opened(view: str = "", url: str = site) -> Any:
        page.goto("about:blank")
        page.goto(f"{url}#{view}" if view else url, wait_until="commit")
        page.wait_for_function(READY)
        return page

    yield opened
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert complaints == []


def go(page: Any, view: str) -> None:
    page.evaluate(f"location.hash = '{view}'")
    page.wait_for_function(READY)


def choose(page: Any, label: str, value: str) -> None:
    """Changes a choice, which the page draws anew."""
    page.get_by_label(label, exact=True).select_option(value)
    page.wait_for_function(READY)


def rows(page: Any, caption: str) -> list[list[str]]:
    """The rows of a table, by the beginning of its caption."""
    shown = page.locator(f"[aria-label^='{caption}'] .tabulator-row")
    return [row.locator(".tabulator-cell").all_inner_texts() for row in shown.all()]


def traces(page: Any, chart: int = 0) -> list[dict[str, Any]]:
    """The name, the values and the texts of each trace of a chart."""
    told = "({name, type, x, y, z, text, hovertext}) => ({name, type, x, y, z, text, hovertext})"
    return page.evaluate(f"[...document.querySelectorAll('.chart')][{chart}].data.map({told})")


def as_table(page: Any) -> list[list[str]]:
    page.get_by_text("The same as a table").click()
    page.locator("details .tabulator-row").first.wait_for()
    shown = page.locator("details .tabulator-row")
    return [row.locator(".tabulator-cell").all_inner_texts() for row in shown.all()]


OVERVIEW = "Exact match in percent, strict reading, over all"


def test_every_view_opens_and_every_run_is_listed_with_its_state(open_page):
    page = open_page()
    listed = {row[0]: row[-1] for row in rows(page, OVERVIEW)}
    assert list(listed) == ["damaged", "first", "old", "probe", "scratch", "second", "unfinished"]
    assert "running" in listed["unfinished"]
    assert "another version" in listed["old"]
    page.get_by_label("Search").fill("scratch")
    page.get_by_label("Search").press("Enter")
    page.wait_for_function(READY)
    assert page.locator("#view .choosers [role=status]").inner_text() == "2 of 7 runs"
    page.get_by_role("link", name="scratch", exact=True).click()
    page.wait_for_function(READY)
    assert "encoding: rope" in page.locator("#view").inner_text()
    for view in ("performance", "samples", "compare", "training"):
        page.get_by_role("navigation").locator(f"a[href='#{view}']").click()
        page.wait_for_function(READY)
        assert page.locator("#view h1").inner_text() == view.title()


def test_the_overview_is_sorted_by_any_column_and_seeds_unfold(open_page, tmp_path):
    for name, right, seed in (("grid_a_0", 9, 0), ("grid_a_1", 8, 1), ("other_b", 10, 0), ("third_c", 2, 0)):
        share = {"exact_match": estimate(right, 10)}
        config = f"seed: {seed}\n{SCRATCH.replace('0.2M', name[:5])}"
        write_run(tmp_path, name, config, summary={"version": 1, "lengths": {"add_integer": {"2": share}}})
    page = open_page(url=report([tmp_path], tmp_path / "report").as_uri())
    names = lambda: [row[0].partition(" ")[0] for row in rows(page, OVERVIEW)]  # noqa: E731
    assert names() == ["grid_a", "other_b", "third_c"]
    heading = page.locator(".tabulator-col", has_text="exact match")
    heading.click()
    assert names() == ["third_c", "grid_a", "other_b"]
    heading.click()
    assert names() == ["other_b", "grid_a", "third_c"]
    page.locator(".tabulator-data-tree-control").click()
    page.get_by_role("link", name="grid_a_1").click()
    page.wait_for_function(READY)
    assert rows(page, "Exact match")[0][0] == "trained lengths"


def test_models_tasks_metric_and_kind_of_chart_can_be_chosen(open_page):
    page = open_page("performance")
    assert page.locator("#view figcaption").all_inner_texts() == ["add, integer", "max, float"]
    first, second = traces(page)
    # two models in two ranges each; L and XL were not measured
    assert [(one["name"], one["type"], len(one["y"])) for one in (first, second)] == [
        ("first", "bar", 2),
        ("second", "bar", 2),
    ]
    assert second["text"][0] == "83 % (68-92), n = 36"
    page.get_by_text("Tasks: all of 2").click()
    page.get_by_role("checkbox", name="add, integer").check()
    page.wait_for_function(READY)
    assert page.locator("#view figcaption").all_inner_texts() == ["add, integer"]
    page.get_by_text("Models: first, second").click()
    page.get_by_label("Filter models").fill("scratch")
    page.get_by_role("checkbox", name="scratch", exact=True).check()
    page.wait_for_function(READY)
    choose(page, "Show", "length")
    assert [one["name"] for one in traces(page)] == ["first", "second", "scratch"]
    assert "90 % (60-98), n = 10" in str(as_table(page))
    choose(page, "Metric", "dlength")
    assert "0.5 (0.1-1.5), n = 36" in str(as_table(page))


def test_at_most_a_page_of_panels_is_drawn_however_many_tasks_there_are(open_page, tmp_path):
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": {}}
    write_run(tmp_path, "run", NUPA, summary={"version": 1, "nupa": dict.fromkeys(TASKS, add)})
    page = open_page("performance", url=report([tmp_path], tmp_path / "report").as_uri())
    assert page.locator("#view figure").count() == 12
    assert page.get_by_text("1 to 12 of 53").is_visible()
    page.get_by_role("button", name="Next").click()
    page.wait_for_function(READY)
    assert page.get_by_text("13 to 24 of 53").is_visible()
    choose(page, "Show", "heat")
    assert len(traces(page)[0]["y"]) == 53


def test_charts_offer_the_readings_that_the_runs_have(open_page, tmp_path):
    parts = {
        name: nupa_part(right, 36, (3, 4))["strict"] for name, right in (("strict", 9), ("loose", 18), ("final", 27))
    }
    part = {"lengths": [3, 4], "asked": 36, "api_errors": 0, **parts}
    summary = {"version": 1, "nupa": {"add_integer": {"ranges": {"S": part}, "domains": {}, "lengths": {}}}}
    write_run(tmp_path / "runs", "read", NUPA, summary=summary)
    page = open_page("performance", url=report([tmp_path / "runs"], tmp_path / "report").as_uri())
    offered = page.get_by_label("Reading").locator("option").evaluate_all("found => found.map(one => one.value)")
    assert offered == ["strict", "loose", "final"]
    choose(page, "Reading", "final")
    assert "reading=final" in page.url
    assert traces(page)[0]["y"] == [75]


def test_a_damaged_run_is_said_to_be_damaged_and_not_plotted_first(open_page, tmp_path):
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": {}}
    summary = {"version": 1, "nupa": {"add_integer": add}}
    damaged = write_run(tmp_path, "a", NUPA, summary={**summary, "nupa": {"add_integer": add, "max_float": add}})
    (damaged / "config.yaml").write_text("[a, list")
    write_run(tmp_path, "whole", NUPA, summary=summary)
    page = open_page(url=report([tmp_path], tmp_path / "report").as_uri())
    assert "damaged" in rows(page, OVERVIEW)[0][-1]
    go(page, "performance")
    assert traces(page)[0]["name"] == "whole"


@pytest.mark.parametrize("width", [390, 1400])
def test_an_address_that_is_opened_directly_shows_its_title_below_the_header(open_page, width):
    for view in ("runs", "performance", "samples", "compare", "training"):
        page = open_page(view)
        page.set_viewport_size({"width": width, "height": 700})
        header = page.locator("header").bounding_box()
        assert page.locator("#view h1").bounding_box()["y"] >= header["y"] + header["height"], view


def test_a_bar_that_is_pointed_at_says_its_figure_with_n_and_interval(open_page):
    page = open_page("performance")
    page.locator(".chart .point path").nth(2).hover(force=True)
    page.locator(".hoverlayer .hovertext").first.wait_for()
    said = page.locator(".hoverlayer").first.text_content()
    assert "83 % (68-92), n = 36" in said
    assert "second" in said


def test_what_a_reader_chose_stands_in_the_address_and_a_link_shows_the_same(open_page):
    page = open_page("performance")
    choose(page, "Metric", "dlength")
    choose(page, "Show", "length")
    page.get_by_text("Tasks: all of 2").click()
    page.get_by_role("checkbox", name="max, float").check()
    page.wait_for_function(READY)
    shown, address = page.locator("#view figcaption").all_inner_texts(), page.evaluate("location.hash")
    assert "metric=dlength" in address
    page = open_page(address.removeprefix("#"))
    assert page.locator("#view figcaption").all_inner_texts() == shown == ["max, float"]
    assert page.get_by_label("Show").input_value() == "length"


def test_a_run_has_its_name_in_its_address_and_samples_what_was_sought(open_page):
    page = open_page()
    page.get_by_role("link", name="first").click()
    page.wait_for_function(READY)
    assert page.evaluate("decodeURIComponent(location.hash)") == "#run/first"
    page = open_page("samples/first")
    choose(page, "Outcome", "not right")
    said, address = page.locator(".pager [role=status]").inner_text(), page.evaluate("location.hash")
    assert open_page(address.removeprefix("#")).locator(".pager [role=status]").inner_text() == said == "1 to 3 of 3"


def test_a_chart_is_saved_as_a_picture_and_a_table_as_csv_that_reads_back(open_page):
    page = open_page("performance")
    page.locator(".chart").first.hover()
    with page.expect_download() as picture:
        page.locator(".modebar-btn[data-title^=Download]").first.click()
    assert picture.value.suggested_filename == "add, integer.png"
    image = plt.imread(picture.value.path())
    assert image.shape[0] >= 400
    assert len({tuple(colour) for colour in image.reshape(-1, image.shape[-1])[::97]}) > 3
    shown = as_table(page)
    with page.expect_download() as download:
        page.locator("details .save").click()
    read = list(csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8-sig"))))
    assert read == [["task", "model", "S", "M", "L", "XL"], *shown]


def test_the_heat_map_shows_a_model_or_the_difference_of_two(open_page):
    page = open_page("performance?model=first&by=heat")
    (found,) = traces(page)
    assert found["y"] == ["add, integer", "max, float"]
    assert found["text"][0] == ["8.3", "0", "", ""]
    assert found["z"][0][2] is None
    assert found["hovertext"][0][2] == "not measured"
    page = open_page("performance?model=first&model=second&by=difference")
    (found,) = traces(page)
    assert found["text"][0] == ["+75*", "0", "", ""]
    page = open_page("performance?model=first&model=second&by=heat")
    assert traces(page)[0]["text"] == [["4.2", "42"]] * 2


def test_models_are_ranked_over_what_all_of_them_were_asked(open_page):
    ranked = rows(open_page("performance"), "Ranking")
    assert [(name, n) for name, _, n in ranked] == [("second", "144"), ("first", "144")]
    assert [match.partition(" ")[0] for _, match, _ in ranked] == ["42", "4.2"]


def test_a_run_page_says_what_was_found_or_how_far_a_running_run_is(open_page, tmp_path):
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": {}}
    write_run(tmp_path, "done", NUPA, summary={"version": 1, "nupa": {"add_integer": add}})
    steps = [{"step": 10, "loss": 0.5}, {"step": 20, "loss": 0.25}, {"step": 20, "valid_loss": 0.3}]
    write_run(tmp_path, "going", f"{SCRATCH}training: {{max_steps: 1000}}\n", "running", metrics=steps)
    page = open_page("run/done", url=report([tmp_path], tmp_path / "report").as_uri())
    assert page.locator(".found li").first.inner_text().startswith("exact match, % (95 % interval), n=36: 8 ")
    go(page, "run/going")
    assert page.locator(".found li").all_inner_texts() == ["step 20 of 1,000, loss 0.250"]


def test_an_open_page_follows_a_run_that_is_running_and_keeps_its_place(open_page, tmp_path):
    metrics = write_run(tmp_path, "going", SCRATCH, "running", metrics=[{"step": 10, "loss": 0.5}]) / "metrics.jsonl"
    page = open_page("run/going", url=report([tmp_path], tmp_path / "report").as_uri())
    assert page.locator(".found li").inner_text() == "step 10, loss 0.500"
    metrics.write_text('{"step": 20, "loss": 0.25}\n')
    report([tmp_path], tmp_path / "report")
    page.wait_for_function("document.querySelector('.found li')?.textContent === 'step 20, loss 0.250'")
    assert page.url.endswith("#run/going")


def test_an_open_page_never_shows_another_run_in_place_of_its_own(open_page, window, tmp_path):
    figures = write_run(tmp_path, "b", NUPA) / "figures"
    figures.mkdir()
    (figures / "lengths.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    page = open_page(url=report([tmp_path], tmp_path / "report").as_uri())
    write_run(tmp_path, "a", NUPA)
    report([tmp_path], tmp_path / "report")
    go(page, "run/b")
    assert "runs/0/run.js is missing: reload the page" in page.locator("#view").inner_text()
    (complaint,) = window[1]
    assert "ERR_FILE_NOT_FOUND" in complaint
    window[1].clear()
    page.reload()
    page.wait_for_function("document.querySelector('#view img')?.src.endsWith('/runs/1/figures/lengths.png')")
    assert "name: b" in page.locator("#view").inner_text()


def test_errors_are_counted_by_length(open_page):
    page = open_page("performance?model=first&by=errors")
    counted = dict(zip(["task", "digits"], as_table(page)[0], strict=False))
    assert counted == {"task": "add, integer", "digits": "3"}
    shares = {one["name"]: one["y"] for one in traces(page)}
    assert shares["a run of digits too high"][0] == shares["no number found"][0] == 50


def test_samples_are_chosen_and_opened_and_hostile_text_is_text(open_page):
    page = open_page("samples/first")
    cards = page.locator(".sample")
    assert cards.count() == 20
    choose(page, "Outcome", "no number found")
    assert cards.count() == 1
    cards.first.locator("summary").click()
    box = page.get_by_role("region", name="Completion")
    shown = box.inner_text()
    assert "</script><script>document.title='owned'</script><img src=x onerror" in shown
    for code in ("␀", "␛", "U+202E", "U+D800", "U+2028"):
        assert code in shown
    assert not set("\x00\x1b\u202e\u2028") & set(shown)
    assert len(shown) < len(HOSTILE) + 60
    assert box.evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"
    assert page.title() == "Samples · The number lab"
    assert page.locator("main img[src=x]").count() == 0


def test_wrong_missing_and_surplus_digits_are_marked_and_a_long_text_is_shown_when_asked_for(open_page):
    page = open_page("samples/first")
    choose(page, "Length", "4 digits")
    card = page.locator(".sample").filter(has_text="#3")
    assert card.locator(".surplus").all_inner_texts() == ["12"]
    assert card.get_by_role("img").get_attribute("aria-label") == "truth 345, answer 12345: 3 right, 2 surplus"
    card.locator("summary").click()
    box = card.get_by_role("region", name="Completion")
    assert len(box.inner_text()) == 1000
    card.get_by_role("button", name="Show all 1,000,001 characters").click()
    page.wait_for_function("document.querySelector('.sample[open] .body').textContent.includes('7!')")
    assert box.evaluate("node => node.textContent.length") == len(LONG)
    choose(page, "Length", "3 digits")
    assert page.locator(".sample .wrong").all_inner_texts() == ["8"]


@pytest.mark.parametrize(
    ("given_text", "truth", "expected"),
    [
        ("108", "12105", ["12105", "  108"]),
        ("-5", "12", [" 12", "- 5"]),
        ("1.5", "12.125", ["12.125", " 1.5  "]),
        ("11/2", "1/12", [" 1/12", "11/ 2"]),
        ("1.25e4", "1.5e10", ["1.5 e10", "1.25e 4"]),
        ("1/2", "12", None),
    ],
)
def test_digits_stand_in_columns_as_digit_match_aligns_them(open_page, given_text, truth, expected):
    assert open_page().evaluate("both => align(...both)", [given_text, truth]) == expected


def test_columns_that_agree_are_the_digits_that_digit_match_counts(open_page):
    numbers = Random(0)
    pairs = [[str(numbers.randrange(10 ** numbers.randint(1, 12))) for _ in "ab"] for _ in range(200)]
    pairs += [[f"{a}.{b}", f"{b}.{a}"] for a, b in pairs]
    aligned = open_page().evaluate("pairs => pairs.map((both) => align(...both))", pairs)
    for (answer, truth), columns in zip(pairs, aligned, strict=True):
        form = Float if "." in truth else Integer
        same = sum(a == b != "." for a, b in zip(*columns, strict=True))
        digits = sum(map(str.isdigit, truth))
        assert same / digits == pytest.approx(score(answer, truth, form).digit_match)


def test_it_can_be_used_with_the_keyboard_alone(open_page):
    page = open_page("runs")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_role("link", name="Samples").press("Enter")
    page.wait_for_function("document.activeElement.textContent === 'Samples'")
    go(page, "samples/first")
    page.get_by_label("Task").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(READY)
    assert page.evaluate("document.activeElement.labels[0].textContent") == "Task"
    page.get_by_role("button", name="Next").first.press("Enter")
    page.wait_for_function("document.querySelector('.pager p').textContent.startsWith('21 to 40')")
    page.locator(".sample summary").first.press("Enter")
    page.locator(".sample[open] pre").nth(1).wait_for()  # prompt and completion
    fields = "[...document.querySelectorAll('main select, main input')]"
    assert page.evaluate(f"{fields}.every((field) => field.labels.length || field.ariaLabel)")


def test_training_and_the_page_of_a_probe_are_shown(open_page):
    page = open_page("training")
    assert page.locator("#view figcaption").all_inner_texts()[0] == "validation loss against steps"
    assert page.locator("#view figure").count() == 2
    choose(page, "Quantity", "learning_rate")
    assert "Not measured: learning rate of scratch." in page.locator("#view").inner_text()
    go(page, "run/probe")
    assert page.frame_locator("iframe").get_by_role("heading").inner_text() == "Attention"


def test_a_phone_shows_it_without_scrolling_sideways(open_page):
    for view in ("runs", "run/first", "performance", "performance?by=heat", "samples", "compare", "training"):
        page = open_page(view)
        page.set_viewport_size({"width": 375, "height": 700})
        page.reload()
        page.wait_for_function(READY)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, view


def test_dark_is_dark_and_print_leaves_out_what_cannot_be_pressed(open_page):
    page = open_page("performance")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("#view .choosers").is_hidden()
    assert page.locator(".chart").first.is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_a_run_of_its_own_that_scored_nothing_is_a_site_too(open_page, runs, tmp_path):
    page = open_page("performance", url=report([runs / "unfinished"], tmp_path / "report").as_uri())
    for view in ("training", "compare", "runs", "samples"):
        go(page, view)
    assert page.locator(".sample").count() == 1


def test_a_hundred_thousand_samples_and_a_thousand_runs_are_open_in_seconds(open_page, tmp_path: Path):
    texts = [f" {number}" for number in range(100_000)]
    samples = [
        nupa_sample(number, text[1:], str(number + number % 2), text, length=3 + number % 90)
        for number, text in enumerate(texts)
    ]
    write_run(tmp_path / "runs", "large", NUPA, samples=samples)
    add = {"ranges": {"S": nupa_part(3, 36, (3, 4))}, "domains": {}, "lengths": {}}
    for number in range(1000):
        write_run(tmp_path / "runs", f"run{number}", NUPA, summary={"version": 1, "nupa": {"add_integer": add}})
    url = report([tmp_path / "runs"], tmp_path / "report").as_uri()
    started = time.monotonic()
    page = open_page(url=url)
    assert "1,001 of 1,001 runs" in page.locator("#view").inner_text()
    assert page.locator(".tabulator-row").count() < 200  # those that can be seen
    go(page, "samples/large")
    choose(page, "Outcome", "right")
    seconds = time.monotonic() - started
    assert page.locator(".pager [role=status]").inner_text() == "1 to 20 of 50,000"
    assert seconds < 30  # on a busy machine


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> str:
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
    return report([folder], folder / "report").as_uri()


def test_two_runs_on_the_same_problems_are_compared_problem_by_problem(open_page, compared):
    page = open_page("compare", compared)
    offered = page.get_by_label("First", exact=True).locator("option").all_inner_texts()
    assert offered == ["after", "before", "failing"]
    choose(page, "First", "before")
    whole = Difference(both=11, gained=9, lost=1, neither=19)
    adjusted = holm([whole.p, 1.0, whole.p])
    assert rows(page, "Answers to the same problems") == [
        ["add, integer", "20", "3", "11", "1", "9", f"{adjusted[0]:.3f}"],
        ["max, integer", "20", "9", "9", "0", "0", "1.000"],
        ["all", "40", "12", "20", "1", "9", f"{adjusted[2]:.3f}"],
    ]
    assert rows(page, "In what their configs differ") == [["name", "before", "after"], ["seed", "0", "1"]]
    pairs = page.locator(".pairs")
    assert "1 to 10 of 10" in pairs.inner_text()
    choose(page, "Show", "lost")
    assert pairs.locator("details").count() == 1
    assert "#0" in pairs.locator("details").inner_text()
    assert "told 0" in pairs.locator("details").inner_text()


def test_before_a_training_comes_before_after_it(open_page, tmp_path):
    answers = [nupa_sample(index, "7", "7", " 7") for index in range(3)]
    write_run(tmp_path, "a_plain", NUPA, samples=answers)
    write_run(tmp_path, "tuned", NUPA, samples_before=answers, samples_after=answers)
    page = open_page("compare", report([tmp_path], tmp_path / "report").as_uri())
    assert page.get_by_label("First", exact=True).input_value() == "tuned, before"
    assert page.get_by_label("Second", exact=True).input_value() == "tuned, after"


def test_a_question_without_an_answer_is_not_compared_as_a_wrong_one(open_page, compared):
    page = open_page("compare/before?with=failing", compared)
    found = rows(page, "Answers to the same problems")
    assert found[0] == ["add, integer", "17", "0", "0", "0", "0", "1.000"]
    assert "None fits" in page.locator(".pairs").inner_text()


@pytest.mark.parametrize("place", ["compare/before?with=elsewhere", "compare/nowhere", "compare/elsewhere?with=before"])
def test_an_address_of_runs_that_cannot_be_compared_shows_no_others(open_page, compared, place):
    page = open_page(place, compared)
    assert "no runs here that were asked the same problems" in page.locator("#view").inner_text()
    assert page.locator(".tabulator").count() == 0
    assert page.locator(".pairs").count() == 0


def test_a_run_links_to_its_comparison(open_page, compared):
    page = open_page("run/before", compared)
    page.get_by_role("link", name="compare", exact=True).click()
    page.wait_for_function(READY)
    assert page.get_by_label("First", exact=True).input_value() == "before"
    go(page, "run/elsewhere")
    assert page.get_by_role("link", name="compare", exact=True).count() == 0


def test_samples_are_searched_for_a_text(open_page, compared):
    page = open_page("samples/before", compared)
    for text, said in (("TOLD 1", "1 to 11 of 11"), ("told", "1 to 20 of 21 or more"), ("nowhere", "None fits")):
        page.get_by_label("Text").fill(text)
        page.get_by_label("Text").press("Enter")
        page.wait_for_function(READY)
        assert page.locator(".pager [role=status]").inner_text() == said
