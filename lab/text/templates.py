"""Ways to ask for a sum in running text: some are for training, others are kept for testing.

A template gives the text before, between and after the two numbers. The numbers stay as they are written, for instance
reversed, so templates work with every format of integers.
"""

from typing import Literal

from lab.numbers.sampling import Problem, philox
from lab.text.examples import Example
from lab.text.prompts import around_operands
from lab.text.wording import Wording

TRAINING = (
    "{a} + {b} =",
    "{a}+{b} =",
    "Add two numbers: {a} + {b} =",
    "Compute {a} + {b}. Answer:",
    "The sum of {a} and {b} is",
    "Q: {a} + {b}?\nA:",
    "Add {a} and {b}. The result is",
    "{a} and {b} together make",
    "In total, {a} plus {b} equals",
    "Yesterday we counted {a} birds and today {b}, so in all we have seen",
    "The shop sold {a} books in spring. In summer it sold {b}. Together that is",
    "First 21 + 43 = 64. Now {a} + {b} =",
    "A note: 5 people came. Add up {a} and {b}:",
    "def test():\n    assert {a} + {b} ==",
    "x = {a}\ny = {b}\nx + y =",
    "Start with {a}, then add {b}. You have",
    "He paid {a} dollars for the house and {b} for the garden, which comes to",
    "The first village has {a} people, the second {b}. When both meet in the square, they are",
    "{a} plus {b} is",
    "Please give me the total of {a} and {b}. Certainly:",
    "I walked {a} steps before lunch and another {b} steps after it. My phone says that I walked",
    "| a | b | a + b |\n| {a} | {b} |",
    "On page 7 it says: adding {a} to {b} yields",
    "There were {a} ants in the old nest, until {b} more moved in, so that afterwards there lived",
    "What is {a} plus {b}? It is",
    "My grandmother had {a} beans in one jar and {b} in the other; when she poured them into one, there were",
    "If you take {a} and increase it by {b}, you get",
    "total = {a} + {b}\nprint(total)  #",
    "We know that 41 + 14 = 55. By the same method, {a} + {b} =",
    "Sum: {a} & {b} ->",
    "The river carried {a} logs on Monday. On Tuesday, after the rain, {b} came down. The sawmill therefore received",
    "How much is {a} and {b}? Let me think. It is",
    "A farmer with {a} sheep marries a farmer with {b} sheep, and now their flock counts",
    "Dear Tom, please check the invoice of the 3 rooms: {a} and {b} add up to",
    ">>> {a} + {b}\n",
    "print({a} + {b})  # prints",
    "User: what's {a}+{b}\nAssistant: That's",
    "<p>{a} + {b} = <b>",
    "- first: {a}\n- second: {b}\n- sum:",
    "Evaluate ({a}) + ({b}). The value is",
    "There is a shelf with {a} jars and a cellar with {b}; the whole house holds",
    "After {a} we added {b}, and the result was",
    "It rained all day. We played a game in which I scored {a} and she scored {b}. Our points together:",
    "The capital of France is Paris. {a} + {b} equals",
    "Some exercises. 1) 11 + 22 = 33. 2) {a} + {b} =",
    "Ann has {a} coins. Ben has {b} coins. Altogether they have",
    "Two trains carried {a} and {b} passengers, making a total of",
    "a={a}, b={b}, a+b=",
    "Can you tell me what {a} added to {b} gives? Of course, it gives",
    "The museum had {a} visitors last year and {b} this year. Over both years it welcomed",
    "Exercise 12. Work out {a} + {b}. Solution:",
    "def add(x, y):\n    return x + y\n\nassert add({a}, {b}) ==",
    "In the north of the country {a} trees were planted, while volunteers in the south planted {b}. The newspaper "
    "wrote that the two campaigns, which had begun on the same spring morning, had planted",
    "I know that 23 + 32 = 55 and that the sky is blue; I also know that {a} + {b} =",
    "Debit: {a}. Credit: {b}. Sum of both:",
    "Teacher: How many are {a} apples and {b} apples?\nPupil: They are",
    "{a} added to {b} makes",
    "Letters arrived all week: {a} before Thursday, then {b} more. The postman had delivered",
    "The lamp was old and gave little light. She opened the ledger, found the two entries {a} and {b}, and wrote their "
    "sum under the line:",
    "Joining a rope of {a} metres to one of {b} metres gives a rope whose length in metres is",
    "One warehouse stores {a} bolts and the other {b}. The foreman, who has kept the books for many years and "
    "never makes a mistake with them, counts everything twice and finds that together they store",
    "It was late when the two ships came in. The first had brought {a} sacks of rice, and after the men had rested "
    "for an hour by the harbour wall and the tide had turned, the second brought {b}. In the morning the merchant "
    "held",
    "Remember two numbers: {a} and {b}. Now forget about them for a while and think of the sea, the wind and the "
    "gulls over the old lighthouse. What was their sum? It was",
    "# The function below returns the total of its two arguments and is tested once\n"
    "def total(first, second):\n    return first + second\n\nprint(total({a}, {b}))\n# output:",
    "From: Ann\nTo: Ben\nSubject: the numbers\n\nHello Ben, the first count is {a}. I was on holiday last week, so "
    "the second count is only from today: it is {b}. Please put the sum into the report. Thank you!\n\nReply: the "
    "sum is",
    "{a} people live east of the river. Few of them have ever crossed it, since the bridge fell long ago. West of "
    "it live {b}. The whole valley is home to",
)
"""Templates that training problems use, besides the benchmark's own words."""

