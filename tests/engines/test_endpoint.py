import asyncio
import gc
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from email.utils import formatdate
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.config.evaluation import EndpointConfig, SamplingConfig
from lab.engines.endpoint import EndpointEngine
from lab.engines.engine import GREEDY, Completion, Request, Sampling
from lab.engines.from_config import open_engine
from lab.engines.refusals import PARAMETERS
from lab.errors import ConfigError, ModelError
from lab.text.examples import Message

KEY = "sk-not-for-other-eyes"
HTML = "<html><head><title>Welcome to nginx!</title></head></html>"


def sums(count, chat=False):
    """Requests, and their answers; the first number of each is its index."""
    pairs = [(i, 1000 + 17 * i) for i in range(count)]
    prompts = [f"{a} + {b} = " for a, b in pairs]
    asked = [(Message("system", "Add."), Message("user", prompt)) for prompt in prompts] if chat else prompts
    return [Request(prompt, 16) for prompt in asked], [str(a + b) for a, b in pairs]


def engine(server, **settings):
    defaults = {"base_url": server.url, "model": "adder", "longest_wait": 0.05, "timeout": 20, "attempts": 3}
    return EndpointEngine(EndpointConfig(**(defaults | settings)))


def collect(engine, requests, sampling=GREEDY, done=frozenset(), write=lambda batch: None):
    """Completions by index. Each may come only once."""
    found = {}
    for batch in engine.generate(requests, sampling, done):
        write(batch)
        assert batch
        assert not found.keys() & batch.keys()
        found |= batch
    return found


def unreliable(share, hang):
    """A server with a fault in a share of its answers. Which ones does not depend on the order of the questions."""

    def script(asked):
        generator = random.Random(f"{asked.body}/{asked.attempt}")
        if generator.random() > share:
            return asked.right()
        faults = [
            lambda: asked.reply({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "1"}),
            lambda: asked.reply({"error": "out of memory"}, status=500),
            lambda: asked.reply(HTML, status=503, headers={"content-type": "text/html"}),
            lambda: asked.reply(asked.right(), delay=hang),
            lambda: asked.reply(asked.right(), missing=20),
            lambda: asked.reply('{"choices": [{"text": "12'),
            lambda: asked.reply(HTML, headers={"content-type": "text/html"}),
            lambda: asked.reply({"error": {"message": "overloaded", "code": 503}}),
            lambda: asked.right() | {"choices": []},
            lambda: asked.answer(None, finish=None),
            lambda: asked.answer("", finish="error"),
        ]
        return generator.choice(faults)()

    return script


@pytest.mark.parametrize(
    ("chat", "path"), [(True, "/v1/chat/completions"), pytest.param(False, "/v1/completions", marks=pytest.mark.slow)]
)
def test_an_unreliable_server_costs_time_and_no_answer(serve, chat, path):
    server = serve(unreliable(0.3, hang=30))
    requests, answers = sums(300, chat)
    found = collect(engine(server, attempts=12, concurrency=16, timeout=0.4), requests)
    assert [found[i].text for i in range(300)] == answers
    assert {completion.finish_reason for completion in found.values()} == {"stop"}
    assert {asked.path for asked in server.asked} == {path}
    assert server.most_at_once <= 16
    assert len(server.asked) > 350


def test_what_fails_for_good_is_an_api_error_of_its_own_and_the_run_goes_on(serve):
    def script(asked):
        fire = asked.reply({"error": {"message": "the model\nis on fire"}}, status=500)
        return fire if asked.index in (0, 4) else asked.right()

    server = serve(script)
    requests, answers = sums(9)
    found = collect(engine(server), requests)
    for i, answer in enumerate(answers):
        if i in (0, 4):
            assert found[i] == Completion("", 0, 0, found[i].seconds, "api_error", "", "500: the model is on fire")
        else:
            assert found[i].text == answer
    assert Counter(asked.index for asked in server.asked) == {i: 3 if i in (0, 4) else 1 for i in range(9)}


def test_a_request_that_is_refused_for_what_it_says_is_not_sent_again(serve):
    statuses = [400, 413, 415, 422, 451]
    server = serve(lambda asked: asked.reply({"error": {"message": "no temperature"}}, status=statuses[asked.index]))
    found = collect(engine(server), sums(5)[0])
    assert [found[i].api_error for i in range(5)] == [f"{status}: no temperature" for status in statuses]
    assert len(server.asked) == 5


