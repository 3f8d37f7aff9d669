import asyncio
import itertools
import random
from collections import Counter

import pytest

from lab.config.evaluation import EndpointConfig
from lab.engines.engine import Request
from lab.engines.throttle import Throttle
from lab.errors import ModelError
from tests.engines.rate_limited import Bucket, JumpingLoop, SimulatedEngine, refusal

SHIPPED = EndpointConfig(base_url="http://127.0.0.1:1/v1", model="adder")


@pytest.fixture
def jumping(monkeypatch):
    monkeypatch.setattr(asyncio.events, "new_event_loop", JumpingLoop)


def ask(bucket, header=True, latency=0.5, questions=120, config=SHIPPED):
    """The engine that asked, and its completions in order."""
    engine = SimulatedEngine(config, bucket, header, latency)
    found = {}
    for batch in engine.generate([Request(str(i), 8) for i in range(questions)]):
        found |= batch
    return engine, [found[i] for i in range(questions)]


@pytest.mark.slow
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("latency", [0.01, 0.5, 8])
def test_sixty_requests_a_minute_with_the_shipped_settings_leave_no_question_unanswered(jumping, header, latency):
    bucket = Bucket(rate=1, burst=16)
    _, found = ask(bucket, header, latency)
    assert Counter(completion.finish_reason for completion in found) == {"stop": 120}
    assert [completion.text for completion in found] == list(map(str, range(120)))
    assert 104 <= bucket.times[-1] < 150, "the limit itself takes 104 s"
    assert len(bucket.refused) < 120


def test_the_requests_that_a_refusal_holds_back_share_its_wait_and_return_at_different_instants():
    async def scenario():
        throttle, began = Throttle(16, longest_wait=60), []

        async def one():
            async with throttle.turn() as now:
                began.append(now)

        async with throttle.turn() as now:
            throttle.refused(now, 4.0)
        await asyncio.gather(*(one() for _ in range(8)))
        return began

    began = on_a_jumping_clock(scenario())
    assert len(set(began)) == 8
    assert 4 <= min(began) < max(began) <= 6
    assert max(began) - min(began) > 0.5


def test_nothing_is_sent_while_a_pause_lasts(jumping):
    bucket = Bucket(rate=0.1, burst=16)
    ask(bucket, latency=0.5, questions=40)
    assert bucket.pauses
    for begins, ends in bucket.pauses:
        assert not [time for time in bucket.times if begins < time < ends - 1e-6]


def test_concurrency_falls_with_a_refusal_and_recovers_with_answers(jumping):
    bucket = Bucket(rate=1, burst=16)
    engine, _ = ask(bucket, latency=4, questions=120)
    assert engine.most_at_once[15] == (0, 16)
    first = bucket.refused[0]
    # all of the first refusals are of requests that were sent before any of them was known
    assert max(count for time, count in engine.most_at_once if first < time < first + 8) <= 8
    bucket.rate = 1e9  # the limit is gone
    bucket.refused.clear()
    engine, _ = ask(bucket, latency=4, questions=600)
    assert max(count for _, count in engine.most_at_once) == 16


def on_a_jumping_clock(coroutine):
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(coroutine)


async def turns(throttle, count):
    """Takes `count` turns one after the other, each refused without a header. Returns when they began."""
    began = []
    for _ in range(count):
        async with throttle.turn() as now:
            began.append(now)
            throttle.refused(now, None)
    return began


def test_refusals_in_a_row_double_the_pause_up_to_the_longest():
    began = on_a_jumping_clock(turns(Throttle(16, longest_wait=20), 9))
    for gap, wait in zip([b - a for a, b in itertools.pairwise(began)], [1, 2, 4, 8, 16, 20, 20, 20], strict=True):
        assert wait <= gap <= 1.5 * wait


def test_refusals_of_what_was_under_way_count_once_and_an_answer_gives_back_one_place_a_round():
    async def scenario():
        throttle = Throttle(16, longest_wait=60)
        for _ in range(16):
            throttle.refused(0.0, 1.0)
        after_one = throttle.slots
        await asyncio.sleep(5)
        throttle.refused(5.0, 1.0)
        fallen = throttle.slots
        for _ in range(4):
            throttle.passed()
        once = throttle.slots
        for _ in range(1000):
            throttle.passed()
        return after_one, fallen, once, throttle.slots

    after_one, fallen, once, in_the_end = on_a_jumping_clock(scenario())
    assert (after_one, fallen, in_the_end) == (8, 4, 16)
    assert 4.8 < once < 5


def test_a_wait_that_proves_too_short_is_not_trusted_twice():
    async def scenario():
        throttle, began = Throttle(16, longest_wait=60), []
        for _ in range(5):
            async with throttle.turn() as now:
                began.append(now)
                throttle.refused(now, 0.0)
            await asyncio.sleep(0.001)
        return began

    began = on_a_jumping_clock(scenario())
    gaps = [b - a for a, b in itertools.pairwise(began)]
    assert gaps[0] < 0.01
    assert gaps[1] >= 1
    assert gaps[3] >= 7


def test_a_pause_that_was_long_enough_for_one_request_is_not_lengthened_for_the_next():
    """If answers take long, the refusal of the next request comes before the answer to the first."""

    async def scenario():
        throttle, began = Throttle(16, longest_wait=60), []
        throttle.refused(0.0, 1.0)
        for _ in range(6):
            async with throttle.turn():
                await asyncio.sleep(0.01)
            async with throttle.turn() as now:
                began.append(now)
                throttle.refused(now, 1.0)
        return began

    began = on_a_jumping_clock(scenario())
    assert max(b - a for a, b in itertools.pairwise(began)) < 1.6


def test_a_limit_that_lets_nothing_through_ends_the_run_when_patience_does(jumping):
    bucket = Bucket(rate=1e-9, burst=4)
    config = SHIPPED.model_copy(update={"patience": 600.0})
    with pytest.raises(ModelError, match=r"accepts no request \(429: slow down\).*resume=true"):
        ask(bucket, header=False, questions=20, config=config)
    assert 600 <= bucket.times[-1] < 600 + 2 * 90
    assert len(bucket.times) < 40


class Empty(SimulatedEngine):
    """An account without credit."""

    async def answered(self, body):
        self.bucket.times.append(asyncio.get_running_loop().time())
        raise refusal({"retry-after": "1"}, type="insufficient_quota", code="insufficient_quota")


def test_an_account_without_credit_ends_the_run_at_once(jumping):
    engine = Empty(SHIPPED, Bucket(1, 16), header=True, latency=0)
    with pytest.raises(ModelError, match=r"accepts no request \(429: slow down\)"):
        list(engine.generate([Request(str(i), 8) for i in range(120)]))
    assert engine.bucket.times == [0] * len(engine.bucket.times)
    assert len(engine.bucket.times) <= 16


@pytest.mark.slow
def test_the_clock_that_jumps_goes_as_the_real_one_does(monkeypatch):
    """The same questions to the same bucket, 40 times as fast, take as many seconds with real waits as without; more on
    a busy machine."""

    def seconds():
        random.seed(0)
        bucket = Bucket(rate=40, burst=16)
        _, found = ask(bucket, latency=0.02, questions=80)
        assert {completion.finish_reason for completion in found} == {"stop"}
        return bucket.times[-1] - bucket.times[0]

    real = seconds()
    monkeypatch.setattr(asyncio.events, "new_event_loop", JumpingLoop)
    jumping = seconds()
    assert (80 - 16) / 40 <= jumping <= 2.4
    assert real >= 0.7 * jumping
