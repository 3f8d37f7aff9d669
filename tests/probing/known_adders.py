"""The three adders of the benchmark that most tests try their instrument on."""

from lab.probing.benchmark.families import attention_carry, llama, ones_first
from lab.probing.benchmark.known import FieldSums, KnownAdder

TOKENS = FieldSums().tokens
llama_adder = llama.adder


def native_adder(seed: int = 0) -> KnownAdder:
    return ones_first.adder("native adder", ones_first.Design(), seed)


def tricase_adder(seed: int = 0) -> KnownAdder:
    return attention_carry.adder("tricase adder", False, seed)