def test_a_status_that_may_pass_is_met_by_as_many_attempts_as_the_config_says(serve):
    statuses = [408, 409, 500, 502, 503, 529]
    server = serve(lambda asked: asked.reply("", status=statuses[asked.index]))
    found = collect(engine(server, attempts=4), sums(6)[0])
    assert [found[i].api_error for i in range(6)] == list(map(str, statuses))
    assert Counter(asked.index for asked in server.asked) == dict.fromkeys(range(6), 4)


UNUSABLE = [
    (HTML, {"headers": {"content-type": "text/html"}}, "not a completion: <html>"),
    ("{", {}, "not JSON: "),
    ("[" * 100_000, {}, "not JSON: "),
    ("null", {}, "not a completion: None"),
    ("[1]", {}, "not a completion: [1]"),
    ({"choices": []}, {}, "not a completion: "),
    ({"choices": "none"}, {}, "not a completion: "),
    ({"error": {"message": "no GPU left"}}, {}, "an error instead of an answer: no GPU left"),
    ({"error": "no GPU left"}, {}, "an error instead of an answer: no GPU left"),
    ({"error": {"message": "no GPU left", "code": 503}, "choices": None}, {}, "503: no GPU left"),
    ({"choices": [{"text": None}]}, {}, "an empty answer that did not end properly (finish_reason None)"),
    ({"choices": [{"text": "", "finish_reason": "abort"}]}, {}, "an empty answer that did not end properly"),
    ({"choices": [{"text": ["7"]}]}, {}, "not a completion: "),
    ('{"choices": [{"text": "7"}], "usage": {"prompt_tokens": Infinity}}', {}, "not a completion: "),
    ({"choices": [{"text": "7"}]}, {"missing": 9}, "RemoteProtocolError: peer closed connection"),
]


def test_an_answer_without_a_completion_is_asked_for_again_and_then_named(serve):
    server = serve(lambda asked: asked.reply(UNUSABLE[asked.index][0], **UNUSABLE[asked.index][1]))
    found = collect(engine(server, attempts=2), sums(len(UNUSABLE))[0])
    for i, (_, _, error) in enumerate(UNUSABLE):
        assert (found[i].finish_reason, found[i].text) == ("api_error", "")
        assert error in found[i].api_error
        assert "\n" not in found[i].api_error
        assert len(found[i].api_error) < 310
    assert Counter(asked.index for asked in server.asked) == dict.fromkeys(range(len(UNUSABLE)), 2)


@pytest.mark.slow
def test_an_answer_that_does_not_come_in_time_is_named(serve):
    server = serve(lambda asked: asked.reply(asked.right(), delay=9))
    found = collect(engine(server, attempts=2, timeout=0.7), sums(1)[0])
    assert (found[0].finish_reason, found[0].text) == ("api_error", "")
    assert found[0].api_error == "no answer within 0.7 s"


def test_a_body_that_trickles_in_is_bounded_by_the_timeout_as_a_whole():
    """Each byte comes in time; the last one would not."""
    listener = socket.create_server(("127.0.0.1", 0))

    def trickle():
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n")
            for _ in range(400):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return
                time.sleep(0.05)

    thread = threading.Thread(target=trickle)
    thread.start()
    where = SimpleNamespace(url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    began = time.perf_counter()
    found = collect(engine(where, attempts=1, timeout=0.3), sums(1)[0])
    assert found[0].api_error == "no answer within 0.3 s"
    assert time.perf_counter() - began < 10
    thread.join()
    listener.close()


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("nothing", ["", None])
@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_empty_answer_that_ended_properly_is_an_answer_and_paid_for_once(serve, chat, nothing, finish):
    server = serve(lambda asked: asked.answer(nothing, finish))
    found = collect(engine(server, attempts=4), sums(1, chat)[0])[0]
    assert (found.text, found.finish_reason, found.api_error) == ("", finish, "")
    assert len(server.asked) == 1


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("nothing", ["", None, "\n "])
def test_an_empty_answer_that_the_model_ended_is_asked_for_once_more_and_then_stands(serve, chat, nothing):
    server = serve(lambda asked: asked.answer(nothing))
    found = collect(engine(server, attempts=4), sums(1, chat)[0])[0]
    assert (found.text, found.finish_reason, found.api_error) == (nothing or "", "stop", "")
    assert len(server.asked) == 2


@pytest.mark.parametrize("empty", [{}, {"content": None}, {"content": [], "refusal": None}])
def test_a_second_answer_counts_if_the_first_is_empty(serve, empty):
    server = serve(lambda asked: asked.right() if asked.attempt > 1 else asked.answer(None, **empty))
    assert collect(engine(server), sums(1, chat=True)[0])[0].text == "1000"
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [400, 500])
def test_an_empty_answer_stands_if_it_cannot_be_asked_for_again(serve, status):
    server = serve(lambda asked: asked.answer("") if asked.attempt == 1 else asked.reply("no", status=status))
    found = collect(engine(server), sums(1)[0])[0]
    assert (found.text, found.finish_reason, found.api_error) == ("", "stop", "")


