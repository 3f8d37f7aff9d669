"""The leaderboard ranks what qualifies and shows hostile names as text."""

from html.parser import HTMLParser

from lab.smallest_adder.leaderboard import board, published, write

COUNTS = {"parameters": 56, "trainable": 56, "buffers_free": 56, "by_data_ptr": 17, "bits": 1792, "literals": 33}
HOSTILE = "x</script><script>alert(1)</script>|y\n# z"


def verdict(parameters: int, qualified: bool = True, verified: str = "2026-01-01") -> dict:
    return {
        "qualified": qualified,
        "right": 10_010 if qualified else 12,
        "problems": 10_010,
        "counts": COUNTS | {"parameters": parameters},
        "category": "trained",
        "content": 0.0,
        "seeds": 40,
        "verified": verified,
        "verdicts": [{"layer": "accuracy", "passed": qualified, "reason": HOSTILE}],
    }


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.add(tag)


def test_the_smallest_that_qualifies_is_first_and_the_earlier_of_two_alike():
    found = board(
        {
            "large": verdict(100),
            "late": verdict(56, verified="2026-02-02"),
            "cheat": verdict(1, qualified=False),
            "early": verdict(56),
        }
    )
    assert [(row[0], row[1]) for row in found.rows] == [("1", "early"), ("2", "late"), ("3", "large"), ("-", "cheat")]
    assert found.rows[0][3] == "1 of 1"
    assert found.rows[3][3] == "0 of 1; failed: accuracy"
    assert found.better == {0, 1, 2}
    assert dict(zip(found.columns, found.rows[0], strict=True)).items() >= {
        "parameters": "56", "literals": "33", "tokens": "0.0000", "seeds": "40"
    }.items()  # fmt: skip


def test_a_submission_that_could_not_be_counted_has_a_row():
    (row,) = board(
        {"x": verdict(1, qualified=False) | {"counts": None, "content": None, "right": 0, "problems": 0}}
    ).rows
    assert row[4:7] == ("", "", "")


def test_hostile_names_are_text_in_both_files(tmp_path):
    write({HOSTILE: verdict(5)}, tmp_path)
    page = (tmp_path / "leaderboard.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert "&lt;script&gt;alert(1)" in page
    markdown = (tmp_path / "leaderboard.md").read_text()
    assert "<script" not in markdown
    assert "\n# z" not in markdown
    assert r"\|y" in markdown


def test_the_page_needs_nothing_else_and_knows_light_and_dark(tmp_path):
    write({"one": verdict(5)}, tmp_path)
    page = (tmp_path / "leaderboard.html").read_text()
    assert "prefers-color-scheme: dark" in page
    assert not any(word in page for word in ("http", "src=", "href=", "@import", "url("))


def test_published_records_are_a_table_of_their_own():
    rows = published().rows
    assert ("trained", "on the board", "March 2026, the smallest", "36") in rows
    assert ("trained", "claimed", "board issue 83", "28") in rows
    assert ("hand-coded", "submitted", "board issue 71", "1") in rows
