"""Runs a flow whose logbook TaskFlow keeps in a database, and prints the book's uuid.

    write_book.py URL

The tables are made of TaskFlow's own description of them: Debian's package lacks the file
by which TaskFlow would make them itself, except on SQLite.
"""

import contextlib
import sys

import sqlalchemy
from taskflow import engines
from taskflow.patterns import linear_flow
from taskflow.persistence import backends
from taskflow.persistence.backends.sqlalchemy import tables
from taskflow.persistence import models
from taskflow import task


class Boot(task.Task):

    def execute(self, rate):
        return rate


class Plug(task.Task):

    def execute(self):
        raise TimeoutError('no answer from the amphora \u2620')


class MarkActive(task.Task):

    def execute(self):
        pass


def main():
    metadata = sqlalchemy.MetaData()
    tables.fetch(metadata)
    metadata.create_all(sqlalchemy.create_engine(sys.argv[1]))
    with contextlib.closing(backends.fetch({'connection': sys.argv[1]})) as backend:
        book = models.LogBook('create_load_balancer')
        book.meta = {'note': 'k\u00e4se'}
        with contextlib.closing(backend.get_connection()) as connection:
            connection.save_logbook(book)
        flow = linear_flow.Flow('create').add(
            Boot('boot'), Plug('plug'), MarkActive('mark-active'))
        with contextlib.suppress(TimeoutError):
            engines.run(flow, store={'rate': 1.25}, backend=backend, book=book)
    print(book.uuid)


if __name__ == '__main__':
    main()