@pytest.mark.parametrize("parts", [[], None])
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_thoughts_without_an_answer_are_kept_and_not_paid_for_twice(serve, parts, name, finish):
    server = serve(lambda asked: asked.answer(parts, finish, **{name: "12 and 30"}))
    found = collect(engine(server), sums(1, chat=True)[0])[0]
    assert (found.text, found.reasoning, found.finish_reason) == ("", "12 and 30", finish)
    assert len(server.asked) == 1


TEXT_42 = {"type": "text", "text": "42"}
THOUGHT = {"type": "text", "text": "12 and 30"}


@pytest.mark.parametrize(
    ("parts", "text", "reasoning"),
    [
        ([TEXT_42], "42", ""),
        ([{"type": "text", "text": "4"}, {"type": "output_text", "text": "2"}], "42", ""),
        ([{"type": "thinking", "thinking": [THOUGHT]}, TEXT_42], "42", "12 and 30"),  # Mistral
        ([{"type": "thinking", "thinking": "12 and 30", "signature": "x"}, TEXT_42], "42", "12 and 30"),  # Anthropic
        ([{"type": "reasoning", "text": "12 and 30"}, TEXT_42], "42", "12 and 30"),
        ([{"type": "thinking", "thinking": [THOUGHT]}], "", "12 and 30"),
        ([{"type": "refusal", "refusal": "I cannot add."}], "I cannot add.", ""),
    ],
)
def test_an_answer_in_parts_is_read_and_paid_for_once(serve, parts, text, reasoning):
    server = serve(lambda asked: asked.answer(parts))
    found = collect(engine(server), sums(1, chat=True)[0])[0]
    assert (found.text, found.reasoning, found.api_error) == (text, reasoning, "")
    assert len(server.asked) == 1


@pytest.mark.parametrize("parts", [["42"], [{"text": "42"}], [{"type": "text", "text": None}], [{"type": "image_url"}]])
def test_parts_of_an_unknown_kind_are_no_completion(serve, parts):
    found = collect(engine(serve(lambda asked: asked.answer(parts)), attempts=1), sums(1, chat=True)[0])[0]
    assert found.api_error.startswith("not a completion: ")


def test_a_refusal_for_asking_too_often_does_not_count_as_an_attempt(serve):
    server = serve(lambda asked: asked.right() if asked.attempt > 5 else asked.reply("", status=429))
    found = collect(engine(server, attempts=1), sums(3)[0])
    assert [found[i].text for i in range(3)] == ["1000", "1018", "1036"]
    assert Counter(asked.index for asked in server.asked) == dict.fromkeys(range(3), 6)


@pytest.mark.parametrize(("status", "code"), [(429, "insufficient_quota"), (402, "none")])
def test_an_account_without_credit_ends_the_run_and_keeps_what_was_answered(serve, status, code):
    body = {"error": {"message": "You exceeded your current quota", "code": code}}
    server = serve(lambda asked: asked.right() if asked.index == 0 else asked.reply(body, status=status))
    found = {}
    with pytest.raises(
        ModelError, match=rf"accepts no request \({status}: You exceeded your current quota\); .*resume"
    ):
        collect(engine(server, concurrency=1), sums(50)[0], write=found.update)
    assert set(found) == {0}
    assert len(server.asked) == 2


def test_a_budget_that_went_into_thought_is_an_empty_answer_at_once(serve):
    server = serve(lambda asked: asked.answer(None, "length", reasoning_content="Let me see"))
    found = collect(engine(server), sums(1, chat=True)[0])[0]
    assert (found.text, found.finish_reason, found.reasoning) == ("", "length", "Let me see")
    assert len(server.asked) == 1


def gap(serve, retry_after, longest_wait, header="retry-after", status=429):
    """Seconds between two attempts when the server asks for a wait."""
    server = serve(
        lambda asked: (
            asked.right() if asked.attempt > 1 else asked.reply("", status=status, headers={header: retry_after})
        )
    )
    assert collect(engine(server, longest_wait=longest_wait), sums(1)[0])[0].text == "1000"
    first, second = server.asked
    return second.time - first.time


