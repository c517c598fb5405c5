"""A headless Chromium, driven by its DevTools protocol over a local web socket.

What the page logs, and what it requests, is kept, so that tests can say that there was nothing.
"""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tornado.websocket import WebSocketClientConnection, websocket_connect

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--remote-debugging-port=0",
)
LONGEST = 60  # seconds to wait for an answer
MOST_BYTES = 64 * 2**20  # of a message: a screenshot of a long page has 5 MB


class Browser:
    """One tab.

    messages: lines of its console, and exceptions. requests: addresses that it asked for.
    """

    def __init__(self, runner: asyncio.Runner, address: str) -> None:
        self.runner = runner
        self.socket = runner.run(connect(address))
        self.number = 0
        self.messages: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol. RuntimeError: the browser refused it."""
        self.number += 1
        text = json.dumps({"id": self.number, "method": method, "params": parameters})
        self.runner.run(self._send(text))
        while (message := self._read()).get("id") != self.number:
            self._keep(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        result: dict[str, Any] = message["result"]
        return result

    async def _send(self, text: str) -> None:
        await self.socket.write_message(text)

    def _read(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.runner.run(self._receive()))
        return message

    async def _receive(self) -> str:
        text = await asyncio.wait_for(self.socket.read_message(), LONGEST)
        assert isinstance(text, str), "the browser has ended"
        return text

    async def close(self) -> None:
        """Close the web socket, and wait until the browser has, which else stays open here."""
        self.socket.close()
        while await asyncio.wait_for(self.socket.read_message(), LONGEST) is not None:
            pass

    def _keep(self, event: dict[str, Any]) -> None:
        """Keep what an event says of the console or of a request."""
        what = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.messages.append(" ".join(str(part.get("value")) for part in what["args"]))
            case "Runtime.exceptionThrown":
                self.messages.append(json.dumps(what["exceptionDetails"]))
            case "Log.entryAdded":
                self.messages.append(what["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(what["request"]["url"])

    def open(self, url: str, width: int = 900, dark: bool = False) -> None:
        """Open a page, and wait until it has drawn its charts."""
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        # Another fragment of the same file would not load it again.
        self.call("Page.navigate", url="about:blank")
        self.messages, self.requests = [], []
        self.call("Page.navigate", url=url)
        self.wait()

    def wait(self) -> None:
        """Wait until the page is not busy."""
        is_idle = "document.querySelector('main')?.getAttribute('aria-busy') === 'false'"
        self.evaluate(
            f"new Promise(done => {{const look = () => {is_idle} ? done() : setTimeout(look, 20);"
            " look()})"
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, or of the promise that it is."""
        settings = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=expression, **settings)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press a key, such as ("Tab", 9)."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def read(self, selector: str) -> str:
        """Return the text of an element, as it is shown."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))


async def connect(address: str) -> WebSocketClientConnection:
    """Open a web socket."""
    return await websocket_connect(address, max_message_size=MOST_BYTES)


@contextmanager
def open_browser(home: Path) -> Iterator[Browser]:
    """Start a browser with a new profile in a folder; it ends with the context."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={home}", "about:blank"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        with asyncio.Runner() as runner:
            browser = Browser(runner, find_tab(home))
            yield browser
            runner.run(browser.close())
    finally:
        process.terminate()
        process.wait(LONGEST)


def find_tab(home: Path) -> str:
    """Return the address of the browser's tab, once it has one."""
    for _ in range(LONGEST * 20):
        time.sleep(0.05)
        # The browser writes its port here when it listens.
        port = home / "DevToolsActivePort"
        if port.exists() and (number := port.read_text().partition("\n")[0]):
            with urlopen(f"http://127.0.0.1:{number}/json/list") as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            if tabs:
                return str(tabs[0]["webSocketDebuggerUrl"])
    raise TimeoutError("the browser has no tab")


def find_violations(browser: Browser) -> list[str]:
    """List what axe-core finds wrong on the page, with the first element of each rule."""
    library = pytest.importorskip("axe_core_python", reason="axe-core is not installed")
    browser.evaluate(f"{Path(library.__file__).with_name('axe.min.js').read_text()};0")
    return list(
        browser.evaluate(
            "axe.run().then(found => found.violations.map("
            "rule => `${rule.id}: ${rule.nodes[0].html.slice(0, 200)}`))"
        )
    )
