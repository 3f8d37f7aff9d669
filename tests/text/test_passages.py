from lab.config.finetuning import DataConfig
from lab.numbers.additions import addition
from lab.text.docstrings import TRAINING, docstrings
from lab.text.formats import taught
from lab.text.passages import BREAKS, LONGEST, AfterPassage
from lab.text.wording import Reworded, Wording

ITEM = Wording().example(addition("uniform", 3, 0, 0))


def test_a_passage_is_a_stretch_of_the_training_documents_and_ends_in_a_break():
    text, wording = docstrings(TRAINING), Reworded(Wording(), [AfterPassage(1)])
    for seed in range(100):
        item = wording.example(ITEM.problem, seed)
        passage = item.prompt.removesuffix(ITEM.prompt)
        assert item == (passage + ITEM.prompt, ITEM.completion, ITEM.problem)
        assert passage.endswith(BREAKS)
        assert len(passage) <= LONGEST + 2
        assert passage.strip() in text


def test_the_share_of_problems_after_a_passage_is_as_asked_and_a_draw_is_the_samples_own():
    wording = Reworded(Wording(), [AfterPassage(0.25)])
    drawn = [wording.example(ITEM.problem, seed).prompt for seed in range(2_000)]
    assert 400 < sum(prompt != ITEM.prompt for prompt in drawn) < 600
    assert drawn[:50] == [wording.example(ITEM.problem, seed).prompt for seed in range(50)]
    assert wording.example(ITEM.problem) == ITEM


def test_training_asks_in_drawn_words_after_drawn_passages():
    wording = taught(Wording(), DataConfig(tasks=["add_integer"], templates="many", passages=1))
    ends = {wording.example(ITEM.problem, seed).prompt[-12:] for seed in range(200)}
    assert len(ends) > 10
    assert type(taught(Wording(), DataConfig(tasks=["add_integer"]))) is Wording