@pytest.mark.slow
@pytest.mark.parametrize("status", [429, 503])
def test_the_wait_that_a_server_asks_for_is_kept(serve, status):
    assert 1.2 <= gap(serve, "1.2", longest_wait=9, status=status) < 2.2  # unasked, it would wait one second at most


def test_a_wait_in_milliseconds_is_kept(serve):
    assert 0.3 <= gap(serve, "300", longest_wait=9, header="retry-after-ms") < 0.9


@pytest.mark.parametrize("retry_after", ["3600", "inf", formatdate(4e9, usegmt=True)])
def test_no_wait_is_longer_than_the_longest(serve, retry_after):
    assert 0.4 <= gap(serve, retry_after, longest_wait=0.4) < 1.4


@pytest.mark.parametrize("retry_after", ["0", "-5", "nan", formatdate(0, usegmt=True)])
def test_a_wait_that_is_already_over_is_no_wait(serve, retry_after):
    assert gap(serve, retry_after, longest_wait=9) < 0.3


@pytest.mark.parametrize("retry_after", ["soon", "", "Mon, 99 Foo 2026"])
def test_a_wait_that_cannot_be_read_is_a_random_one(serve, retry_after):
    assert gap(serve, retry_after, longest_wait=0.2) < 1


@pytest.mark.parametrize("concurrency", [1, 5])
def test_as_many_requests_as_the_config_says_are_in_flight_and_never_more(serve, concurrency):
    server = serve(lambda asked: asked.reply(asked.right(), delay=0.02))
    collect(engine(server, concurrency=concurrency), sums(20)[0])
    assert server.most_at_once == concurrency


def test_what_is_done_is_not_asked_for(serve):
    server = serve()
    requests, answers = sums(12)
    found = collect(engine(server), requests, done={0, 5, 11})
    assert {i: c.text for i, c in found.items()} == {i: answers[i] for i in range(12) if i not in (0, 5, 11)}
    assert len(server.asked) == 9
    assert collect(engine(server), requests, done=set(range(12))) == {}
    assert collect(engine(server), []) == {}
    assert len(server.asked) == 9


def test_a_completion_comes_as_soon_as_it_is_there(serve):
    server = serve(lambda asked: asked.reply(asked.right(), delay=9 if asked.index == 0 else 0))
    coming = engine(server).generate(sums(3)[0])
    found = {}
    while len(found) < 2:
        found |= next(coming)
    coming.close()
    assert set(found) == {1, 2}


@pytest.fixture
def quiet(caplog):
    """Nothing is left behind: no warning, no complaint of asyncio, nothing that cannot be raised."""
    gc.freeze()  # what is there already need not be searched
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.INFO):
        warnings.simplefilter("always")
        yield
        gc.collect()
    gc.unfreeze()
    assert [str(warning.message) for warning in warned] == []
    said = [record.getMessage() for phase in ("call", "teardown") for record in caplog.get_records(phase)]
    assert said == []


def wait_for(condition):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")


@pytest.mark.parametrize("fault", [None, 503])
def test_a_caller_that_stops_early_leaves_nothing_behind(serve, quiet, fault):
    """The others hang in an answer, or wait for their next attempt."""

    def script(asked):
        if asked.index == 0:
            return asked.right()
        return asked.reply("", status=fault) if fault else asked.reply(asked.right(), delay=30)

    server = serve(script)
    began = time.perf_counter()
    for batch in engine(server, attempts=99, longest_wait=30).generate(sums(20)[0]):
        assert set(batch) == {0}
        break
    assert time.perf_counter() - began < 5
    wait_for(lambda: server.connections == 0)


def test_an_interrupt_from_the_keyboard_ends_it_at_once(serve, quiet):
    server = serve(lambda asked: asked.reply(asked.right(), delay=30))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes background processes ignore it
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        collect(engine(server), sums(20)[0])
    assert time.perf_counter() - began < 5
    wait_for(lambda: server.connections == 0)


@pytest.mark.slow
def test_a_generator_that_is_still_held_at_the_end_of_python_does_not_hold_it_up(serve):
    server = serve(lambda asked: asked.reply(asked.right(), delay=0 if asked.index == 0 else 30))
    code = f"""
from lab.config.evaluation import EndpointConfig
from lab.engines.endpoint import EndpointEngine
from lab.engines.engine import Request
config = EndpointConfig(base_url="{server.url.replace("127.0.0.1", "localhost")}", model="adder")
held = EndpointEngine(config).generate([Request("0 + 7 = ", 4), Request("1 + 7 = ", 4)])
print(next(held)[0].text)
"""
    ended = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "7\n", "")


