"""The one error of this package, and what a handler raises."""

from typing import Any, Dict, FrozenSet, Mapping, Optional

#: Kinds of which the same request may succeed later without a change.
RETRYABLE: FrozenSet[str] = frozenset([
    'UNAVAILABLE', 'OUTCOME_UNKNOWN', 'INTERRUPTED', 'QUOTA_EXCEEDED', 'INTERNAL'])


class BoarddError(Exception):
    """What was being done, to which job, and what sort of thing went wrong.

    ``kind`` is a word of docs/api.md, such as ``NOT_FOUND``; programs look at
    that and at nothing else. ``changed`` says whether anything was changed:
    ``'no'``, or ``'unknown'``, never "probably not".
    """

    def __init__(self, kind: str, op: str, message: str, *, job: Optional[str] = None,
                 owner: Optional[str] = None, field: Optional[str] = None, changed: str = '') -> None:
        about = op if job is None else '%s: job %s' % (op, job)
        super().__init__('%s: %s' % (about, message or kind))
        self.kind = kind
        self.op = op
        self.job = job
        self.owner = owner
        self.field = field
        self.changed = changed or ('unknown' if kind == 'OUTCOME_UNKNOWN' else 'no')

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE


def of_item(op: str, job: str, error: Mapping[str, Any]) -> BoarddError:
    """Makes the error of one item of a list."""
    return BoarddError(error.get('code') or 'INTERNAL', op, error.get('message') or '', job=job,
                       owner=error.get('owner') or None, field=error.get('field') or None)


def after_lost(error: BoarddError) -> BoarddError:
    """After a try whose answer was lost, an error may come of what that did."""
    return BoarddError('OUTCOME_UNKNOWN', error.op, 'the answer to an earlier try was lost, which may have done it; to'
                       ' the next one the server said %s: %s' % (error.kind, error), job=error.job, owner=error.owner)


def refused_later(error: BoarddError, unsure: bool) -> BoarddError:
    """The error of a change that the request names: that a later try could
    not be served does not say what became of an earlier one."""
    if unsure and error.kind in ('UNAVAILABLE', 'QUOTA_EXCEEDED'):
        return after_lost(error)
    return error


#: For answers without a detail of boardd's, such as those of a proxy.
OF_CONNECT: Dict[str, str] = {
    'canceled': 'INTERRUPTED', 'unknown': 'INTERNAL', 'invalid_argument': 'INVALID', 'deadline_exceeded': 'INTERRUPTED',
    'not_found': 'NOT_FOUND', 'already_exists': 'ALREADY_EXISTS', 'permission_denied': 'PERMISSION_DENIED',
    'resource_exhausted': 'QUOTA_EXCEEDED', 'failed_precondition': 'FAILED_PRECONDITION', 'aborted': 'ABORTED',
    'out_of_range': 'INVALID', 'unimplemented': 'UNSUPPORTED', 'internal': 'INTERNAL', 'unavailable': 'UNAVAILABLE',
    'data_loss': 'CORRUPT', 'unauthenticated': 'UNAUTHENTICATED',
}


class Trash(Exception):
    """Raised by a handler to set the job aside for a person to look at:
    another try would fail as well."""


class Retry(Exception):
    """Raised by a handler to give the job back with the attempt refunded: the
    reason was not the job's. ``after`` is in seconds; None is the board's
    back-off."""

    def __init__(self, reason: str = '', after: Optional[float] = None) -> None:
        super().__init__(reason)
        self.after = after


class Over(Exception):
    """Why what a handler still does is for nothing."""


class LeaseLost(Over):
    """The claim has ended, or may have. Somebody else may have the job."""


class CancelRequested(Over):
    """The job is to be canceled. A handler may also raise it, and it is."""


class TimedOut(Over):
    """The handler has run for as long as it may."""


class Stopping(Over):
    """The worker stops."""
