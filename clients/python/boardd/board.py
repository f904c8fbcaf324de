"""One board of a server."""

import datetime
import time
import uuid as uuids_
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union, overload

from boardd import client as client_
from boardd import errors
from boardd import transport
from boardd.messages import Claim, Event, Job, Json, NewJob, seconds

#: What ending one job returns, or several.
Ended = Optional[List[Optional[errors.BoarddError]]]

#: The longest single wait that a server is asked for, in seconds.
_WAIT = 30.0


class Board:
    """A method on one job raises its BoarddError; one on several returns for
    each of them what it got or its BoarddError, in the request's order.
    Durations are in seconds."""

    def __init__(self, client: 'client_.Client', name: str) -> None:
        self.client = client
        self.name = name

    def call(self, method: str, request: Optional[Mapping[str, Any]] = None, *, wait: float = 0.0) -> Json:
        """Makes any unary call of the API on this board."""
        return self.client.call(method, dict(request or {}, board=self.name), wait=wait).message

    def post(self, name: str, details: Optional[Json] = None, *, uuid: Optional[str] = None,
             priority: Optional[str] = None, labels: Optional[Dict[str, str]] = None,
             not_before: Optional[datetime.datetime] = None, max_attempts: int = 0,
             timeout: Optional[float] = None, **more: Any) -> Job:
        """Puts a job on the board. Without a uuid it gets one, which makes
        repetitions of this call safe; to post again after an error, name one.

        :param more: other fields of the API's NewJob
        """
        posting: NewJob = {'name': name, 'uuid': uuid or new_uuid()}
        if details is not None:
            posting['details'] = details
        if priority is not None:
            posting['priority'] = priority
        if labels is not None:
            posting['labels'] = labels
        if not_before is not None:
            if not isinstance(not_before, datetime.datetime):
                wrong = 'not_before: want a datetime.datetime, got %r' % (not_before,)
                raise errors.BoarddError('INVALID', 'PostJobs', wrong, field='not_before')
            posting['notBefore'] = not_before.astimezone(datetime.timezone.utc).isoformat().replace('+00:00', 'Z')
        if max_attempts:
            posting['maxAttempts'] = max_attempts
        if timeout is not None:
            posting['timeout'] = seconds(timeout)
        posting.update(more)  # type: ignore[typeddict-item]
        return _only(self.post_all([posting]))

    def post_all(self, jobs: Sequence[NewJob]) -> List[Union[Job, errors.BoarddError]]:
        """Puts jobs on the board, each by itself. Those without a uuid get
        one, in place, so that posting the same list again adds nothing twice."""
        for job in jobs:
            job.setdefault('uuid', new_uuid())
        answer = self.client.call('PostJobs', {'board': self.name, 'jobs': list(jobs)})
        return _results('PostJobs', [job['uuid'] for job in jobs], answer)

    def get(self, uuid: str) -> Job:
        return _only(self.get_all([uuid]))

    def get_all(self, uuids: Sequence[str], fields: Sequence[str] = ()) -> List[Union[Job, errors.BoarddError]]:
        answer = self.client.call('GetJobs', {'board': self.name, 'uuids': list(uuids), 'fields': list(fields)})
        return _results('GetJobs', uuids, answer)

    def ended(self, uuid: str, timeout: Optional[float] = None) -> Optional[Job]:
        """Waits until a job has ended or is in the trash, and returns it; None
        when the timeout is over first."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = _WAIT if until is None else min(_WAIT, until - time.monotonic())
            answer = self.client.call('GetJobs', {'board': self.name, 'uuids': [uuid]}, wait=max(wait, 0.001))
            if answer.message['results']:
                return _only(_results('GetJobs', [uuid], answer))
            if until is not None and time.monotonic() >= until:
                return None

    def list(self, *, states: Sequence[str] = (), filter: str = '', fields: Sequence[str] = (),
             page_size: int = 0) -> Iterator[Job]:
        """Goes through the jobs in claim order. No states: UNCLAIMED and CLAIMED."""
        request = {'states': list(states), 'filter': filter, 'fields': list(fields), 'pageSize': page_size}
        while True:
            page = self.call('ListJobs', request)
            yield from page['jobs']
            if not page['nextPageToken']:
                return
            request['pageToken'] = page['nextPageToken']

    def count(self) -> Json:
        """How many jobs the board has, as strings of digits."""
        return self.call('CountJobs')

    def claim(self, owner: str, *, uuids: Sequence[str] = (), max: int = 0, names: Sequence[str] = (), filter: str = '',
              lease: Optional[float] = None, labels: Optional[Dict[str, str]] = None, wait: float = 0.0,
              request_id: Optional[str] = None) -> List[Claim]:
        """Claims jobs. None is no error, but with uuids: then the first one
        that was not granted is, and those that were are given back. The lease
        of a claim counts from before the call: keep the time."""
        request: Json = {'board': self.name, 'owner': owner, 'uuids': list(uuids), 'max': max, 'names': list(names),
                         'filter': filter, 'workerLabels': labels or {}, 'requestId': request_id or new_uuid()}
        if lease is not None:
            request['lease'] = seconds(lease)
        answer = self.client.call('ClaimJobs', request, wait=wait).message
        claims: List[Claim] = answer['claims']
        for failure in answer['failures']:
            for claim in claims:
                self.abandon(claim, reason='another job was not granted', retry_after=0.0, refund_attempt=True)
            raise errors.of_item('ClaimJobs', failure['uuid'], failure['error'])
        return claims

    def extend(self, claims: Sequence[Claim], lease: Optional[float] = None, *, within: Optional[float] = None,
               cut: Optional[transport.Cut] = None) -> List[Union[Json, errors.BoarddError]]:
        """Makes leases begin anew, with the given length or as long as before."""
        request: Json = {'board': self.name, 'claims': [_proof(c) for c in claims]}
        if lease is not None:
            request['lease'] = seconds(lease)
        results = self.client.call('ExtendClaims', request, within=within, cut=cut).message['results']
        return [errors.of_item('ExtendClaims', c['uuid'], r['error']) if r.get('error') else r
                for c, r in zip(claims, results)]

    @overload
    def consume(self, claims: Claim) -> None: ...

    @overload
    def consume(self, claims: Sequence[Claim]) -> List[Optional[errors.BoarddError]]: ...

    def consume(self, claims: Union[Claim, Sequence[Claim]]) -> Ended:
        """Ends a claimed job as done, or several: then it returns None or the
        BoarddError of each."""
        return self._end('ConsumeJobs', claims, {})

    @overload
    def abandon(self, claims: Claim, *, reason: str = '', retry_after: Optional[float] = None,
                refund_attempt: bool = False, within: Optional[float] = None) -> None: ...

    @overload
    def abandon(self, claims: Sequence[Claim], *, reason: str = '', retry_after: Optional[float] = None,
                refund_attempt: bool = False,
                within: Optional[float] = None) -> List[Optional[errors.BoarddError]]: ...

    def abandon(self, claims: Union[Claim, Sequence[Claim]], *, reason: str = '', retry_after: Optional[float] = None,
                refund_attempt: bool = False, within: Optional[float] = None) -> Ended:
        """Gives a claimed job back, or several, as consume does. retry_after
        None is the board's back-off."""
        request: Json = {'reason': reason, 'refundAttempt': refund_attempt}
        if retry_after is not None:
            request['retryAfter'] = seconds(retry_after)
        return self._end('AbandonJobs', claims, request, within)

    @overload
    def trash(self, claims: Claim, reason: str = '') -> None: ...

    @overload
    def trash(self, claims: Sequence[Claim], reason: str = '') -> List[Optional[errors.BoarddError]]: ...

    def trash(self, claims: Union[Claim, Sequence[Claim]], reason: str = '') -> Ended:
        """Sets a claimed job aside for a person to look at, or several, as
        consume does."""
        return self._end('TrashJobs', claims, {'reason': reason})

    def _end(self, method: str, claims: Union[Claim, Sequence[Claim]], request: Json,
             within: Optional[float] = None) -> Ended:
        several = [claims] if isinstance(claims, Mapping) else list(claims)
        proofs = [_proof(claim) for claim in several]
        answer = self.client.call(method, dict(request, board=self.name, claims=proofs), within=within)
        results = [errors.refused_later(errors.of_item(method, claim['uuid'], result['error']), answer.unsure)
                   if result.get('error') else None for claim, result in zip(several, answer.message['results'])]
        if not isinstance(claims, Mapping):
            return results
        if results[0] is not None:
            raise results[0]
        return None

    def cancel(self, uuid: str, force: bool = False) -> None:
        """Cancels a job; with force one that is being worked on too, whose
        worker is asked to stop."""
        answer = self.client.call('CancelJobs', {'board': self.name, 'uuids': [uuid], 'force': force})
        error = answer.message['results'][0].get('error')
        if error:
            failed = errors.of_item('CancelJobs', uuid, error)
            raise errors.after_lost(failed) if answer.unsure else failed  # a uuid does not tell one from another

    def cursor(self) -> str:
        """Returns where the board's events are now."""
        return str(self.events('')['cursor'])

    def events(self, cursor: str, wait: float = 0.0) -> Json:
        """Returns ``events`` after a cursor and the ``cursor`` to go on from,
        and waits for the first of them."""
        return self.call('ListEvents', {'from': cursor}, wait=wait)

    def watch(self, cursor: Optional[str] = None) -> Iterator[Event]:
        """Goes through the board's events after a cursor; None: from now on.
        It goes on where it was over cuts and restarts, so that no event is
        missed or seen twice; when the board has forgotten that much of its
        past, an event RESYNC says so: list the board again."""
        at = self.cursor() if cursor is None else cursor
        failed = 0
        while True:
            try:
                page = self.events(at, _WAIT)
            except errors.BoarddError as e:
                if not e.retryable:
                    raise
                failed += 1
                time.sleep(client_.backoff(failed - 1, 0.05, 5.0))
                continue
            failed = 0
            yield from page['events']
            at = page['cursor']


def new_uuid() -> str:
    return str(uuids_.uuid4())


def _proof(claim: Claim) -> Json:
    """Strips a claim to what a request needs."""
    return {key: claim[key] for key in ('uuid', 'owner', 'token') if key in claim}  # type: ignore[literal-required]


def _results(op: str, uuids: Iterable[str], answer: 'client_.Answer') -> List[Union[Job, errors.BoarddError]]:
    return [errors.refused_later(errors.of_item(op, uuid, r['error']), answer.unsure) if r.get('error') else r['job']
            for uuid, r in zip(uuids, answer.message['results'])]


def _only(results: Sequence[Union[Job, errors.BoarddError]]) -> Job:
    result = results[0]
    if isinstance(result, errors.BoarddError):
        raise result
    return result
