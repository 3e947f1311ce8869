"""Keys, one at a time: from a terminal, or from a pipe so that scripts can drive a session.

A terminal is given back as it was found, however the session ends: by an exception, Ctrl-C, SIGTERM or a hang-up. It is
also given back while the session is suspended with Ctrl-Z.
"""

import codecs
import os
import re
import select
import signal
import sys
import termios
import tty
from collections import deque
from types import TracebackType
from typing import Any

_TOKEN = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.)|.", re.DOTALL)
_BEGUN = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*|O)?\Z")
_NAMES = {
    **dict.fromkeys(("\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    **dict.fromkeys(("\x7f", "\b"), "backspace"),
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\r": "\n",
    "\x1b": "escape",
}
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_REST_OF_A_KEY = 0.05  # seconds until what follows an escape character is not part of one key
_ENDS = (signal.SIGTERM, signal.SIGHUP)
_HANDLED = (signal.SIGINT, *_ENDS, signal.SIGTSTP, signal.SIGWINCH)


class Pipe:
    """Characters of standard input; line feeds between them are for people's eyes."""

    interactive = False

    def __enter__(self) -> "Pipe":
        return self

    def __exit__(self, *error: object) -> None: ...

    def key(self) -> str:
        """The next character, or empty text at the end."""
        return sys.stdin.read(1)


class Terminal:
    """Standard input and output as a screen of our own. `key` also tells of a `resize`."""

    interactive = True

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._keys: deque[str] = deque()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> "Terminal":
        self._found = termios.tcgetattr(self._fd)
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        self._handlers: dict[Any, Any] = {}
        self._old_wakeup = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        try:
            for number in _HANDLED:
                self._handlers[number] = signal.signal(number, self._signalled)
            self._take()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for (
            number
        ) in self._handlers:  # a second signal must not keep us from giving the terminal back
            signal.signal(number, signal.SIG_IGN)
        self._give_back()
        signal.set_wakeup_fd(self._old_wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._woken)

    def key(self) -> str:
        """The next key: a character, the name of a special key, `resize`, or empty text at the end."""
        while not self._keys:
            ready = select.select([self._fd, self._wake], [], [])[0]
            if self._wake in ready:
                os.read(self._wake, 1024)
                return "resize"
            if not self._read():
                return ""
        return self._keys.popleft()

    def _read(self) -> bool:
        text = ""
        while True:
            try:
                data = os.read(self._fd, 1024)
            except OSError:  # the terminal is gone
                return False
            if not data or data == b"\x04":
                return False
            text += self._decoder.decode(data)
            if not _BEGUN.search(text) or not select.select([self._fd], [], [], _REST_OF_A_KEY)[0]:
                break
        for token in _TOKEN.findall(text):
            self._keys.append(_NAMES.get(token, token if len(token) == 1 else "unknown"))
        return True

    def _signalled(self, number: int, frame: object) -> None:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if number in _ENDS:
            raise SystemExit(128 + number)
        if number == signal.SIGTSTP:
            self._give_back()
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)  # we stand still here until the shell continues us
            signal.signal(signal.SIGTSTP, self._signalled)
            self._take()

    def _take(self) -> None:
        tty.setcbreak(self._fd)
        self._write(_ENTER)

    def _give_back(self) -> None:
        self._write(_LEAVE)
        try:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._found)
        except termios.error:  # there is no terminal any more
            pass

    def _write(self, text: str) -> None:
        try:
            sys.stdout.flush()
            os.write(sys.stdout.fileno(), text.encode())
        except OSError:
            pass
