"""Generation by any OpenAI-compatible endpoint.

Up to `concurrency` requests are in flight at once. After an error that may be temporary (a failing server, a lost
connection, an unreadable answer), the request is sent again after a while, up to `attempts` times in all. If the error
persists, the completion is an api_error, and the run continues. A rate limit error (429) does not count as an attempt:
all requests slow down together (`lab.engines.throttle`) until this one is accepted. The run ends only after an error
that affects all requests: a refused key, an unknown model, an address without a server, an account without credit, a
rate limit that lets nothing through for `patience` seconds, or a request that is refused in the same words for all of
the first questions (`lab.engines.refusals`).

An answer that the server ended properly counts as an answer, even if it is empty. If it is empty and no thoughts came
with it, the question is asked once more, and the second answer counts.
"""

import asyncio
import atexit
import logging
import random
import re
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import httpx2  # the HTTP client of openai
import openai
import tenacity

from lab.config.evaluation import EndpointConfig
from lab.config.notation import FormatConfig
from lab.engines.api_key import api_key
from lab.engines.engine import GREEDY, Completion, Request, Sampling
from lab.engines.refusals import PARAMETERS, FirstQuestions, remedy
from lab.engines.throttle import Throttle
from lab.errors import ModelError
from lab.text.examples import Prompt

_CONNECT_SECONDS = 10
_LONGEST_REASON = 300
_SHORTEST_SECRET = 8
"""Shorter keys, such as the EMPTY of a local server, are not secret, and could be part of an answer by chance."""
_ENDED = ("stop", "length", "content_filter", "tool_calls", "function_call")
"""The finish reasons of OpenAI's API. An answer with one of them is complete, even if it is empty."""
_THOUGHTS = ("thinking", "reasoning")

Body: TypeAlias = dict[str, Any]
"""The JSON object of a request."""