VALIDATION = (
    "Please tell me how much {a} and {b} come to. They come to",
    "The bakery made {a} loaves before noon, and {b} after that. The day's work was",
    "Problem: find {a} + {b}. Result:",
    "first = {a}\nsecond = {b}\nassert first + second ==",
    "A comet passed the old observatory, where {a} stars had been listed. A younger astronomer, working through "
    "cold nights with a better glass, listed another {b}, none of them known before. The new catalogue therefore "
    "lists",
    "You surely know that 24 + 42 = 66. And you know as well that {a} + {b} =",
    "Paid: {a}. Still to pay: {b}. Full price:",
    "Child: What do {a} marbles and {b} marbles make?\nMother: They make",
    "{a} increased by {b} equals",
    "During the war {a} letters reached the village, then {b} more once it was over. The archive keeps all of "
    "them, in number",
    "He wrote {a} on the wall. Under it he wrote {b}, drew a line with a ruler, thought for a moment, and under "
    "the line he wrote their sum, which is",
    "If one road is {a} metres long and goes on for {b} metres more, then its whole length in metres is",
)
"""Templates that no training problem uses; designs may be compared on them."""

HELD_OUT = (
    "{a} and {b} added up come to",
    "Two flocks of geese met over the lake, one of {a} birds and one of {b}. The new flock had",
    "let p = {a};\nlet q = {b};\nconsole.log(p + q); //",
    "Question 4: what do you get when you add {b} after {a}? Answer:",
    "The clerk stamped {a} forms on Monday. By Friday he had stamped {b} more. His total for the week was",
    "SELECT {a} + {b};\n->",
    "In her diary she noted that the tree had borne {a} apples in its first years and {b} since then, all in all",
    "Income was {a} in the first half of the year and {b} in the second, for a yearly income of",
    "It is well known that 13 + 31 = 44. Less well known is that {a} + {b} =",
    "Pour {a} grains of sand on a heap that already holds {b}. The heap now holds",
    "Captain: How many barrels are aboard?\nMate: We loaded {a} in Lisbon and {b} in Cadiz, captain. That makes",
    "When the old mill closed, {a} workers lost their places, and a year later, when the dyers across the river closed "
    "as well, another {b}. The town had lost, in jobs,",
)
"""Templates that no training problem uses, and on which no design was chosen."""


def worded(template: str, item: Example) -> Example:
    """An example of integer addition, rewritten in the words of a template."""
    before, between, after = around_operands(item.problem)
    a, _, b = item.prompt.removeprefix(before).removesuffix(after).partition(between)
    return Example(template.format(a=a, b=b), item.completion, item.problem)


class ManyTemplates(Wording):
    """Writes problems as another wording does, but draws their words: those of the wording, or of a training template.

    `luck` decides the draw; without luck, the wording's own words are used.
    """

    def __init__(self, wording: Wording) -> None:
        super().__init__()
        self.wording = wording

    def example(self, problem: Problem, luck: int | None = None) -> Example:
        item = self.wording.example(problem, luck)
        choice = len(TRAINING) if luck is None else philox("template", luck).random_raw() % (len(TRAINING) + 1)
        return item if choice == len(TRAINING) else worded(TRAINING[choice], item)


def taught(wording: Wording, templates: Literal["benchmark", "many"]) -> Wording:
    """The wording of training problems.

    Args:
        wording: how numbers are written.
        templates: benchmark for the words of `wording` alone, many to draw from the training templates too.
    """
    return ManyTemplates(wording) if templates == "many" else wording
