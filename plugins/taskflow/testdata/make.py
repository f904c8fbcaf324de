"""Makes redis.json and zookeeper.json anew: what real TaskFlow writes.

Both servers must be empty and private, and ZooKeeper must answer `envi`:

    /usr/bin/python3 make.py REDIS_PORT ZOOKEEPER_PORT

Every posting here is made by post() of TaskFlow's own jobboards and read back
from the store as bytes. TaskFlow, redis-py, kazoo and oslo.serialization are
those of Debian (python3-taskflow, python3-redis, python3-kazoo).
"""

import datetime
import itertools
import json
import sys
import uuid
from xmlrpc import client as xmlrpc

import kazoo.client
import netaddr
import redis
from taskflow import version
from taskflow.jobs import backends
from taskflow.persistence import models

NAIVE = datetime.datetime(2024, 2, 29, 23, 59, 58, 123456)
BOOK = models.LogBook("my-book", uuid="11111111-2222-3333-4444-555555555555")

PLAIN = {
    "unicode": "h\u00e9llo \u4e16\u754c \U0001f600", "quote": 'a"b\\c/d\n\t\x01\x7f<>&\u2028', "empty": "",
    "ints": [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63, 2**64 - 1],
    "negative": [-1, -32, -33, -128, -129, -32768, -32769, -2**31, -2**31 - 1, -2**63],
    "floats": [0.0, -0.0, 1.0, 1.5, 1e22, 1e-7, 0.1, 123456789012345680.0, 1e16, 1e15, 5e-324, 3.141592653589793],
    "words": [None, True, False], "list": [1, "two", None, [3.0, {"k": "v"}]], "tuple": (1, 2),
    "nested": {"a": {"b": {"c": {"d": {"e": [{"deep": True}]}}}}},
    "str8": "x" * 32, "str16": "y" * 256, "array16": list(range(16)), "map16": {"k%02d" % i: i for i in range(16)},
}
ONLY_MSGPACK = {"bytes": b"\x00\xfe\xff", "bin key": {b"k": 1}, "inf": [float("inf"), float("-inf")], "nan": float("nan")}
EXTENSIONS = {
    "naive": NAIVE, "utc": NAIVE.replace(tzinfo=datetime.timezone.utc), "date": NAIVE.date(),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"), "count": itertools.count(3, 2),
    "set": {1}, "frozenset": frozenset(["a"]), "sets": {frozenset([NAIVE])},
    "ip4": netaddr.IPAddress("10.1.2.3"), "ip6": netaddr.IPAddress("::2:3"),
    "xmlrpc": xmlrpc.DateTime(NAIVE.replace(microsecond=0)),
}
ONLY_JSON = {
    "inf": float("inf"), "ninf": float("-inf"), "nan": float("nan"), "big": 2**80, "neg": -2**80,
    "utf8": "\u00fcber".encode(), 1: "int key", None: "none key", 1.5: "float key", "lone": "\ud800",
}
PRIMITIVES = {
    "naive": NAIVE, "utc": NAIVE.replace(tzinfo=datetime.timezone.utc), "set": {1}, "tuple": (1,),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"), "ip": netaddr.IPAddress("2001:db8::1"),
    "exception": ValueError("boom"),
}

COMMON = [
    ("priority VERY_HIGH", "prio", {"priority": "VERY_HIGH"}),
    ("priority HIGH", "prio", {"priority": "HIGH"}),
    ("priority NORMAL", "prio", {}),
    ("priority LOW", "prio", {"priority": "LOW"}),
    ("priority VERY_LOW", "prio", {"priority": "VERY_LOW"}),
    ("a book", "with-book", {"book": BOOK}),
    ("a conductor's details", "flow-job", {"book": BOOK, "details": {"flow_uuid": "9" * 8, "store": {"x": 1}}}),
    ("what JSON holds", "rich \u00fc", {"details": PLAIN}),
]


