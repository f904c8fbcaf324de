"""Real TaskFlow, driven by lines of JSON: one request a line, one answer a line.

A request is {"id", "op", ...arguments}; its answer is {"id", "ok"} or
{"id", "error": the exception's class, "text"}. Requests that block (wait, a
conductor) run in threads of their own, so answers may come in another order.
"""

import contextlib
import functools
import json
import logging
import sys
import threading
import time
import traceback

from taskflow import engines, exceptions, retry, task
from taskflow.conductors import backends as conductors
from taskflow.jobs import backends as boards
from taskflow.jobs import base
from taskflow.listeners import base as listeners
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as persistences
from taskflow.persistence import models
from taskflow.types import entity
from oslo_utils import uuidutils

BOARDS, CONDUCTORS, EVENTS, RUNS = {}, {}, [], []
PERSISTENCE = persistences.fetch({"connection": "memory"})
answering = threading.Lock()


class Work(task.Task):
    """What a conductor runs: it writes down the job and takes its time."""

    def execute(self, what, seconds):
        RUNS.append(what)
        time.sleep(seconds)
        return what


def make_flow():
    return linear_flow.Flow("work").add(Work("work"))


def connect(board, conf, expiry=None):
    made = boards.fetch(board, conf, persistence=PERSISTENCE)
    made.connect()
    if expiry is not None:  # as Octavia does it
        made.claim = functools.partial(made.claim, expiry=expiry)
    if isinstance(made, base.NotifyingJobBoard):
        for event in (base.POSTED, base.REMOVAL):
            made.notifier.register(event, lambda event, details: EVENTS.append([event, details["job"].uuid]))
    BOARDS[board] = made


def find(board, uuid):
    """Returns the job, waiting for a watch to show it where the board has such."""
    for _ in range(600):
        for job in list(BOARDS[board].iterjobs(ensure_fresh=True)):
            if job.uuid == uuid:
                return job
        if not isinstance(BOARDS[board], base.NotifyingJobBoard):
            break
        time.sleep(0.05)
    raise exceptions.NotFound("no job %s is listed" % uuid)


KEPT = {}  # jobs as they were found once: a worker holds on to its job object


def keep(board, uuid):
    if (board, uuid) not in KEPT:
        KEPT[board, uuid] = find(board, uuid)
    return KEPT[board, uuid]


def owner_of(board, job):
    try:
        return BOARDS[board].find_owner(job)
    except TypeError:  # of nobody, on Redis
        return None


def shown(job):
    return {"uuid": job.uuid, "name": job.name, "priority": job.priority.value, "sequence": job.sequence,
            "details": repr(job.details), "created_on": str(job.created_on), "key": getattr(job, "path", None)}


def op_connect(board, conf, expiry=None):
    connect(board, conf, expiry)


def op_close(board):
    BOARDS.pop(board).close()


def op_post(board, name, details=None, python=None, priority="NORMAL", book=False, work=None, seconds=0):
    if python is not None:
        details = eval(python)  # values that JSON does not have
    logbook = None
    if book:
        logbook, flow = logbook_of(name)
        details = dict(details or {}, flow_uuid=flow, store={"what": work or name, "seconds": seconds})
    job = BOARDS[board].post(name, book=logbook, details=details, priority=priority)
    KEPT[board, job.uuid] = job
    return shown(job)


def logbook_of(name):
    book = models.LogBook(name)
    flow = models.FlowDetail("work", uuidutils.generate_uuid())
    engines.save_factory_details(flow, make_flow, [], {})
    book.add(flow)
    PERSISTENCE.get_connection().save_logbook(book)
    return book, flow.uuid


def op_book(name):
    book, flow = logbook_of(name)
    return {"uuid": book.uuid, "name": book.name, "flow": flow}


class Failing(task.Task):
    """What fails, so that its failure is in the book."""

    def execute(self):
        raise ValueError("kaputt \U0001f4a5")


def op_write_book(conf, name):
    """Runs a flow whose book is kept as conf says, and returns the book as
    TaskFlow reads it from there."""
    with contextlib.closing(persistences.fetch(conf)) as backend:
        with contextlib.closing(backend.get_connection()) as connection:
            connection.upgrade()
            book = models.LogBook(name)
            book.meta = {"note": "k\u00e4se", "rate": float("nan"), "large": 10 ** 30}
            connection.save_logbook(book)
        flow = linear_flow.Flow("kept", retry=retry.AlwaysRevert()).add(Work("work"), Failing("failing"))
        try:
            engines.run(flow, store={"what": {"k": [1.50, None]}, "seconds": 0}, backend=backend, book=book)
        except ValueError:
            pass
        with contextlib.closing(backend.get_connection()) as connection:
            book = connection.get_logbook(book.uuid)
    return {"uuid": book.uuid, "flows": {flow.uuid: {
        "name": flow.name, "state": flow.state, "atoms": {atom.uuid: {
            "name": atom.name, "state": atom.state, "type": models.atom_detail_type(atom)} for atom in flow}} for flow in book}}


def op_list(board, only_unclaimed=False):
    return [shown(job) for job in BOARDS[board].iterjobs(only_unclaimed=only_unclaimed, ensure_fresh=True)]


