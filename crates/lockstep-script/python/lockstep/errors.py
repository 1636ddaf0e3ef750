"""What can go wrong, by kind. Every error of this package is a `LockstepError`."""

from __future__ import annotations

from typing import Sequence


class LockstepError(RuntimeError):
    """Something that Lockstep could not do; its text says what, and what to do."""


class GangEnded(LockstepError):
    """The worker beside this process has closed its socket: the gang is being ended or begun again."""


class GangTimeout(LockstepError, TimeoutError):
    """Other ranks did not come in time. `missing` has their numbers."""

    def __init__(self, message: str, missing: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.missing = list(missing)


class Refused(LockstepError, ValueError):
    """The worker refused a request: a data set that is not there, a checkpoint that cannot be read."""


class NotInGang(LockstepError):
    """This needs a gang, and the script was started without one."""


class ProgramNotFound(LockstepError):
    """The program `lockstep` is neither beside this package nor in PATH."""


class RunFailed(LockstepError):
    """A run that this process started has failed. `result` has what is known of it."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


# Ray's name for it.
TrainingFailedError = RunFailed