class EndpointEngine:
    format = FormatConfig()

    def __init__(self, config: EndpointConfig, key: str | None = None) -> None:
        """
        Args:
            config: the endpoint.
            key: its key, "" for none; by default, that of the environment variable that the config names.

        Raises ConfigError if the variable does not hold a key.
        """
        self.config = config
        self._key = api_key(config) if key is None else key
        self._first = FirstQuestions(0, config.concurrency)
        self._budget = "max_tokens"
        self._reached = False
        for name in ("openai", "httpx2"):  # they would report every request
            logging.getLogger(name).setLevel(logging.WARNING)

    def check(self, request: Request) -> None:
        """Does nothing: the endpoint applies the chat template."""

    def count_tokens(self, text: str) -> int:
        """The number of characters: an upper bound for answers, because no ASCII character needs two tokens."""
        return len(text)

    def tokens_needed(self, prompt: Prompt, completion: str) -> None:
        """None, because only the endpoint has the tokenizer."""

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. Each completion is returned as soon as it arrives. Do not call it in a running event loop.

        Raises ModelError if the endpoint refuses the key or all of the first questions, does not know the model, or
        cannot be reached.
        """
        todo = {i: request for i, request in enumerate(requests) if i not in done}
        self._first = FirstQuestions(len(todo), self.config.concurrency, resumed=len(todo) < len(requests))
        ready: dict[int, Completion] = {}
        arrived = asyncio.Event()
        with asyncio.Runner() as runner:
            answering = runner.get_loop().create_task(self._answer_all(todo, sampling, ready, arrived))
            answering.add_done_callback(lambda _: arrived.set())
            # leaving the context cancels all requests in flight if the caller stops early
            with _cancelled_at_exit(answering, runner):
                while not answering.done():
                    runner.run(arrived.wait())
                    arrived.clear()
                    # before the first answer, errors may come from a wrong address rather than from the questions
                    if ready and self._reached:
                        batch = dict(ready)
                        ready.clear()
                        yield batch
            if error := answering.result():
                raise error

    async def _answer_all(
        self, todo: dict[int, Request], sampling: Sampling, ready: dict[int, Completion], arrived: asyncio.Event
    ) -> Exception | None:
        """Fills `ready`. Returns the error that ended the work early, or None."""
        waiting, workers = iter(todo.items()), min(self.config.concurrency, len(todo))
        throttle = Throttle(self.config.concurrency, self.config.longest_wait)

        async def work(client: openai.AsyncOpenAI) -> None:
            for i, request in waiting:
                body = self._body(request, sampling, i)
                ready[i] = await self._answer(client, throttle, body)
                arrived.set()
                if self._first.all_refused:
                    raise ModelError(self._refusal_of_all(ready[i].api_error, body))
                if not self._reached and len(ready) == workers:
                    what = f"the endpoint {self.config.base_url} cannot be reached ({ready[i].api_error})"
                    raise ModelError(f"{what}; is its server running, and is engine.base_url right?")

        try:
            async with self._client() as client, asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(work(client))
        except ExceptionGroup as errors:
            return errors.exceptions[0]

    def _client(self) -> openai.AsyncOpenAI:
        # `_attempt` limits the time of an attempt; the client's timeout only limits the silence between two packets
        timeout = openai.Timeout(None, connect=min(_CONNECT_SECONDS, self.config.timeout / 2))
        key = self._key or "none"
        return openai.AsyncOpenAI(base_url=self.config.base_url, api_key=key, timeout=timeout, max_retries=0)

    def _body(self, request: Request, sampling: Sampling, index: int) -> Body:
        body: Body = {"model": self.config.model}
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if sampling.top_p not in (None, 1):
            body["top_p"] = sampling.top_p
        if sampling.seed is not None and sampling.temperature != 0:
            body["seed"] = sampling.seed_of(index)
        if isinstance(request.prompt, str):
            return body | {"prompt": request.prompt, "max_tokens": request.max_tokens}
        messages = [message._asdict() for message in request.prompt]
        return body | {"messages": messages, self._budget: request.max_tokens}

    async def _answer(self, client: openai.AsyncOpenAI, throttle: Throttle, body: Body) -> Completion:
        """The completion or, if no attempt succeeded, an api_error whose seconds include all attempts and waits."""
        began = time.perf_counter()
        try:
            completion = await self._with_retries(client, throttle, body)
        except _ERRORS as error:
            reason, status = self._reason(error), _status(error)
            out_of_patience = isinstance(error, openai.RateLimitError)
            # after a first answer, 403 and 404 concern the question or are temporary
            if out_of_patience or status in (401, 402) or (status in (403, 404) and not self._reached):
                raise ModelError(self._refusal(status, reason)) from None
            if not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
                self._reached = True
            if not _may_pass(error):
                self._first.refuse(status, reason)
            return Completion("", 0, 0, time.perf_counter() - began, "api_error", api_error=reason)
        self._reached = True
        self._first.answer()
        if completion.ended and not completion.text.strip() and not completion.reasoning:
            with suppress(*_ERRORS):  # then the empty answer stands
                return await self._with_retries(client, throttle, body)
        return completion

    async def _with_retries(self, client: openai.AsyncOpenAI, throttle: Throttle, body: Body) -> Completion:
        """The completion, after as many attempts as it takes. Raises the error of the last one."""
        ask = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.config.attempts),
            wait=self._wait,
            retry=tenacity.retry_if_exception(_may_pass),
            reraise=True,
        )
        return await ask(self._let_in, client, throttle, body)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Seconds until the next attempt: as many as the server asks for or, if it does not say, a random number that
        grows with each attempt."""
        longest = self.config.longest_wait
        asked = _retry_after(state.outcome.exception() if state.outcome else None)
        if asked is None:
            return tenacity.wait_random_exponential(max=longest)(state)
        return min(asked, longest) * random.uniform(1, 1.5)  # so that requests do not all come at once

    async def _let_in(self, client: openai.AsyncOpenAI, throttle: Throttle, body: Body) -> Completion:
        """One attempt, repeated after each rate limit error.

        Raises openai.RateLimitError if waiting does not help: there is no credit left, or `patience` has run out.
        """
        while True:
            async with throttle.turn() as began:
                try:
                    completion = await self._attempt(client, body)
                except openai.RateLimitError as error:
                    refused_for = throttle.refused(began, _retry_after(error))
                    if _is_out_of_credit(error) or refused_for > self.config.patience:
                        raise
                else:
                    throttle.passed()
                    return completion

    async def _attempt(self, client: openai.AsyncOpenAI, body: Body) -> Completion:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self.config.timeout):
                answer = await self._post(client, body)
        except TimeoutError:
            raise _UnusableError(f"no answer within {self.config.timeout:g} s") from None
        except (ValueError, RecursionError) as error:  # openai does not catch these errors of its decoder
            raise _UnusableError(f"not JSON: {error}") from None
        try:  # openai does not validate answers
            return self._read(answer, time.perf_counter() - began)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            raise _without_completion(answer) from None

    async def _post(self, client: openai.AsyncOpenAI, body: Body) -> Any:
        if "prompt" in body:
            return await client.completions.create(**body)
        try:
            return await client.chat.completions.create(**body)
        except openai.BadRequestError as error:
            if "max_tokens" not in body or not _wants_another_budget(error):
                raise
        self._budget = "max_completion_tokens"  # for all later requests
        body[self._budget] = body.pop("max_tokens")  # and for further attempts of this one
        return await client.chat.completions.create(**body)

    def _read(self, answer: Any, seconds: float) -> Completion:
        choice = answer.choices[0]
        said, finish = getattr(choice, "message", choice), choice.finish_reason
        text = said.content if said is not choice else choice.text
        if text is None:
            text = getattr(said, "refusal", None)  # a refusal counts as a wrong answer
        reasoning = getattr(said, "reasoning_content", None) or getattr(said, "reasoning", None) or ""
        if said is not choice and isinstance(text, list):
            text, thoughts = _text_and_thoughts(text)
            reasoning = reasoning or thoughts
        if not text and not reasoning and finish not in _ENDED:
            raise _UnusableError(f"an empty answer that did not end properly (finish_reason {finish})")
        text, finish = "" if text is None else text, finish or "stop"
        if not isinstance(text, str):
            raise TypeError
        asked, written = (int(getattr(answer.usage, f"{kind}_tokens", None) or 0) for kind in ("prompt", "completion"))
        text, finish, reasoning = (self._redacted(str(part)) for part in (text, finish, reasoning))
        return Completion(text, asked, written, seconds, finish, reasoning)

    def _reason(self, error: Exception) -> str:
        """The error in one line, without the key."""
        cause = error.__cause__ or error
        if isinstance(error, openai.APIStatusError):
            said = error.body.get("message") if isinstance(error.body, dict) else None
            text = f"{error.status_code}: {said or error.body}"
        else:
            text = str(error) if cause is error else f"{type(cause).__name__}: {cause}"
        line = " ".join(self._redacted(text).split()).rstrip(": ")
        return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]} ..."

    def _refusal_of_all(self, reason: str, body: Body) -> str:
        """The line that ends a run whose first questions are all refused."""
        told = f"the endpoint {self.config.base_url} refuses each of the first {self._first.count} questions ({reason})"
        return "; ".join(filter(None, (told, remedy(reason, body.keys() & PARAMETERS))))

    def _refusal(self, status: int, reason: str) -> str:
        where, variable = f"the endpoint {self.config.base_url}", self.config.api_key_env
        if status in (402, 429):
            return f"{where} accepts no request ({reason}); later, give the same command with resume=true"
        if status == 404:
            return f"{where} has no model {self.config.model} ({reason}); see engine.base_url and engine.model"
        if variable is None:
            return f"{where} requires a key ({reason}); name the variable that holds it in engine.api_key_env"
        if not self._key:
            return f"{where} requires a key ({reason}); put one in the environment variable {variable}"
        return f"{where} refuses the key in the environment variable {variable} ({reason}); put a valid key there"

    def _redacted(self, text: str) -> str:
        return text if len(self._key) < _SHORTEST_SECRET else text.replace(self._key, "***")