@pytest.mark.parametrize("steps", range(5))
def test_a_connection_that_has_not_begun_when_the_caller_stops_leaves_no_warning(steps, monkeypatch, recwarn):
    async def connecting(self, todo, sampling, ready, arrived):
        ready[0], self._reached = Completion("7", 1, 1, 0.1, "stop"), True
        arrived.set()
        for _ in range(steps):  # with two steps, the task starts in the event loop's last turn
            await asyncio.sleep(0)
        async with anyio.create_task_group() as connections:
            connections.start_soon(anyio.sleep_forever)

    gc.collect()
    recwarn.clear()  # what other tests left behind
    monkeypatch.setattr(EndpointEngine, "_answer_all", connecting)
    held = EndpointEngine(EndpointConfig(base_url="http://localhost:1", model="adder")).generate(sums(1)[0])
    assert next(held)[0].text == "7"
    held.close()
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


def test_an_error_of_the_caller_comes_through(serve, quiet):
    server = serve(lambda asked: asked.reply(asked.right(), delay=30 if asked.index == 1 else 0))

    def write(batch):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        collect(engine(server), sums(2)[0], write=write)
    wait_for(lambda: server.connections == 0)


def test_the_client_reports_nothing_of_its_own(serve, quiet):
    assert len(collect(engine(serve(unreliable(0.3, hang=0)), attempts=9), sums(20)[0])) == 20


@pytest.mark.parametrize(
    ("status", "settings", "words"),
    [
        (401, {"api_key_env": "LAB_TEST_KEY"}, "LAB_TEST_KEY"),
        (403, {"api_key_env": "LAB_TEST_KEY"}, "LAB_TEST_KEY"),
        (401, {}, "engine.api_key_env"),
        (404, {}, "has no model adder"),
    ],
)
def test_what_would_fail_for_every_request_ends_the_run_in_one_line(serve, quiet, monkeypatch, status, settings, words):
    monkeypatch.setenv("LAB_TEST_KEY", KEY)
    body = {"error": {"message": f"no,\nnot with {KEY}"}}
    answered = 1 if status == 401 else 0  # a key may expire during a run
    server = serve(lambda asked: asked.right() if asked.index < answered else asked.reply(body, status=status))
    found = {}
    with pytest.raises(ModelError) as caught:
        collect(engine(server, concurrency=1, **settings), sums(50)[0], write=found.update)
    assert set(found) == set(range(answered)), "what has been answered is kept"
    line = str(caught.value)
    assert len(server.asked) == answered + 1
    assert all(part in line for part in (words, server.url, f"({status}: no, not with "))
    assert "\n" not in line
    assert "api_key_env" not in settings or KEY not in line


TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model."
EXTRA = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]


@pytest.mark.parametrize("count", [2, 4, 300])
@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize(
    ("status", "body", "sampling", "words"),
    [
        (
            400,
            {"error": {"message": TEMPERATURE, "param": "temperature"}},
            GREEDY,
            f"(400: {TEMPERATURE}); sampling.temperature=null leaves temperature out",
        ),
        (422, {"detail": EXTRA}, Sampling(1.0), "sampling.seed=null leaves seed out"),
        (400, "top_p must be 1", Sampling(1.0, 0.9), "(400: top_p must be 1); sampling.top_p=null leaves top_p out"),
        (400, "top_p must be 1", GREEDY, "(400: top_p must be 1)"),  # it was not sent
        (400, "max_tokens is too large", GREEDY, "; benchmark.max_tokens sets max_tokens"),
        (413, {"error": {"message": "too\nlarge"}}, GREEDY, "(413: too large)"),
        (200, {"error": {"message": "no temperature", "code": 400}}, GREEDY, "(400: no temperature); sampling.temp"),
        (200, {"error": {"message": "no", "code": "422"}}, GREEDY, "(422: no)"),
    ],
)
def test_what_is_refused_for_each_of_the_first_questions_ends_the_run_in_the_servers_words(
    serve, quiet, count, concurrency, status, body, sampling, words
):
    server = serve(lambda asked: asked.reply(body, status=status))
    found = {}
    with pytest.raises(ModelError) as caught:
        collect(engine(server, concurrency=concurrency), sums(count)[0], sampling, write=found.update)
    line = str(caught.value)
    first = min(count, max(8, concurrency))
    assert f"the endpoint {server.url} refuses each of the first {first} questions (" in line
    assert words in line
    assert "\n" not in line
    assert line.endswith((")", "left out", "leaves temperature out", "leaves seed out", "leaves top_p out", "_tokens)"))
    assert first <= len(server.asked) < first + concurrency
    assert {completion.finish_reason for completion in found.values()} == {"api_error"}