def posted(board, cases, read):
    jobs = []
    for what, name, options in cases:
        job = board.post(name, **options)
        jobs.append((job, dict(what=what, name=name, details=bool(options.get("details")), **read(job))))
    return jobs


def on_redis(port):
    client = redis.Redis(port=port)
    board = backends.fetch("fixtures", {"board": "redis", "host": "127.0.0.1", "port": port})
    board.connect()

    def read(job):
        return {"field": job.key.decode(), "value": client.hget(board.listings_key, job.key).hex(),
                "sequence": job.sequence, "created_on": job.created_on.isoformat()}

    cases = COMMON + [("bytes, NaN, infinities", "raw", {"details": ONLY_MSGPACK}),
                      ("oslo's extension types", "ext", {"details": EXTENSIONS})]
    postings = [entry for _, entry in posted(board, cases, read)]
    unreadable = []
    for what, details in [
        ("a whole number as key", {1: "a"}),
        ("None as key", {"a": [{None: 1}]}),
        ("a time with a fixed offset", {"t": NAIVE.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))}),
    ]:
        job = board.post("unreadable", details=details)
        entry = dict(what=what, **read(job))
        try:
            list(board.iterjobs())
            raise SystemExit("%s: TaskFlow can read it" % what)
        except Exception as error:
            entry["error"] = str(error.__cause__ or error)
        unreadable.append(entry)
    job = board.post("modified")
    board.claim(job, "\u00f6wner")
    modified = client.get(job.last_modified_key)
    return {"redis-py": redis.__version__, "postings": postings, "unreadable": unreadable,
            "last_modified": {"value": modified.hex(), "time": board._loads(modified, (datetime.datetime,)).isoformat()},
            "owner": client.get(job.owner_key).hex()}


def on_zookeeper(port):
    client = kazoo.client.KazooClient("127.0.0.1:%d" % port)
    client.start()
    board = backends.fetch("fixtures", {"board": "zookeeper", "hosts": "127.0.0.1:%d" % port, "path": "/taskflow/jobs"})
    board.connect()
    read = lambda job: {"path": job.path, "value": client.get(job.path)[0].decode()}
    cases = COMMON + [("what only Python's JSON holds", "raw", {"details": ONLY_JSON}),
                      ("oslo's to_primitive", "primitives", {"details": PRIMITIVES})]
    jobs = posted(board, cases, read)
    postings = [entry for _, entry in jobs]
    board.claim(jobs[0][0], '\u00f6wner-\u4e16 "q"')
    lock = client.get(jobs[0][0].lock_path)[0].decode()
    trashed = jobs[7][0]
    board.claim(trashed, "w")
    board.trash(trashed, "w")
    trash = client.get(board.trash_path + "/" + trashed.path.rsplit("/", 1)[1])[0].decode()
    paths = []
    for path in ["/taskflow/jobs", "/octavia_jobboard", "/octavia/jobs/jobs", "/q-66f213cb/b", "/j", "/job", "/a/b/ab/b"]:
        other = backends.fetch("paths", {"board": "zookeeper", "hosts": "127.0.0.1:%d" % port, "path": path})
        job = path + "/job0000000001"
        paths.append({"path": path, "trash": other.trash_path, "entities": other.entity_path,
                      "trashed": job.replace(other.path, other.trash_path)})  # as its trash() does
    board.close()
    client.stop()
    return {"kazoo": kazoo.__version__, "postings": postings, "lock": lock,
            "trashed": {"posting": postings[7]["value"], "trash": trash}, "paths": paths}


def main():
    for name, made in [("redis", on_redis(int(sys.argv[1]))), ("zookeeper", on_zookeeper(int(sys.argv[2])))]:
        made = dict({"made by": "make.py with TaskFlow %s, Python %s" % (version.version_string(), sys.version.split()[0])}, **made)
        with open(name + ".json", "w", encoding="ascii") as out:
            json.dump(made, out, indent=1)
            out.write("\n")


main()
