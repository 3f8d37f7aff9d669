"""Slows down all requests to an endpoint together when it reports a rate limit.

A server that gets too many requests refuses some of them (429), and may say how long to wait (Retry-After). A refusal
has three effects on all requests:

pause         No request starts before the wait is over. Each request then waits for an additional random time, up to
              half the wait, so that they do not all come back at once.
concurrency   The limit on requests in flight is halved. It grows again by one each time that as many answers as the
              limit have arrived (additive increase, multiplicative decrease, as in TCP: RFC 5681).
backing off   If the server names no wait, or one that is too short, the wait doubles until a request is accepted.

Requests that were in flight when the pause began count as one refusal, even if several of them are refused too.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_MOST_DOUBLINGS = 30


class Throttle:
    """Lets requests to an endpoint start. All times are those of the event loop, in seconds."""

    def __init__(self, concurrency: int, longest_wait: float) -> None:
        """`concurrency`: maximum number of requests in flight. `longest_wait`: the longest pause in seconds, without
        the random part."""
        self._most, self._longest_wait = concurrency, longest_wait
        self.slots = float(concurrency)
        """How many requests may be in flight; rounded down when it is used."""
        self._in_flight = 0
        self._freed = asyncio.Event()
        self._paused_at = self._until = self._first = float("-inf")
        """When the last pause began, when it ends, and when the first request after it was sent."""
        self._wait, self._pauses = 0.0, 0
        """Seconds of the last pause, and how many pauses in a row, including the last one, were too short."""
        self._refused_since: float | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Waits for a free slot and for the end of the pause, and takes the slot. Yields the time of the start."""
        while self._in_flight >= int(self.slots):
            self._freed.clear()
            await self._freed.wait()
        self._in_flight += 1
        try:
            while (left := self._until - _now()) > 0:
                await asyncio.sleep(left + random.uniform(0, self._wait / 2))
            began = _now()
            if self._first <= self._paused_at:
                self._first = began
            yield began
        finally:
            self._in_flight -= 1
            self._freed.set()

    def passed(self) -> None:
        """Call this when a request has been answered."""
        self._pauses, self._refused_since = 0, None
        self.slots = min(self._most, self.slots + 1 / self.slots)

    def refused(self, began: float, asked: float | None) -> float:
        """Call this when a request has been refused.

        Args:
            began: when the request was sent.
            asked: how many seconds the server asks to wait; None if it does not say.

        Returns how many seconds have passed since the first refusal after the latest answer.
        """
        now, doubled = _now(), 0.0
        if self._refused_since is None:
            self._refused_since = now
        if began > self._paused_at:
            # if the refused request is not the first after the pause, the pause was long enough for others
            self._pauses = self._pauses + 1 if began == self._first else 1
            self._paused_at = now
            self.slots = max(1.0, self.slots / 2)
            doubled = 2.0 ** min(self._pauses - 1, _MOST_DOUBLINGS)  # 1, 2, 4 ...
        # at the first refusal, the wait is what the server asks for, even if it is 0
        wait = min(doubled if asked is None else max(asked, doubled - 1), self._longest_wait)
        if now + wait > self._until:
            self._until, self._wait = now + wait, wait
        return now - self._refused_since


def _now() -> float:
    return asyncio.get_running_loop().time()
