import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { BoarddError, BoardService, Client, isKind, parsed, pb, Worker, type Event, type Job } from "@boardd/client";
import { eventually, Line, Server } from "./server.js";

let server: Server;
before(async () => void (server = await Server.start()));

function job(result: Job | BoarddError | undefined): Job {
  if (result instanceof BoarddError || result === undefined) throw result;
  return result;
}

test("a job is posted, claimed and consumed", async () => {
  const board = await server.board();
  const posted = await board.post({ name: "resize", details: { path: "/ä.png", n: 3 }, labels: { customer: "acme" }, priority: "HIGH", timeoutMs: 90_500 });
  assert.deepEqual(parsed(posted.details), { path: "/ä.png", n: 3 });
  assert.deepEqual([posted.timeout?.seconds, posted.timeout?.nanos, posted.priority], [90n, 500_000_000, pb.Priority_Enum.HIGH]);
  const [claim] = await board.claim({ owner: "me", leaseMs: 5000 });
  assert.equal(claim?.uuid, posted.uuid);
  assert.equal(claim.lease?.seconds, 5n);
  assert.deepEqual(await board.claim({ owner: "you" }), []);
  await board.consume(claim);
  await board.consume(claim); // answers as it did before
  const ended = await board.ended(posted.uuid);
  assert.deepEqual([ended.state, ended.outcome], [pb.State_Enum.COMPLETE, pb.Outcome_Enum.CONSUMED]);
});

test("details come back byte for byte", async () => {
  const board = await server.board();
  const text = '{"big": 12345678901234567890123,  "x":1.10}';
  const { uuid } = await board.post({ name: "exact", details: new TextEncoder().encode(text) });
  assert.equal(new TextDecoder().decode((await board.get(uuid)).details), text);
  assert.deepEqual(parsed((await board.post({ name: "none" })).details), {});
});

test("posting again adds nothing, and another posting of the uuid is refused", async () => {
  const board = await server.board();
  const posting: { name: string; uuid?: string } = { name: "once" };
  const first = await board.post(posting);
  assert.equal(posting.uuid, first.uuid);
  assert.equal((await board.post(posting)).uuid, first.uuid);
  assert.equal((await board.count()).unclaimed, 1n);
  await assert.rejects(board.post({ ...posting, name: "other" }), (e) => isKind(e, "ALREADY_EXISTS") && e.job === first.uuid && e.changed === "no");
});

test("one that fails holds the others up in nothing", async () => {
  const board = await server.board();
  const [good, bad, last] = await board.postAll([{ name: "a" }, { name: "" }, { name: "b" }]);
  assert.equal(job(good).name, "a");
  assert.ok(isKind(bad, "INVALID"), String(bad));
  assert.equal(job(last).name, "b");
  const missing = "00000000-0000-4000-8000-000000000000";
  const [found, lost] = await board.getAll([job(good).uuid, missing]);
  assert.equal(job(found).name, "a");
  assert.ok(isKind(lost, "NOT_FOUND") && lost.job === missing);
});

test("claiming by uuid gives all of them or an error", async () => {
  const board = await server.board();
  const [a, b] = [await board.post({ name: "a" }), await board.post({ name: "b" })];
  await board.claim({ owner: "you", uuids: [b.uuid] });
  await assert.rejects(board.claim({ owner: "me", uuids: [a.uuid, b.uuid] }), (e) => isKind(e, "ALREADY_CLAIMED") && e.job === b.uuid);
  const back = await board.get(a.uuid);
  assert.deepEqual([back.state, back.attempt], [pb.State_Enum.UNCLAIMED, 0]);
});

test("one job ends, or several", async () => {
  const board = await server.board();
  await board.postAll(["a", "b", "c", "d"].map((name) => ({ name })));
  const [a, b, c, d] = (await board.claim({ owner: "me", max: 4 })) as [pb.Claim, pb.Claim, pb.Claim, pb.Claim];
  assert.deepEqual(await board.consume([a, b]), [undefined, undefined]);
  const [gone, back] = await board.abandon([a, c], { reason: "later" });
  assert.ok(isKind(gone, "LEASE_LOST") && gone.job === a.uuid && back === undefined);
  assert.deepEqual(await board.trash([d], "odd"), [undefined]);
  await assert.rejects(board.consume(d), (e) => isKind(e, "LEASE_LOST"));
  await board.consume(b); // answers as it did before
});

test("a listing goes over all pages", async () => {
  const board = await server.board();
  await board.postAll(Array.from({ length: 25 }, (_, i) => ({ name: `n${i}`, labels: { even: String(i % 2 === 0) } })));
  const names: string[] = [];
  for await (const { name } of board.list({ pageSize: 4, filter: "labels.even = true" })) names.push(name);
  assert.deepEqual(names, Array.from({ length: 13 }, (_, i) => `n${2 * i}`));
});