def op_claim(board, uuid, who, expiry=None):
    options = {} if expiry is None else {"expiry": expiry}
    BOARDS[board].claim(keep(board, uuid), who, **options)


def op_take(board, who):
    """What a worker does: it lists what is unclaimed, and claims the first. It
    returns the job and how long that took."""
    begun = time.perf_counter()
    job = next(iter(BOARDS[board].iterjobs(only_unclaimed=True, ensure_fresh=True)))
    BOARDS[board].claim(job, who)
    seconds = time.perf_counter() - begun
    KEPT[board, job.uuid] = job
    return {"uuid": job.uuid, "seconds": seconds}


def op_drain(board, who):
    """What a blocking conductor does, but for the flow: it goes through the list and takes what it gets, until the board is empty."""
    made, done = BOARDS[board], 0
    while True:
        jobs = list(made.iterjobs(ensure_fresh=True))
        if not jobs:
            return done
        for job in jobs:
            try:
                made.claim(job, who)
            except (exceptions.UnclaimableJob, exceptions.NotFound):
                continue
            made.consume(job, who)
            done += 1


def op_consume(board, uuid, who):
    BOARDS[board].consume(keep(board, uuid), who)


def op_abandon(board, uuid, who):
    BOARDS[board].abandon(keep(board, uuid), who)


def op_trash(board, uuid, who):
    BOARDS[board].trash(keep(board, uuid), who)


def op_extend(board, uuid, expiry):
    return keep(board, uuid).extend_expiry(expiry)


def op_expires(board, uuid):
    return keep(board, uuid).expires_in()


def op_state(board, uuid):
    return keep(board, uuid).state


def op_owner(board, uuid):
    return owner_of(board, keep(board, uuid))


def op_modified(board, uuid):
    modified = keep(board, uuid).last_modified
    return modified and modified.isoformat()


def op_count(board):
    return BOARDS[board].job_count


def op_wait(board, uuid, timeout):
    return keep(board, uuid).wait(timeout=timeout)


def op_paths(board):
    return {"trash": BOARDS[board].trash_path, "entities": BOARDS[board].entity_path}


def op_register(board, name, metadata=None):
    BOARDS[board].register_entity(entity.Entity("conductor", name, metadata or {}))


def op_events():
    return list(EVENTS)


class Extending(listeners.Listener):
    """Octavia's listener: whatever happens in the flow extends the claim."""

    def __init__(self, engine, job, expiry):
        super().__init__(engine)
        self.job, self.expiry = job, expiry

    def _flow_receiver(self, state, details):
        self.job.extend_expiry(self.expiry)

    def _task_receiver(self, state, details):
        self.job.extend_expiry(self.expiry)


def op_conductor(name, board, kind="blocking", extend=None):
    options = {"max_simultaneous_jobs": 4} if kind == "nonblocking" else {}
    made = conductors.fetch(kind, name, BOARDS[board], persistence=PERSISTENCE, **options)
    if extend is not None:
        of = made._listeners_from_job
        made._listeners_from_job = lambda job, engine: of(job, engine) + [Extending(engine, job, extend)]
    CONDUCTORS[name] = made
    error = None
    try:
        made.run()
    except Exception as problem:  # what ends a conductor is of interest
        error = "%s: %s" % (type(problem).__name__, problem)
    return error


def op_stop(name):
    while name not in CONDUCTORS:
        time.sleep(0.01)
    CONDUCTORS[name].stop()
    return CONDUCTORS[name].wait(60)


def op_runs():
    return list(RUNS)


EXTENDING = threading.Event()


def op_keep_alive(board, conf, names, expiry, every):
    """Octavia's thread: a new connection each time, the whole board listed, the
    own jobs extended once half of their time is over."""
    rounds = 0
    while not EXTENDING.wait(every):
        other = boards.fetch("extender", conf, persistence=PERSISTENCE)
        other.connect()
        try:
            for job in other.iterjobs():
                try:
                    if job.state == "CLAIMED" and other.find_owner(job) in names and job.expires_in() < expiry / 2:
                        job.extend_expiry(expiry)
                except TypeError:  # "probably a bug in taskflow"
                    pass
        finally:
            other.close()
        rounds += 1
    return rounds


def op_let_go():
    EXTENDING.set()


def op_wait_all(board, timeout):
    """Octavia's poster: it waits for every job that is on the board. (It looks once a second at least, not once a minute.)"""
    return [[job.uuid, job.wait(timeout=timeout, max_delay=1.0)] for job in list(BOARDS[board].iterjobs())]


IN_THREADS = {"drain", "wait", "wait_all", "conductor", "stop", "keep_alive"}


def answer(request):
    number, op = request.pop("id"), request.pop("op")
    try:
        reply = {"id": number, "ok": globals()["op_" + op](**request)}
    except Exception as error:
        reply = {"id": number, "error": type(error).__name__, "text": str(error)}
        traceback.print_exc()
    with answering:
        print(json.dumps(reply), flush=True)


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    print(json.dumps({"id": 0, "ok": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] in IN_THREADS:
            threading.Thread(target=answer, args=(request,), daemon=True).start()
        else:
            answer(request)


if __name__ == "__main__":
    sys.modules["boardd_taskflow"] = sys.modules["__main__"]
    make_flow.__module__ = "boardd_taskflow"  # where an engine finds the factory again
    main()
