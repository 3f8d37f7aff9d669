"""What all requests to an endpoint do about its rate limit, together.

A server that is asked too often refuses a request (429), and may say how long to wait (Retry-After). Three things
follow, for all requests at once:

pause         No request starts before the wait is over. Each then waits a random while longer, up to half the wait, so
              that they do not all come back at the same instant.
concurrency   Half as many requests may be in flight. Each answer lets it grow again, by one for as many answers as
              there are places (additive increase, multiplicative decrease, as in TCP: RFC 5681).
backing off   If the server names no wait, or one that proves too short, the wait doubles until a request is let in.

Requests that were under way as the pause began say nothing new if they are refused too: all of them count once.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_MOST_DOUBLINGS = 30


class Throttle:
    """Times are those of the event loop, in seconds."""

    def __init__(self, concurrency: int, longest_wait: float) -> None:
        """`concurrency`: requests in flight at most. `longest_wait`: seconds of a pause at most, without its jitter."""
        self._most, self._longest_wait = concurrency, longest_wait
        self.places = float(concurrency)
        """Requests that may be in flight, rounded down."""
        self._in_flight = 0
        self._freed = asyncio.Event()
        self._paused_at = self._until = self._first = float("-inf")
        """When the last pause began and ends, and when the first request since it was sent."""
        self._wait, self._pauses = 0.0, 0
        """Seconds of the last pause, and how many pauses in a row have proved too short, itself included."""
        self._refused_since: float | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Waits for a place and for the end of the pause, and keeps the place; yields the time at which it begins."""
        while self._in_flight >= int(self.places):
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
        """A request was answered."""
        self._pauses, self._refused_since = 0, None
        self.places = min(self._most, self.places + 1 / self.places)

    def refused(self, began: float, asked: float | None) -> float:
        """A request that began then was refused, and asked to wait so many seconds; None if for no time in particular.

        Returns for how many seconds no request has been answered, from the first refusal on.
        """
        now, doubled = _now(), 0.0
        if self._refused_since is None:
            self._refused_since = now
        if began > self._paused_at:
            # if it is not the first, the pause was long enough for others
            self._pauses = self._pauses + 1 if began == self._first else 1
            self._paused_at = now
            self.places = max(1.0, self.places / 2)
            doubled = 2.0 ** min(self._pauses - 1, _MOST_DOUBLINGS)  # 1, 2, 4 ...
        # the first time, the server's word is enough, even if it is 0
        wait = min(doubled if asked is None else max(asked, doubled - 1), self._longest_wait)
        if now + wait > self._until:
            self._until, self._wait = now + wait, wait
        return now - self._refused_since


def _now() -> float:
    return asyncio.get_running_loop().time()
