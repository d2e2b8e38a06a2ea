"""Runs the compiled program for the calls that convert and verify.

A process of its own keeps a conversion's memory, threads and signals apart from the caller's. The program reports in JSON
on its standard output and talks on its standard error; that talk goes to the logger "maxport".
"""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maxport import errors
from maxport.__main__ import program

Progress = Callable[[float], Any]

_log = logging.getLogger("maxport")
_SHARE = re.compile(rb"(\d+) %  ")


def run(words: Sequence[str], progress: Progress | None = None) -> dict[str, Any]:
  """Runs `maxport WORDS --json` and returns its report; raises the exception of its error.

  Args:
    words: command and arguments.
    progress: called with the share that is done, from 0.0 to 1.0, several times a second. When it raises, the program
      stops cleanly, so that the same call resumes, and the exception goes on.
  """
  # The program draws its progress bar only where somebody can see it.
  reading, writing = pty.openpty() if progress else os.pipe()
  try:
    # A group of its own: Ctrl-C reaches us, and we tell the program, once.
    process = subprocess.Popen([program(), *words, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=writing, process_group=0)
  except BaseException:
    os.close(reading)
    raise
  finally:
    os.close(writing)
  assert process.stdout is not None
  report, output = process.stdout, []
  collector = threading.Thread(target=lambda: output.append(report.read()))
  collector.start()
  failure: list[str] = []
  try:
    for line in _lines(reading):
      _hear(line, failure, progress)
    process.wait()
  except BaseException:
    process.send_signal(signal.SIGINT)
    process.wait()
    raise
  finally:
    collector.join()
    report.close()
    os.close(reading)
  return _result(process.returncode, output[0], failure, progress)


def _lines(descriptor: int) -> Iterator[bytes]:
  """What is written, cut where the program starts a line or draws its bar anew."""
  rest = b""
  while True:
    try:
      read = os.read(descriptor, 1 << 16)
    except OSError:  # a terminal whose other side is closed
      read = b""
    *lines, rest = re.split(rb"\r?\n|\r", rest + read)
    yield from lines
    if not read:
      yield rest
      return


def _hear(line: bytes, failure: list[str], progress: Progress | None) -> None:
  if progress and line.startswith(b"\x1b[K"):
    if match := _SHARE.search(line):
      progress(int(match[1]) / 100)
    return
  text = line.replace(b"\x1b[K", b"").decode(errors="replace")
  if failure or text.startswith("maxport: "):
    failure.append(text)
  elif text.startswith("WARNING "):
    _log.warning(text.removeprefix("WARNING "))
  elif text:
    _log.info(text.removeprefix("INFO "))


def _result(status: int, output: bytes, failure: list[str], progress: Progress | None) -> dict[str, Any]:
  if failure:
    kind, _, message = "\n".join(failure).strip().removeprefix("maxport: ").partition(": ")
    raise errors.BY_KIND.get(kind, errors.InternalError)(message or kind)
  if not output:
    raise errors.InternalError(f"the program ended with status {status} and no report")
  if progress:
    progress(1.0)
  return json.loads(output)
