import torch

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.config.schema import Variation
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS
from lab.text.examples import IGNORED
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from lab.tune.problem_sets import Selection
from lab.tune.sequences import SequenceCollator, notated_problems, sequence_loss
from tests.from_scratch import built

ADD = TASKS["add_integer"]
NOTATION = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [ADD])
TOKENIZER = build_tokenizer(NOTATION.vocabulary)


def rows(*texts: str, index: int = 0) -> list[dict]:
    """The rows of problems that are written as in "2 1 <add_integer> 9 = 1 2"."""
    ids, found = TOKENIZER.get_vocab(), []
    for place, text in enumerate(texts):
        words = ["<begin>", *text.split(), "<end>"]
        cut = words.index("=") + 1
        numbers = [ids[word] for word in words]
        found.append({"index": index + place, "prompt_ids": numbers[:cut], "completion_ids": numbers[cut:]})
    return found


def words(ids) -> str:
    return " ".join(NOTATION.vocabulary[i] if i != IGNORED else "." for i in ids)


def test_labels_stand_where_the_answer_is_predicted_and_nowhere_else():
    batch = SequenceCollator(built(NOTATION.vocabulary, size="0.2M"), 1, 0)(
        rows("2 1 <add_integer> 9 = 1 2", "1 <add_integer> 1 = 2")
    )
    assert words(batch["input_ids"][0].tolist()) == "<begin> 2 1 <add_integer> 9 = 1 2"
    assert words(batch["shift_labels"][0].tolist()) == ". . . . . 1 2 <end>"
    assert words(batch["input_ids"][1].tolist()) == "<begin> 1 <add_integer> 1 = 2 <pad> <pad>"
    assert words(batch["shift_labels"][1].tolist()) == ". . . . 2 <end> . ."


def test_packed_problems_follow_each_other_and_have_ids_of_their_own():
    collate = SequenceCollator(built(NOTATION.vocabulary, {"coupled_ids": {"largest": 16}}, size="0.2M"), 2, 0)
    batch = collate(rows("2 1 <add_integer> 9 = 1 2", "1 <add_integer> 1 = 2", index=6))
    assert words(batch["input_ids"][0].tolist()) == (
        "<begin> 2 1 <add_integer> 9 = 1 2 <end> <begin> 1 <add_integer> 1 = 2"
    )
    assert words(batch["shift_labels"][0].tolist()) == ". . . . . 1 2 <end> . . . . . 2 <end>"
    ids = batch["position_ids"][0].tolist()
    first, second = set(ids[1:8]), set(ids[10:15])
    assert len(first) == 3  # one for the operator and "=", and two places
    assert not first & second
    again = collate(rows("2 1 <add_integer> 9 = 1 2", "1 <add_integer> 1 = 2", index=6))
    assert torch.equal(again["position_ids"], batch["position_ids"])
    others = [collate(rows("1 <add_integer> 1 = 2", "1 <add_integer> 1 = 2", index=i)) for i in range(8)]
    assert len({tuple(other["position_ids"][0].tolist()) for other in others}) > 1


def test_a_row_is_a_function_of_its_index_and_hard_cases_are_in_it():
    cells = [Cell(ADD, length) for length in (6, 7)]
    plain = notated_problems(Selection(cells, 0), "train", 40, NOTATION, TOKENIZER).examples
    hard = notated_problems(Selection(cells, 0, Variation(carries=1)), "train", 40, NOTATION, TOKENIZER).examples
    assert plain[7]["prompt_ids"] == plain[:8]["prompt_ids"][7]
    assert [row["prompt_ids"] for row in hard] != [row["prompt_ids"] for row in plain]
    for row in (plain[3], hard[3]):
        asked = words(row["prompt_ids"]).removeprefix("<begin> ").removesuffix(" =")
        a, b = (int("".join(part.split())[::-1]) for part in asked.split("<add_integer>"))
        answer = words(row["completion_ids"]).removesuffix(" <end>")
        assert NOTATION.read(answer.split(), ADD.answer) == str(a + b)


def test_the_numbers_of_a_curriculum_grow_from_stage_to_stage():
    selection = Selection([Cell(ADD, length) for length in (1, 2, 3)], 0, curriculum=3)
    rows = list(notated_problems(selection, "train", 90, NOTATION, TOKENIZER).examples)
    longest = [
        max(len(words(row["prompt_ids"]).split("<add_integer>")[0].split()) for row in rows[i : i + 30])
        for i in (0, 30, 60)
    ]
    assert longest == [2, 3, 4]  # a token begins the question


def test_loss_and_gradients_of_a_step_do_not_depend_on_how_it_is_cut_into_parts():
    """The parts have unequal numbers of answer tokens, and each counts by its tokens."""
    model = built(NOTATION.vocabulary, size="0.2M").train()
    collate = SequenceCollator(model, 1, 0)
    several = rows("2 1 <add_integer> 9 = 1 2", "1 <add_integer> 1 = 2", "9 9 9 <add_integer> 1 = 0 0 0 1")

    def gradient(*batches) -> torch.Tensor:
        model.zero_grad()
        answers = sum((batch["shift_labels"] != IGNORED).sum() for batch in batches)
        for batch in batches:
            (sequence_loss(model, batch) / answers).backward()
        return model.model.layers[0].mlp.up_proj.weight.grad.clone()

    whole = gradient(collate(several))
    torch.testing.assert_close(gradient(collate(several[:2]), collate(several[2:])), whole, atol=1e-6, rtol=1e-4)