class _UnusableError(Exception):
    """An answer that contains no completion, or no answer in time."""

    def __init__(self, reason: str, status: int = 0) -> None:
        """`status`: the status that the answer itself names although its own is 200; 0 if it names none."""
        super().__init__(reason)
        self.status = status


_ERRORS = (openai.APIError, _UnusableError)


def _without_completion(answer: Any) -> _UnusableError:
    """The error for an answer without a completion. It may hold an error instead, as {"error": {"code": 400, ...}}."""
    error = getattr(answer, "error", None)
    if not error:
        return _UnusableError(f"not a completion: {answer}")
    code, said = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
    named = re.fullmatch("[1-5][0-9][0-9]", str(code))
    status = int(named[0]) if named else 0
    return _UnusableError(f"{status or 'an error instead of an answer'}: {said or error}", status)


@contextmanager
def _cancelled_at_exit(task: asyncio.Task[Any], runner: asyncio.Runner) -> Iterator[None]:
    """Cancels the task and closes its runner at the end of the context, or of Python if that comes first.

    The task is cancelled first, and ends its own tasks in turn. `Runner.close` alone would cancel all tasks at once,
    and a connection that has not begun would warn that it was never awaited. If the runner were closed after the end of
    Python, it would wait forever for a thread.
    """

    def close() -> None:
        if not task.done():
            task.cancel()
            runner.run(asyncio.wait([task]))
        runner.close()

    atexit.register(close)
    try:
        yield
    finally:
        atexit.unregister(close)
        close()