def test_words_with_digits_are_those_of_the_question(serve):
    """Such as a count of tokens, or the question itself."""
    told = "the prompt {} cannot be read (request f0{})"
    server = serve(lambda asked: asked.reply(told.format(asked.prompt, asked.index), status=400))
    with pytest.raises(ModelError, match="refuses each of the first 8"):
        collect(engine(server, concurrency=1), sums(30)[0])


def refusing(indices):
    return lambda asked: asked.reply("too long", status=400) if asked.index in indices else asked.right()


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("refused", [{0}, set(range(7)), {3, 4, 5}, set(range(1, 40))])
def test_refusals_of_some_questions_do_not_end_a_run(serve, concurrency, refused):
    found = collect(engine(serve(refusing(refused)), concurrency=concurrency), sums(40)[0])
    assert {i for i in range(40) if found[i].api_error} == refused


def test_a_single_question_that_is_refused_does_not_end_a_run(serve):
    assert collect(engine(serve(refusing({0}))), sums(1)[0])[0].api_error == "400: too long"


def test_what_was_refused_before_is_no_reason_to_end_a_resumed_run(serve):
    """But a server that refuses many more than that is."""
    requests = sums(40)[0]
    server = serve(refusing(set(range(40))))
    found = collect(engine(server, concurrency=1), requests, done=set(range(33)))
    assert {completion.api_error for completion in found.values()} == {"400: too long"}
    with pytest.raises(ModelError, match="refuses each of the first 8"):
        collect(engine(server, concurrency=1), requests, done={0, 1})


def test_different_refusals_of_the_first_questions_do_not_end_a_run(serve):
    words = ["too long", "not allowed", "too rude"]
    server = serve(lambda asked: asked.reply(words[asked.index % 3], status=400))
    assert len(collect(engine(server), sums(20)[0])) == 20


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_an_error_in_the_body_of_a_200_ends_the_run_as_its_own_status_does(serve, status):
    server = serve(lambda asked: asked.reply({"error": {"message": "no such luck", "code": status}}))
    with pytest.raises(ModelError, match=rf"\({status}: no such luck\)"):
        collect(engine(server, concurrency=1), sums(5)[0])
    assert len(server.asked) == 1


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize("count", [3, 3000])
def test_an_endpoint_that_cannot_be_reached_ends_the_run_and_blames_no_question(quiet, count):
    where = SimpleNamespace(url=f"http://127.0.0.1:{closed_port()}/v1")
    began = time.perf_counter()
    found = {}
    with pytest.raises(ModelError, match=r"cannot be reached \(ConnectError: .*engine\.base_url") as caught:
        collect(engine(where, concurrency=8), sums(count)[0], write=found.update)
    assert found == {}
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - began < 5


def test_a_server_that_dies_after_an_answer_costs_api_errors_only(serve):
    server = serve()
    asking = engine(server, concurrency=2)
    assert collect(asking, sums(1)[0])[0].text == "1000"
    asking.config = asking.config.model_copy(update={"base_url": f"http://127.0.0.1:{closed_port()}/v1"})
    found = collect(asking, sums(5)[0])
    assert len(found) == 5
    assert all(c.finish_reason == "api_error" and c.api_error.startswith("ConnectError: ") for c in found.values())


@pytest.mark.parametrize(
    ("value", "words"), [(None, "not set"), ("", "not set"), (" \n", "not set"), ("clé", "header")]
)
def test_a_named_variable_without_a_key_is_a_mistake_in_the_config(monkeypatch, value, words):
    monkeypatch.delenv("LAB_TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("LAB_TEST_KEY", value)
    with pytest.raises(ConfigError, match=f"^engine.api_key_env: .*LAB_TEST_KEY .*{words}") as caught:
        engine(SimpleNamespace(url="http://127.0.0.1:1/v1"), api_key_env="LAB_TEST_KEY")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "0.0.0.0:8000", socket.gethostname()]
)
def test_a_server_on_this_machine_may_need_no_key(monkeypatch, host):
    monkeypatch.delenv("LAB_TEST_KEY", raising=False)
    open_engine(EndpointConfig(base_url=f"http://{host}/v1", model="adder", api_key_env="LAB_TEST_KEY"))
    with pytest.raises(ConfigError, match="not a key"):
        open_engine(EndpointConfig(base_url=f"http://{host}/v1", model="adder", api_key_env=KEY))


