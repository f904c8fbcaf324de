import assert from "node:assert/strict";
import { createServer, type AddressInfo } from "node:net";
import { before, mock, test } from "node:test";
import { CancelRequested, Client, RetryError, TrashError, Worker, type Report } from "@boardd/client";
import { Server } from "./server.js";

let server: Server;
before(async () => void (server = await Server.start()));

/** What a worker writes to the console whose one job's handler throws an error. */
async function written(error: Error, report?: (report: Report) => void): Promise<string[]> {
  const board = await server.board();
  await board.post({ name: "n" });
  const lines: string[] = [];
  const console_ = ["error", "warn"].map((name) => mock.method(console, name as "error", (line: string) => void lines.push(line)));
  try {
    await new Worker({ board, maxJobs: 1, handler: () => { throw error; }, ...(report === undefined ? {} : { report }) }).run();
  } finally {
    for (const method of console_) method.mock.restore();
  }
  return lines;
}

test("what failed is written, and nothing else", async () => {
  const [bug = "", ...more] = await written(new Error("boom"));
  assert.match(bug, /^boardd: job \S+ \(n\) failed at attempt 1, and was given back: boom\nError: boom\n.*outage\.test/s);
  assert.deepEqual(more, []);
  const [trashed = "", ...rest] = await written(new TrashError("no path"));
  assert.match(trashed, /failed at attempt 1, and was set aside: no path$/);
  assert.deepEqual(rest, []);
  for (const error of [new RetryError("the disk is full"), new CancelRequested("not wanted")]) assert.deepEqual(await written(error), []);
});

test("what is reported is not written", async () => {
  const reports: Report[] = [];
  assert.deepEqual(await written(new Error("boom"), (report) => reports.push(report)), []);
  assert.deepEqual(reports.map(({ ending }) => ending), ["ABANDONED"]);
});

test("that the server is away is told once", async () => {
  const away = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => away.listen(0, "127.0.0.1", resolve));
  const { port } = away.address() as AddressInfo;
  const told: string[] = [];
  let first!: () => void;
  const warned = new Promise<void>((resolve) => (first = resolve));
  const warn = (line: string): void => {
    told.push(line);
    first();
  };
  const worker = new Worker({ board: new Client({ addr: `http://127.0.0.1:${port}` }).board("b"), handler: () => undefined, warn });
  const run = worker.run();
  await warned;
  worker.stop();
  await run;
  await new Promise((resolve) => away.close(resolve));
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /^the server cannot be reached; the worker goes on trying: GetBoard: /);
});
