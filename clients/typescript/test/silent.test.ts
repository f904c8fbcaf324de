// Servers that keep their connections and answer nothing. No call here has a time of its own within which the test would
// end, so that it is the sign of life that decides.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { BoardService, Client, isKind, Worker, type Board } from "@boardd/client";
import { eventually, Server } from "./server.js";

const callTimeoutMs = 3_600_000;

let there: Server;
before(async () => void (there = await Server.start()));

/** A board on both of two servers: the first, which is to be stopped, and the one that goes on. */
async function two(options: { retryForMs?: number } = {}): Promise<{ first: Server; board: Board; here: Board; next: Board }> {
  const first = await Server.start();
  const next = await there.board();
  await first.admin("CreateBoard", { board: { name: next.name, backend: "embedded", lease: "30s" } });
  const board = new Client({ addr: `${first.addr},${there.addr}`, token: "dev", callTimeoutMs, ...options }).board(next.name);
  return { first, board, here: new Client({ addr: first.addr, token: "dev" }).board(next.name), next };
}

/** Stops a server, and waits until none of its threads runs. */
async function stop(server: Server): Promise<void> {
  server.process.kill("SIGSTOP");
  const threads = `/proc/${server.process.pid}/task`;
  const runs = (thread: string): boolean => {
    try {
      const state = readFileSync(`${threads}/${thread}/stat`, "utf8").split(") ").at(-1)?.charAt(0) ?? "T"; // "ID (NAME) STATE ..."
      return !"TZX".includes(state);
    } catch {
      return false; // it has ended
    }
  };
  await eventually("the process stands still", async () => !readdirSync(threads).some(runs));
}

describe("a server that is stopped", { concurrency: true }, () => {
  test("calls go on at the next address", async () => {
    const { first, board, next } = await two();
    const before = await board.post({ name: "before" });
    await stop(first);
    const posted = await Promise.all(["a", "b", "c"].map((name) => board.post({ name })));
    for (const { uuid, name } of posted) assert.equal((await next.get(uuid)).name, name);
    await assert.rejects(next.get(before.uuid), (e) => isKind(e, "NOT_FOUND"));
  });

  test("a call that waits does, too", async () => {
    const { first, board, next } = await two();
    await board.count();
    const { uuid } = await next.post({ name: "there" });
    await stop(first);
    assert.deepEqual((await board.claim({ owner: "me", waitMs: 30_000 })).map((claim) => claim.uuid), [uuid]);
  });

  test("nobody knows what came of a call that was under way", async () => {
    const { first, board } = await two({ retryForMs: 0 });
    await board.count();
    await stop(first);
    await assert.rejects(board.post({ name: "x" }), (e) => isKind(e, "OUTCOME_UNKNOWN") && e.changed === "unknown" && /has stopped answering/.test(e.message));
    assert.equal((await board.count()).unclaimed, 0n); // at the next one
  });

  test("a watch begins at the next address", async () => {
    const { first, board, next } = await two();
    const { cursor } = await next.call(BoardService.method.listEvents, {});
    const { uuid } = await next.post({ name: "there" });
    await stop(first);
    for await (const event of board.watch({ from: cursor })) {
      assert.equal(event.job?.uuid, uuid);
      break;
    }
  });

  test("a worker goes on at the next address", async () => {
    const { first, board, here, next } = await two();
    await next.post({ name: "there" });
    const endings: string[] = [];
    const worker = new Worker({ board, maxJobs: 1, handler: () => undefined, report: ({ ending }) => endings.push(ending) });
    const run = worker.run();
    const entities = async () => (await here.call(BoardService.method.listEntities, {})).entities;
    await eventually("it works", async () => (await entities()).length === 1);
    await stop(first);
    await run;
    assert.deepEqual(endings, ["CONSUMED"]);
  });
});

test("a server that cannot serve now is left", async () => {
  let asked = 0;
  const draining = http.createServer((_, answer) => (asked++, answer.writeHead(503).end()));
  after(() => draining.close());
  draining.listen(0, "127.0.0.1");
  await once(draining, "listening");
  const addr = `http://127.0.0.1:${(draining.address() as AddressInfo).port},${there.addr}`;
  const board = new Client({ addr, token: "dev" }).board((await there.board()).name);
  for (let i = 0; i < 3; i++) assert.equal((await board.count()).unclaimed, 0n);
  assert.equal(asked, 1);
});

test("a server that is only slow is waited for", async () => {
  let asked = 0;
  const held: http.ServerResponse[] = [];
  // It answers a call once it was asked twice whether it is alive, and the answer is an empty message.
  const slow = http.createServer((request, answer) => {
    if (request.method === "POST") return void held.push(answer);
    answer.end("ok");
    if (++asked === 2) held.forEach((call) => call.writeHead(200, { "Content-Type": "application/proto" }).end());
  });
  after(() => slow.close());
  slow.listen(0, "127.0.0.1");
  await once(slow, "listening");
  const next = await there.board();
  await next.post({ name: "there" });
  const addr = `http://127.0.0.1:${(slow.address() as AddressInfo).port},${there.addr}`;
  assert.equal((await new Client({ addr, token: "dev", callTimeoutMs }).board(next.name).count()).unclaimed, 0n);
  assert.deepEqual([asked, held.length], [2, 1]);
});