test("a wrong call says what is wrong", async () => {
  const board = await server.board();
  await assert.rejects(board.claim({ owner: "me", filter: "priority ~ 3" }), (e) => isKind(e, "INVALID") && e.field === "filter" && !e.retryable);
  await assert.rejects(new Client({ addr: server.addr, token: "wrong" }).board("default").count(), (e) => isKind(e, "UNAUTHENTICATED") && /is it the right one in/.test(e.message));
  await assert.rejects(new Client({ addr: server.addr, token: "" }).board("default").count(), (e) => isKind(e, "UNAUTHENTICATED") && /give Client a token or/.test(e.message));
  await assert.rejects(new Client({ addr: server.addr, token: "dev" }).board("missing").count(), (e) => isKind(e, "NOT_FOUND"));
  assert.throws(() => new Client({ addr: "localhost:7422" }), /want http:\/\/HOST:PORT/);
  assert.throws(() => new Client({ addr: "http://a/b" }), /want http:\/\/HOST:PORT/);
});

test("what TypeScript would have refused, and JavaScript does not, is wrong", async () => {
  const board = await server.board();
  const wrong = (x: object) => x as never;
  for (const [call, text] of [
    [() => board.post(wrong({ name: "x", priority: "urgent" })), /priority: want one of VERY_HIGH, HIGH.*, got "urgent"/],
    [() => board.post(wrong({ name: "x", unique: { key: "a" } })), /unique: there is no such field; .* stands in more/],
    [() => board.post(wrong({ name: "x", more: { unique: { key: "a", onConflict: "DROP" } } })), /Unique.on_conflict/],
    [() => board.list(wrong({ states: ["OPEN"] })).next(), /states: want one of .*UNCLAIMED.*, got "OPEN"/],
    [async () => new Worker(wrong({ board })), /handler: want a function/],
  ] as [() => Promise<unknown>, RegExp][]) {
    await assert.rejects(call, (e) => isKind(e, "INVALID") && text.test(e.message) && e.changed === "no" && !e.retryable);
  }
  assert.equal((await board.count()).unclaimed, 0n);
});

test("a wrong address says what is wrong", async () => {
  const at = (addr: string) => new Client({ addr, token: "dev", retryForMs: 0 }).board("default");
  await assert.rejects(at("http://127.0.0.1:1").count(), (e) => isKind(e, "UNAVAILABLE") && /refused|REFUSED/.test(e.message) && /is a boardd running there/.test(e.message));
  await assert.rejects(at(server.addr.replace("http:", "https:")).post({ name: "x" }), (e) => isKind(e, "UNAVAILABLE") && /speaks no TLS: want http:/.test(e.message) && e.changed === "no");
});

test("the environment says where and who", async () => {
  const kept = { ...process.env };
  try {
    Object.assign(process.env, { BOARDD_ADDR: server.addr, BOARDD_TOKEN: "dev", BOARDD_BOARD: "default" });
    const board = new Client().board();
    assert.equal(board.name, "default");
    await board.count();
    await assert.rejects(new Client({ token: "" }).board().count(), (e) => isKind(e, "UNAUTHENTICATED"));
  } finally {
    process.env = kept;
  }
});

test("the token's file is read again when the token is refused", async () => {
  const board = await server.board();
  const tokenFile = join(server.dir, "token");
  writeFileSync(tokenFile, "old\n");
  const client = new Client({ addr: server.addr, tokenFile });
  writeFileSync(tokenFile, "dev\n");
  assert.equal((await client.board(board.name).count()).unclaimed, 0n);
});

test("every call that was under way with the old token is made again with the new one", async () => {
  const board = await server.board();
  const tokenFile = join(server.dir, "renewed");
  writeFileSync(tokenFile, "old\n");
  const renewed = new Client({ addr: server.addr, tokenFile }).board(board.name);
  writeFileSync(tokenFile, "dev\n");
  const counts = await Promise.all([renewed.count(), renewed.count(), renewed.count()]);
  assert.deepEqual(counts.map((c) => c.unclaimed), [0n, 0n, 0n]);
});