@pytest.mark.parametrize("host", ["api.openai.com", "10.0.0.7:8000", "localhost.example.org", "127.0.0.1.example.org"])
def test_a_server_elsewhere_needs_the_key_that_the_config_names(monkeypatch, host):
    monkeypatch.delenv("LAB_TEST_KEY", raising=False)
    with pytest.raises(ConfigError, match="LAB_TEST_KEY should hold a key"):
        open_engine(EndpointConfig(base_url=f"https://{host}/v1", model="adder", api_key_env="LAB_TEST_KEY"))


def test_a_server_on_this_machine_that_does_need_a_key_says_so(serve, monkeypatch):
    monkeypatch.delenv("LAB_TEST_KEY", raising=False)
    server = serve(lambda asked: asked.reply({"error": {"message": "who are you?"}}, status=401))
    asking, _ = open_engine(EndpointConfig(base_url=server.url, model="adder", api_key_env="LAB_TEST_KEY"))
    with pytest.raises(ModelError, match=r"requires a key \(401: who are you\?\); put one in .* LAB_TEST_KEY"):
        collect(asking, sums(3)[0])


def test_the_key_is_sent_and_never_comes_back(serve, monkeypatch):
    monkeypatch.setenv("LAB_TEST_KEY", f"{KEY}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-someone-else")

    def script(asked):
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        match asked.index:
            case 0:
                return asked.answer(f"your key is {KEY}.", reasoning_content=f"I was told {KEY}")
            case 1:
                return asked.reply({"error": {"message": f"{'x' * 280} {KEY} {'y' * 50}"}}, status=400)
            case 2:
                return asked.reply(f"Bearer {KEY}", status=500, headers={"content-type": "text/plain"})
            case 3:
                return asked.reply({"choices": [], "echo": f"{KEY}"})
            case _:
                return asked.right()

    found = collect(engine(serve(script), api_key_env="LAB_TEST_KEY"), sums(5, chat=True)[0])
    assert (found[0].text, found[0].reasoning) == ("your key is ***.", "I was told ***")
    assert "Bearer ***" in found[2].api_error
    assert "***" in found[3].api_error
    assert found[4].text == "1072"
    assert KEY[:5] not in str(found), "nor does a piece of it, where an error is cut short"


def test_a_key_that_is_no_secret_leaves_the_answers_as_they_are(serve, monkeypatch):
    monkeypatch.setenv("LAB_TEST_KEY", "1000")
    assert collect(engine(serve(), api_key_env="LAB_TEST_KEY"), sums(1)[0])[0].text == "1000"


def test_without_a_named_variable_no_key_is_taken_from_elsewhere(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    server = serve()
    collect(engine(server), sums(1)[0])
    assert server.asked[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_what_was_thought_is_kept_apart_from_what_was_said(serve, field):
    server = serve(lambda asked: asked.answer("7", **{field: "3 + 4"}))
    found = collect(engine(server), sums(1, chat=True)[0])[0]
    assert (found.text, found.reasoning) == ("7", "3 + 4")


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("finish", ["stop", "length", "content_filter"])
def test_counts_of_tokens_and_the_reason_to_finish_are_the_servers(serve, chat, finish):
    server = serve(lambda asked: asked.answer("seven", finish))
    request = sums(1, chat)[0]
    found = collect(engine(server), request)[0]
    assert found == Completion("seven", len("0 + 1000 = "), 5, found.seconds, finish)
    assert 0 < found.seconds < 5


def test_a_server_that_counts_nothing_and_gives_no_reason_is_understood(serve):
    server = serve(lambda asked: asked.answer("7") | {"usage": None, "choices": [{"text": "7", "finish_reason": None}]})
    found = collect(engine(server), sums(1)[0])[0]
    assert found == Completion("7", 0, 0, found.seconds, "stop")


def test_seconds_are_those_of_the_attempt_that_was_answered(serve):
    server = serve(lambda asked: asked.right() if asked.attempt > 1 else asked.reply("", status=500, delay=0.5))
    assert collect(engine(server), sums(1)[0])[0].seconds < 0.4


def test_a_request_says_what_is_asked_and_nothing_that_goes_without_saying(serve):
    server = serve()
    asking = engine(server)
    collect(asking, sums(1)[0])
    assert server.asked[-1].body == {"model": "adder", "prompt": "0 + 1000 = ", "max_tokens": 16, "temperature": 0.0}
    collect(asking, sums(1, chat=True)[0], Sampling(0.6, 0.9, seed=3))
    body = server.asked[-1].body
    assert isinstance(body.pop("seed"), int)
    messages = [{"role": "system", "content": "Add."}, {"role": "user", "content": "0 + 1000 = "}]
    assert body == {"model": "adder", "messages": messages, "max_tokens": 16, "temperature": 0.6, "top_p": 0.9}


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({}, {"temperature": 0.0}),
        ({"temperature": 1.0}, {"temperature": 1.0, "seed": True}),
        ({"temperature": None}, {}),
        ({"temperature": None, "seed": None, "top_p": None}, {}),
        ({"temperature": None, "top_p": 0.9, "seed": 3}, {"top_p": 0.9, "seed": True}),
        ({"temperature": 1.0, "seed": None}, {"temperature": 1.0}),
        ({"temperature": 0.6, "top_p": None}, {"temperature": 0.6, "seed": True}),
    ],
)
def test_what_is_null_in_a_config_is_not_sent(serve, config, sent):
    server = serve()
    collect(engine(server), sums(1)[0], Sampling.of(SamplingConfig(**config), run_seed=7))
    body = server.asked[0].body
    assert {name: name == "seed" or value for name, value in body.items() if name in PARAMETERS[:3]} == sent


