from experiments.shared.lora_operations import lora_operations


def test_operations_worked_out_by_hand():
    # 10 frozen weights and 3 of adapters at 5 tokens, a head of 7 at 2 answers, one attention of width 4 over 5 x 5
    assert lora_operations(10, 3, 7, 4, tokens=5, answers=2, pairs=25) == 4 * 50 + 6 * 15 + 4 * 14 + 14 * 100
