"""An endpoint on 127.0.0.1 that adds two integers, or does whatever else a test wants of it."""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass(frozen=True)
class Asked:
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    attempt: int
    """1 if this prompt comes for the first time."""
    time: float

    @property
    def prompt(self) -> str:
        return self.body["prompt"] if "prompt" in self.body else self.body["messages"][-1]["content"]

    @property
    def index(self) -> int:
        """The first number in the prompt, which in the tests is the index of the request."""
        return int(self.prompt.split()[0])

    def answer(self, text: Any, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
        """The body of an answer as OpenAI forms it."""
        chat = {"message": {"role": "assistant", "content": text, **message}}
        choice = {"index": 0, "finish_reason": finish, **({"text": text} if "prompt" in self.body else chat)}
        usage = {"prompt_tokens": len(self.prompt), "completion_tokens": len(text or "")}
        return {"id": "0", "object": "answer", "created": 0, "model": "adder", "choices": [choice], "usage": usage}

    def right(self) -> dict[str, Any]:
        return self.answer(str(sum(map(int, re.findall(r"\d+", self.prompt)))))

    def reply(self, body: Any, **how: Any) -> "Reply":
        return Reply(body, **how)


@dataclass(frozen=True)
class Reply:
    body: Any
    """Text, or an object that is sent as JSON."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0
    """Seconds."""
    missing: int = 0
    """Bytes that are promised and never sent."""


class Server:
    def __init__(self, script: Callable[[Asked], Reply | dict[str, Any]]) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.connections = self.at_once = self.most_at_once = 0
        self._attempts: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=256), self._loop
        )
        self._listener = listening.result()
        self.url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}/v1"

    def close(self) -> None:
        async def cancel() -> None:
            self._listener.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        finally:
            self.connections -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request. Returns whether another may follow."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        prompt = json.dumps(body.get("prompt", body.get("messages")))
        self._attempts[prompt] += 1
        asked = Asked(first.split()[1], body, headers, self._attempts[prompt], self._loop.time())
        self.asked.append(asked)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            reply = self.script(asked)
            reply = reply if isinstance(reply, Reply) else Reply(reply)
            # if a client gives up while it waits, that is noticed at once, as by a real server
            gone = asyncio.ensure_future(reader.read(1))
            try:
                done, _ = await asyncio.wait({gone}, timeout=reply.delay) if reply.delay else (set(), None)
            finally:
                gone.cancel()
            if done:
                return False
        finally:
            self.at_once -= 1
        json_body = not isinstance(reply.body, str)
        content = (json.dumps(reply.body) if json_body else reply.body).encode()
        described = {"content-type": "application/json", "content-length": str(len(content) + reply.missing)}
        head = "".join(f"{name}: {value}\r\n" for name, value in (described | reply.headers).items())
        writer.write(f"HTTP/1.1 {reply.status} Whatever\r\n{head}\r\n".encode() + content)
        await writer.drain()
        return not reply.missing


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """serve(script) starts a server that answers as `script(asked)` says: by default, with the right sum."""
    servers: list[Server] = []

    def start(script: Callable[[Asked], Reply | dict[str, Any]] = Asked.right) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