def _status(error: Exception) -> int:
    """The status of an answer; 0 if there is none, or if it is 200 and names no other."""
    return error.status_code if isinstance(error, openai.APIStatusError) else getattr(error, "status", 0)


def _may_pass(error: BaseException) -> bool:
    """Whether the error may be temporary."""
    if isinstance(error, openai.RateLimitError):
        return False  # `_let_in` has waited already
    status = _status(error) if isinstance(error, _ERRORS) else None
    return status is not None and (status in (408, 409, 429) or not 400 <= status < 500)


def _is_out_of_credit(error: openai.RateLimitError) -> bool:
    return "insufficient_quota" in (error.code, error.type)


def _text_and_thoughts(parts: list[Any]) -> tuple[str, str]:
    """The answer and the thoughts in a message content that consists of parts, such as {"type": "text", "text": "42"}.

    A thought is text, or itself consists of parts (Mistral). Raises TypeError or LookupError for other kinds of parts.
    """
    said: list[str] = []
    thought: list[str] = []
    for part in parts:
        kind = part["type"]
        if kind in _THOUGHTS:
            inner = part.get(kind) or part.get("text") or ""
            thought.append(inner if isinstance(inner, str) else _text_and_thoughts(inner)[0])
        else:
            said.append(part["refusal" if kind == "refusal" else "text"])
    return "".join(said), "".join(thought)


def _retry_after(error: BaseException | None) -> float | None:
    """Seconds until the time when the server asks to retry, or 0 if it has passed; None if the server names no time."""
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) * unit)
    with suppress(KeyError, ValueError):
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    return None


def _wants_another_budget(error: openai.BadRequestError) -> bool:
    """Whether the error is like "Unsupported parameter: 'max_tokens' ... Use 'max_completion_tokens' instead".

    A value of max_tokens that is too large gives another message, and remains an error.
    """
    said = f"{error.code} {error.param} {error}".lower()
    return "max_tokens" in said and any(word in said for word in ("unsupported", "not supported", "instead"))
