"""The messages of the API that a program meets, as JSON has them.

Times are RFC 3339 in UTC, durations are seconds (``"0.5s"``), 64-bit integers
are strings of digits. What is not here is a plain dictionary.
"""

from typing import Any, Dict, List, TypedDict

from boardd import errors

Json = Dict[str, Any]


class Error(TypedDict, total=False):
    code: str
    message: str
    owner: str
    retryable: bool
    field: str


class Book(TypedDict, total=False):
    uuid: str
    name: str


class Prerequisite(TypedDict, total=False):
    uuid: str
    statuses: List[str]


class NewOperation(TypedDict, total=False):
    name: str
    input: Json
    priority: int


class Unique(TypedDict, total=False):
    key: str
    window: str
    onConflict: str


class NewJob(TypedDict, total=False):
    uuid: str
    name: str
    details: Json
    detailsRaw: Json
    priority: str
    labels: Dict[str, str]
    book: Book
    notBefore: str
    maxAttempts: int
    operations: List[NewOperation]
    after: List[Prerequisite]
    timeout: str
    unique: Unique
    batch: str


class Job(TypedDict, total=False):
    uuid: str
    name: str
    state: str
    outcome: str
    priority: str
    details: Json
    detailsRaw: Json
    labels: Dict[str, str]
    book: Book
    sequence: str
    createdAt: str
    modifiedAt: str
    owner: str
    leaseExpiresAt: str
    attempt: int
    maxAttempts: int
    notBefore: str
    after: List[Prerequisite]
    lastReason: str
    operations: List[Json]
    operationStatus: str
    operationPriority: int
    receivedAt: str
    startedAt: str
    endedAt: str
    reasons: List[str]
    claimedAt: str
    attempts: List[Json]
    claimLease: str
    logSerial: str
    log: List[Json]
    timeout: str
    unique: Unique
    batch: str
    asItWas: Json


class Claim(TypedDict, total=False):
    uuid: str
    owner: str
    token: str
    generation: str
    epoch: str
    lease: str
    leaseExpiresAt: str
    attempt: int
    job: Job
    ahead: bool


class Event(TypedDict, total=False):
    type: str
    job: Job
    at: str
    reason: str
    cursor: str
    cancelRequested: bool


def seconds(value: float) -> str:
    """Writes a duration as requests do."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise errors.BoarddError('INVALID', 'duration', 'want a number of seconds, such as 1.5, got %r' % (value,))
    return '%.3fs' % value


def parse_seconds(text: str) -> float:
    """Reads a duration of an answer; 0 for none."""
    return float(text[:-1]) if text else 0.0