def test_each_request_has_a_seed_of_its_own_and_the_same_when_only_some_are_asked(serve):
    server = serve()

    def seeds(seed, done=frozenset()):
        start = len(server.asked)
        collect(engine(server), sums(9)[0], Sampling(1.0, seed=seed), done)
        return {asked.prompt: asked.body["seed"] for asked in server.asked[start:]}

    whole = seeds(0)
    assert len(set(whole.values())) == 9
    assert seeds(0, done={0, 1, 2}).items() < whole.items()
    assert not set(seeds(1).values()) & set(whole.values())


def test_a_model_that_wants_its_budget_under_another_name_gets_it(serve):
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    refusal = {"error": {"message": message, "param": "max_tokens", "code": "unsupported_parameter"}}

    def script(asked):
        if "max_tokens" in asked.body:
            return asked.reply(refusal, status=400)
        if asked.attempt == 2:
            return asked.reply("", status=500)
        assert asked.body["max_completion_tokens"] == 16
        return asked.right()

    server = serve(script)
    requests, answers = sums(20, chat=True)
    found = collect(engine(server, concurrency=4), requests)
    assert [found[i].text for i in range(20)] == answers
    assert sum("max_tokens" in asked.body for asked in server.asked) <= 4, "it is learned once"


@pytest.mark.parametrize("chat", [False, True])
def test_a_budget_that_is_too_large_is_not_sent_again_under_another_name(serve, chat):
    message = (
        "'max_tokens' or 'max_completion_tokens' is too large: 16. This model's maximum context length is 8 tokens"
    )
    server = serve(lambda asked: asked.reply({"error": {"message": message}}, status=400))
    assert collect(engine(server), sums(1, chat)[0])[0].api_error == f"400: {message}"
    assert len(server.asked) == 1


@given(st.text("0123456789.e/+- ", max_size=50))
def test_at_most_one_token_is_counted_for_each_character(text):
    assert engine(SimpleNamespace(url="http://127.0.0.1:1/v1")).count_tokens(text) == len(text)


def test_a_refusal_is_an_answer(serve):
    server = serve(lambda asked: asked.answer(None, refusal="I cannot add."))
    found = collect(engine(server), sums(2, chat=True)[0])
    assert {completion.text for completion in found.values()} == {"I cannot add."}
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [403, 404])
def test_once_something_was_answered_a_forbidden_question_costs_itself_only(serve, status):
    server = serve(lambda asked: asked.reply("no", status=status) if asked.prompt.startswith("3 ") else asked.right())
    found = collect(engine(server, concurrency=1), sums(6)[0])
    assert [i for i in range(6) if found[i].api_error] == [3]
    assert found[3].api_error.startswith(str(status))


def test_an_empty_answer_after_thought_is_not_paid_for_twice(serve):
    server = serve(lambda asked: asked.answer("", reasoning="it is 1000"))
    assert collect(engine(server), sums(1, chat=True)[0])[0].text == ""
    assert len(server.asked) == 1


def test_a_key_in_the_place_of_its_variable_is_not_repeated():
    with pytest.raises(ConfigError, match="should be the name of an environment variable") as caught:
        EndpointEngine(EndpointConfig(base_url="http://127.0.0.1:1/v1", model="x", api_key_env=KEY))
    assert KEY not in str(caught.value)
