"""A service in the manner of Octavia: it posts flows on TaskFlow's jobboard on Redis
and has a conductor run them. Nothing in it knows of boardd.

    service.py HOST:PORT FOLDER post NAME...    posts a flow for each name
    service.py HOST:PORT FOLDER conduct         runs what is on the board
"""

import sys
import threading
import time

from taskflow import engines, task
from taskflow.conductors import backends as conductors
from taskflow.jobs import backends as jobboards
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as persistences
from taskflow.persistence import models


class Create(task.Task):
    def execute(self, name):
        print("the conductor creates", name, flush=True)


def create_load_balancer():
    return linear_flow.Flow("create-load-balancer").add(Create())


def post(board, persistence, name):
    book = models.LogBook(name)
    flow = models.FlowDetail(name, book.uuid)
    book.add(flow)
    persistence.get_connection().save_logbook(book)
    engines.save_factory_details(flow, create_load_balancer, [], {}, backend=persistence)
    board.post(name, book=book, details={"flow_uuid": flow.uuid, "store": {"name": name}})


def conduct(board, persistence):
    conductor = conductors.fetch("blocking", "conductor", board, persistence=persistence, engine="serial", wait_timeout=0.1)
    thread = threading.Thread(target=conductor.run)
    thread.start()
    while board.job_count:
        time.sleep(0.05)
    conductor.stop()
    thread.join()


def main(address, folder, verb, *names):
    host, port = address.rsplit(":", 1)
    persistence = persistences.fetch({"connection": "dir", "path": folder})
    persistence.get_connection().upgrade()
    conf = {"board": "redis", "host": host, "port": int(port), "namespace": "octavia_jobboard"}
    board = jobboards.fetch("service", conf, persistence=persistence)
    board.connect()
    if verb == "post":
        for name in names:
            post(board, persistence, name)
    else:
        conduct(board, persistence)
    board.close()


if __name__ == "__main__":
    import service  # a flow's factory is found by its module's name, which is not __main__

    service.main(*sys.argv[1:])
