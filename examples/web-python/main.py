"""A web program that leaves its work to a worker.

It posts a job for each text that it is sent, and shows what became of it. The
worker, which is in the same process here and could as well be in another one,
counts the words.
"""

import os
import signal
import threading

import boardd
import flask
from werkzeug import serving

app = flask.Flask(__name__)
board = boardd.Client().board()  # of BOARDD_ADDR, BOARDD_TOKEN and BOARDD_BOARD
results = {}  # a real program has a database here


@app.post('/texts')
def post():
    """The caller's Idempotency-Key, if it is a uuid, makes sending a text again safe."""
    key = flask.request.headers.get('Idempotency-Key')
    job = board.post('count-words', {'text': flask.request.get_data(as_text=True)}, uuid=key, max_attempts=5)
    return {'job': job['uuid']}, 202, {'Location': '/texts/' + job['uuid']}


@app.get('/texts/<uuid>')
def show(uuid):
    job = board.get(uuid)
    return {'state': job['state'], 'reason': job['lastReason'], 'words': results.get(uuid)}


@app.errorhandler(boardd.BoarddError)
def refuse(error):
    """Says an error of boardd's as one of HTTP's."""
    status = {'NOT_FOUND': 404, 'INVALID': 400, 'ALREADY_EXISTS': 409}.get(error.kind, 503)
    return {'error': str(error), 'retry': error.retryable, 'changed': error.changed}, status


def count_words(task):
    """Counts the words of one text. It may be called again for the same one,
    so it does what does no harm when it is done twice."""
    text = task.details.get('text')
    if not text:
        raise boardd.Trash('there is no text')
    task.check()  # as often as there is an occasion: what is done after it is over is for nothing
    results[task.uuid] = len(text.split())


def main():
    worker = boardd.Worker(board, count_words, names=['count-words'], concurrency=4, warn=app.logger.warning)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stop())  # what is not done goes back to the board
    server = serving.make_server('127.0.0.1', int(os.environ.get('PORT', '8080')), app, threaded=True)
    print('listening on port', server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    worker.run()
    server.shutdown()


if __name__ == '__main__':
    main()
