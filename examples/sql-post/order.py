"""Writes an order, and posts the job that goes with it in the same transaction: both or none.

    python3 order.py DATABASE-URL ORDER
"""

import sys

import psycopg
from psycopg.types.json import Jsonb


def order(connection: psycopg.Connection, number: int) -> str:
    """Writes an order, and returns the uuid of its job."""
    with connection.transaction():
        connection.execute("INSERT INTO orders (id, total) VALUES (%s, 99.90)", [number])
        row = connection.execute(
            "SELECT boardd.post(board => 'default', name => 'invoice', details => %s, priority => 'HIGH')",
            [Jsonb({"order": number})],
        ).fetchone()
    return str(row[0])


if __name__ == "__main__":
    with psycopg.connect(sys.argv[1]) as connection:
        print(order(connection, int(sys.argv[2])))