test("a token's file that cannot be read is named, and by what it was given", () => {
  const tokenFile = join(server.dir, "nowhere", "token");
  const says = (option: string) => (e: unknown) =>
    isKind(e, "INVALID") && e.message.startsWith(`new Client: ${option}: the file ${JSON.stringify(tokenFile)} cannot be read: ENOENT`);
  assert.throws(() => new Client({ addr: server.addr, tokenFile }), says("tokenFile"));
  const before = { token: process.env["BOARDD_TOKEN"], file: process.env["BOARDD_TOKEN_FILE"] };
  delete process.env["BOARDD_TOKEN"];
  process.env["BOARDD_TOKEN_FILE"] = tokenFile;
  try {
    assert.throws(() => new Client({ addr: server.addr }), says("BOARDD_TOKEN_FILE"));
  } finally {
    delete process.env["BOARDD_TOKEN_FILE"];
    if (before.token !== undefined) process.env["BOARDD_TOKEN"] = before.token;
    if (before.file !== undefined) process.env["BOARDD_TOKEN_FILE"] = before.file;
  }
});

test("an answer that is lost is asked for again", async () => {
  const line = await Line.to(server);
  const board = await server.board("30s", line.addr);
  for (const [call, make] of [
    ["PostJobs", () => board.post({ name: "once" })],
    ["ClaimJobs", () => board.claim({ owner: "me" })],
  ] as const) {
    line.loseAnswers(call, 2);
    await make();
  }
  const { unclaimed, claimed } = await board.count();
  assert.deepEqual([unclaimed, claimed, line.lost], [0n, 1n, 4]);
});

test("an error says whether anything was changed", async () => {
  const line = await Line.to(server);
  const once = new Client({ addr: line.addr, token: "dev", retryForMs: 0 }).board((await server.board()).name);
  line.loseAnswers("PostJobs");
  await assert.rejects(once.post({ name: "x" }), (e) => isKind(e, "OUTCOME_UNKNOWN") && e.changed === "unknown" && e.retryable);
  line.loseAnswers("CountJobs");
  await assert.rejects(once.count(), (e) => isKind(e, "UNAVAILABLE") && e.changed === "no");
  line.close();
  await assert.rejects(once.post({ name: "x" }), (e) => isKind(e, "UNAVAILABLE") && e.changed === "no");
  const controller = new AbortController();
  const waiting = (await server.board()).call(BoardService.method.claimJobs, { owner: "me", wait: { seconds: 20n, nanos: 0 } }, { waitMs: 20_000, signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting, (e) => isKind(e, "INTERRUPTED"));
});

test("of several addresses the next one is asked when one is gone", async () => {
  const line = await Line.to(server);
  const board = await server.board("30s", `${line.addr},${server.addr}`);
  line.close();
  await board.post({ name: "there" });
  assert.equal((await board.count()).unclaimed, 1n);
});

test("a watch goes on where it was, over cuts and a restart", async (t) => {
  const mine = await Server.start();
  const line = await Line.to(mine);
  const board = await mine.board("30s", line.addr);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const seen: Event[] = [];
  const posted: string[] = [];
  const first = await board.call(BoardService.method.listEvents, {});
  await board.post({ name: "before" });
  const { cursor, events } = await board.call(BoardService.method.listEvents, { from: first.cursor, wait: { seconds: 20n, nanos: 0 } });
  assert.equal(events.length, 1);
  const watching = (async () => {
    for await (const event of board.watch({ from: cursor, signal: stop.signal })) seen.push(event);
  })();
  for (let i = 0; i < 6; i++) {
    posted.push((await board.post({ name: `n${i}` })).uuid);
    if (i === 1) await eventually("the first are seen", () => seen.length === 2);
    if (i === 2 || i === 3) line.cut();
    if (i === 4) {
      await mine.kill();
      await mine.start();
    }
  }
  await eventually("all are seen", () => seen.length >= posted.length);
  stop.abort();
  await watching;
  assert.deepEqual(seen.map((event) => [event.type, event.job?.uuid]), posted.map((uuid) => [pb.EventType_Enum.POSTED, uuid]));
});

test("what is wrong is named, and no token is", async () => {
  const board = new Client({ addr: "http://127.0.0.1:1", token: "t", retryForMs: 0 }).board("b");
  const wrong = (message: RegExp) => (e: unknown) => isKind(e, "INVALID") && message.test(e.message);
  await assert.rejects(board.post({ name: "x", timeoutMs: "5s" as unknown as number }), wrong(/timeout: want a number of milliseconds, got "5s"/));
  await assert.rejects(board.claim({ owner: "me", leaseMs: NaN }), wrong(/lease: want a number of milliseconds/));
  await assert.rejects(board.post({ name: "x", notBefore: "tomorrow" as unknown as Date }), wrong(/notBefore: want a Date, got "tomorrow"/));
  for (const token of ["secret\nsecret", "secret secret", "s\u00e9cret"]) {
    assert.throws(() => new Client({ token }), (e) => isKind(e, "INVALID") && /token: want one line/.test(e.message) && !e.message.includes("cret"));
  }
});
