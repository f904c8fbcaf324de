"""How claims end."""

import os
import socket
from typing import Any, Optional

from boardd import client
from boardd import errors
from boardd.hands import Hand
from boardd.messages import Json, seconds

#: What a server keeps of a reason, at most, in bytes.
_MAX_REASON = 4096

#: The longest that a job may be delayed, in seconds.
_MAX_DELAY = 36525 * 86400.0


def new_owner() -> str:
    """Returns a name for a worker that no other one has: HOST-PID-RANDOM."""
    return '%s-%d-%s' % (socket.gethostname()[:200] or 'worker', os.getpid(), os.urandom(4).hex())


class Conclusion:
    """What becomes of a claim, and what is sent for it; None: nothing."""

    def __init__(self, ending: str, message: Optional[Json] = None) -> None:
        self.ending = ending
        self.message = message


def conclude(hand: Hand, error: Optional[BaseException], board_backs_off: bool) -> Conclusion:
    """Says how a claim ends by what its handler raised; None: it returned."""
    message: Json = {'uuid': hand.claim['uuid'], 'token': hand.claim['token']}
    if error is None:
        # Worth a try even where the lease seemed lost: only the token decides.
        return Conclusion('CONSUMED', dict(message, how='CONSUME'))
    if hand.fate != 'in hand':
        return Conclusion('LOST')
    if hand.canceled or isinstance(error, errors.CancelRequested):
        return Conclusion('CANCELED', dict(message, how='CANCEL'))
    message['reason'] = reason_of(error)
    if isinstance(error, errors.Trash) and not hand.late:
        return Conclusion('TRASHED', dict(message, how='TRASH'))
    message['how'] = 'ABANDON'
    if hand.stopping:
        return Conclusion('ABANDONED', dict(message, refundAttempt=True, retryAfter=seconds(0)))
    if not board_backs_off:
        # Then this does: from 1 s on, doubled for each attempt, up to 5 min.
        message['retryAfter'] = seconds(client.doubled(max(0, hand.claim['attempt'] - 1), 1.0, 300.0))
    if hand.late:
        message['reason'] = 'timeout'  # as the server calls it
    elif isinstance(error, errors.Retry):
        message['refundAttempt'] = True
        after = _delay(error.after)
        if after is not None:
            message['retryAfter'] = seconds(after)
    return Conclusion('ABANDONED', message)


def _delay(after: Any) -> Optional[float]:
    """What a board takes for a delay: from 0 on, and not too long. None: it is no number."""
    try:
        return min(max(0.0, float(after)), _MAX_DELAY)  # NaN is 0
    except (TypeError, ValueError, OverflowError):
        return None


def unbegun(hand: Hand) -> Json:
    """The end of a claim whose handler has not begun."""
    return {'uuid': hand.claim['uuid'], 'token': hand.claim['token'], 'how': 'ABANDON', 'reason': 'the worker stops',
            'refundAttempt': True, 'retryAfter': seconds(0)}


def reason_of(error: BaseException) -> str:
    """The text of what a handler raised, as far as a board keeps it."""
    try:
        text = str(error) or type(error).__name__
    except Exception:  # it is the handler's, and may do anything
        text = type(error).__name__
    return text.encode('utf-8', 'replace')[:_MAX_REASON].decode('utf-8', 'ignore')
