"""Exceptions, one for each kind of error that maxport knows.

Every exception is a `MaxportError`. Where Python has a built-in exception of the same meaning, the kind derives from
it too, so that `except FileNotFoundError` or a mapping's `KeyError` work without knowing maxport. `kind` is the name
that the command line prints and `exit_code` the status with which it ends.
"""

from __future__ import annotations


class MaxportError(Exception):
  """Base of all errors of maxport. The text says what was being done, where, what was found and what was expected."""

  kind = "internal error"
  exit_code = 70


class InvalidArgumentError(MaxportError, ValueError):
  """The caller asked for something that makes no sense."""

  kind = "invalid argument"
  exit_code = 2


class UnsupportedError(MaxportError):
  """Well formed, but not something that maxport (or MaxText) can represent."""

  kind = "unsupported"
  exit_code = 3


class NotFoundError(MaxportError, FileNotFoundError, KeyError):
  """A file, tensor, leaf or shard that must be there is not."""

  kind = "not found"
  exit_code = 4


class CorruptDataError(MaxportError, ValueError):
  """Bytes that violate their format."""

  kind = "corrupt data"
  exit_code = 5


class IoError(MaxportError, OSError):
  """The operating system refused or failed."""

  kind = "I/O error"
  exit_code = 6


class ResourceLimitError(MaxportError):
  """A documented cap was exceeded: memory, header size, descriptors, disk space."""

  kind = "resource limit"
  exit_code = 7


class InterruptedWorkError(MaxportError):
  """Stopped by a signal or by the caller; the work can be resumed."""

  kind = "interrupted"
  exit_code = 8


class InternalError(MaxportError):
  """A bug in maxport."""


#: The exception of each kind, by the kind's name.
BY_KIND = {
    error.kind: error
    for error in (InvalidArgumentError, UnsupportedError, NotFoundError, CorruptDataError, IoError,
                  ResourceLimitError, InterruptedWorkError, InternalError)
}
