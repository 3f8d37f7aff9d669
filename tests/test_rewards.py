from pathlib import Path

import pytest

from lab import rewards
from lab.errors import TaskError
from lab.numbers.sampling import Problem, task_of
from lab.numbers.splits import split_of

SUM = Problem("add", "integer", "12", "34", "46", 2)
MAX = Problem("max", "fraction", "1/2", "2/3", "2/3", 1)


def columns(*items):
    return {name: [getattr(item, name) for item in items] for name in Problem._fields}


def test_a_right_answer_is_worth_one_and_what_follows_it_does_not_matter():
    answers = [" 46", " 46\nNext: 1 + 1 = 2", " 47", " 46", ""]
    assert rewards.nupa(answers, **columns(SUM, SUM, SUM, MAX, SUM)) == [1, 1, 0, 0, 0]


def test_the_loose_reading_finds_the_answer_in_the_text():
    answers = ["That would be 46."]
    assert rewards.nupa(answers, **columns(SUM)) == [0]
    assert rewards.nupa_loose(answers, **columns(SUM)) == [1]


def test_the_final_reading_takes_the_last_number_of_a_line_or_message():
    chat = [[{"role": "assistant", "content": r"12 + 34 is $\boxed{46}$"}]]
    assert rewards.nupa_final([" 12 + 34 = 46.", " 46, no: 47"], **columns(SUM, SUM)) == [1, 0]
    assert rewards.nupa_final(chat, **columns(SUM)) == [1]


def test_digit_match_rewards_half_a_sum():
    assert rewards.nupa_digits([" 36", " 4", " 46"], **columns(SUM, SUM, SUM)) == [0.5, 0, 1]


def test_conversations_are_read_as_chats_and_thoughts_are_not_answers():
    chat = [[{"role": "assistant", "content": "<think>5 + 5 = 10</think>12 + 34 = 46"}]]
    assert rewards.nupa_loose(chat, **columns(SUM)) == [1]


def test_problems_are_training_problems_of_all_tasks_and_lengths():
    found = rewards.problems(["add_integer", "max_fraction"], digits=(1, 3), n=60)
    assert set(zip(found["task"], found["length"], strict=True)) == {
        (task, length) for task in ("add", "max") for length in (1, 2, 3)
    }
    items = [Problem(*(row[name] for name in Problem._fields)) for row in found]
    splits = {split_of(x.representation, x.a, x.b, x.length, task_of(x).tested_lengths) for x in items}
    assert splits == {"train"}
    assert all(item.a in row["prompt"] for item, row in zip(items, found, strict=True))
    [row] = rewards.problems("add_integer", digits=(2, 2), n=1, setting="chat")
    assert row["prompt"][-1]["role"] == "user"
    with pytest.raises(TaskError, match="add_roman"):
        rewards.problems("add_roman", digits=(1, 2), n=1)


@pytest.mark.slow
def test_trls_trainer_takes_the_problems_and_the_reward(toy_model, tmp_path: Path):
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    settings = GRPOConfig(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=4,
        max_completion_length=4, use_cpu=True, bf16=False, report_to="none", logging_steps=1,
    )  # fmt: skip
    trainer = GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(toy_model),
        [rewards.nupa, rewards.nupa_digits],
        settings,
        rewards.problems("add_integer", digits=(1, 2), n=8),
        processing_class=AutoTokenizer.from_pretrained(toy_model),
    )
    trainer.train()
    logged = [row for row in trainer.state.log_history if "rewards/nupa_digits/mean" in row]
    assert logged
    assert 0 <= logged[0]["rewards/nupa_digits/mean"] <= 1
