"""A clock that jumps over waits, and an endpoint with a limit of requests a second."""

import asyncio
import selectors
from types import SimpleNamespace
from typing import Any

import httpx2
import openai

from lab.engines.endpoint import EndpointEngine


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that is never idle: instead of waiting for its next timer, it moves its clock to it.

    Everything else is asyncio's own, so code runs on it as usual, only without the waits.
    """

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._now


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None):
        assert timeout is not None, "nothing is left that could ever happen"
        self.loop._now += max(0.0, timeout)
        return super().select(0)


class Bucket:
    """A token bucket, the usual rate limit: `burst` requests at once, `rate` a second in the long run."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst, self.tokens, self.last = rate, burst, float(burst), 0.0
        self.times: list[float] = []
        """When requests came, including those that were refused."""
        self.refused: list[float] = []
        self.pauses: list[tuple[float, float]] = []
        """From each refusal until a request would be let in."""

    def admits(self, now: float) -> bool:
        self.tokens = min(self.burst, self.tokens + (now - (self.last if self.times else now)) * self.rate)
        self.last = now
        self.times.append(now)
        if self.tokens < 1 - 1e-9:
            self.refused.append(now)
            self.pauses.append((now, now + self.wait))
            return False
        self.tokens -= 1
        return True

    @property
    def wait(self) -> float:
        """Seconds until the next request is let in."""
        return max(0.0, 1 - self.tokens) / self.rate


def refusal(headers: dict[str, str], **error: str) -> openai.RateLimitError:
    """The error that openai raises: its body is what the answer has under "error"."""
    response = httpx2.Response(429, headers=headers, request=httpx2.Request("POST", "http://127.0.0.1/v1/completions"))
    return openai.RateLimitError("slow down", response=response, body={"message": "slow down", **error})


class SimulatedEngine(EndpointEngine):
    """The real engine with a simulated client, on whatever clock the event loop has."""

    def __init__(self, config: Any, bucket: Bucket, header: bool, latency: float) -> None:
        super().__init__(config)
        self.bucket, self.header, self.latency = bucket, header, latency
        self.in_flight = 0
        self.most_at_once: list[tuple[float, int]] = []
        """The time, and the requests in flight, whenever one is sent."""

    def _client(self) -> Any:
        return _Client(self)

    async def answered(self, body: dict[str, Any]) -> Any:
        clock = asyncio.get_running_loop()
        self.in_flight += 1
        self.most_at_once.append((clock.time(), self.in_flight))
        try:
            if not self.bucket.admits(clock.time()):
                raise refusal({"retry-after": str(self.bucket.wait)} if self.header else {})
            await asyncio.sleep(self.latency)
        finally:
            self.in_flight -= 1
        return SimpleNamespace(choices=[SimpleNamespace(text=body["prompt"], finish_reason="stop")], usage=None)


class _Client:
    def __init__(self, engine: SimulatedEngine) -> None:
        self.completions = SimpleNamespace(create=lambda **body: engine.answered(body))

    async def __aenter__(self) -> "_Client":
        return self

    async def __aexit__(self, *error: object) -> None: ...
