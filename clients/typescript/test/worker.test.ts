import assert from "node:assert/strict";
import { before, test } from "node:test";
import { BoardService, CancelRequested, Client, isKind, LeaseLost, pb, RetryError, Stopping, TimedOut, TrashError, Worker, type Board, type Claim, type Report, type WorkerOptions } from "@boardd/client";
import { eventually, Line, Server } from "./server.js";

let server: Server;
before(async () => void (server = await Server.start()));

const names = (n: number) => Array.from({ length: n }, (_, i) => ({ name: `n${i}` }));

/** Waits until the signal fires, and throws its reason. */
function forever(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal.reason as Error);
    if (signal.aborted) end();
    signal.addEventListener("abort", end);
  });
}

/** A worker that runs, with what it reports. */
function working(options: Partial<WorkerOptions> & Pick<WorkerOptions, "board" | "handler">) {
  const reports: Report[] = [];
  const worker = new Worker({ ...options, report: (report) => reports.push(report) });
  const run = worker.run();
  run.catch(() => undefined);
  return { worker, reports, run };
}

/** A handler that never returns by itself, and a promise of its first claim and signal. */
function endless() {
  let begun!: (value: { claim: Claim; signal: AbortSignal }) => void;
  const first = new Promise<{ claim: Claim; signal: AbortSignal }>((resolve) => (begun = resolve));
  const handler = (claim: Claim, signal: AbortSignal) => {
    begun({ claim, signal });
    return forever(signal);
  };
  return { first, handler };
}

async function fired(signal: AbortSignal): Promise<unknown> {
  await forever(signal).catch(() => undefined);
  return signal.reason;
}

test("every job is worked on once, by as many handlers as may be", async () => {
  const board = await server.board();
  await board.postAll(names(60));
  const seen: string[] = [];
  let now = 0;
  let most = 0;
  let four: () => void;
  const together = new Promise<void>((resolve) => (four = resolve));
  const { run, reports } = working({
    board,
    concurrency: 4,
    untilEmpty: true,
    handler: async (claim) => {
      most = Math.max(most, ++now);
      seen.push(claim.job?.name ?? "");
      if (most === 4) {
        four();
      }
      await together;
      now--;
    },
  });
  await run;
  assert.equal(most, 4);
  assert.deepEqual([...seen].sort(), names(60).map(({ name }) => name).sort());
  assert.ok(reports.length === 60 && reports.every(({ ending, error }) => ending === "CONSUMED" && error === undefined));
  const { unclaimed, claimed } = await board.count();
  assert.deepEqual([unclaimed, claimed], [0n, 0n]);
});

test("what a handler throws says how the job goes on", async () => {
  const board = await server.board();
  const errors: Record<string, Error> = {
    trash: new TrashError("no such picture"),
    retry: new RetryError("the disk is full"),
    later: new RetryError("not before the hour", 3_600_000),
    cancel: new CancelRequested("not wanted"),
    other: new Error("x".repeat(5000)),
  };
  const jobs = new Map<string, string>();
  for (const name of Object.keys(errors)) jobs.set(name, (await board.post({ name })).uuid);
  const { run, reports } = working({ board, maxJobs: 5, concurrency: 5, handler: (claim) => { throw errors[claim.job?.name ?? ""] as Error; } });
  await run;
  const endings = Object.fromEntries(reports.map(({ claim, ending }) => [claim.job?.name, ending]));
  assert.deepEqual(endings, { trash: "TRASHED", retry: "ABANDONED", later: "ABANDONED", cancel: "CANCELED", other: "ABANDONED" });
  const get = (name: string) => board.get(jobs.get(name) ?? "");
  const [trash, retry, later, cancel, other] = await Promise.all(["trash", "retry", "later", "cancel", "other"].map(get));
  assert.deepEqual([trash?.state, trash?.lastReason], [pb.State_Enum.TRASHED, "no such picture"]);
  assert.deepEqual([retry?.state, retry?.attempt, retry?.lastReason], [pb.State_Enum.UNCLAIMED, 0, "the disk is full"]);
  assert.equal(later?.attempt, 0);
  assert.ok((later?.notBefore?.seconds ?? 0n) > (retry?.notBefore?.seconds ?? 0n) + 3000n);
  assert.deepEqual([cancel?.state, cancel?.outcome], [pb.State_Enum.COMPLETE, pb.Outcome_Enum.CANCELED]);
  assert.equal(other?.attempt, 1);
  assert.match(other?.lastReason ?? "", /^x{500,}/);
});

test("a lease is extended for as long as the handler runs", async () => {
  const board = await server.board("4s");
  const { uuid } = await board.post({ name: "long" });
  const expiry = async () => (await board.get(uuid)).leaseExpiresAt?.seconds;
  const { run, reports } = working({
    board,
    maxJobs: 1,
    handler: async (claim) => {
      const first = claim.leaseExpiresAt?.seconds ?? 0n;
      await eventually("the lease was extended again and again", async () => ((await expiry()) ?? 0n) >= first + 5n);
    },
  });
  await run;
  assert.deepEqual(reports.map(({ claim, ending }) => [claim.attempt, ending]), [[1, "CONSUMED"]]);
});

test("a job that is canceled while it runs", async () => {
  const board = await server.board();
  const { uuid } = await board.post({ name: "x" });
  const { first, handler } = endless();
  const { run, reports } = working({ board, maxJobs: 1, handler });
  const { signal } = await first;
  await board.cancel(uuid, true);
  assert.ok((await fired(signal)) instanceof CancelRequested);
  await run;
  assert.equal(reports[0]?.ending, "CANCELED");
  assert.equal((await board.get(uuid)).outcome, pb.Outcome_Enum.CANCELED);
});

test("a claim that is taken away is left alone", async () => {
  const board = await server.board();
  const { uuid } = await board.post({ name: "x" });
  const { first, handler } = endless();
  const { run, reports } = working({ board, maxJobs: 1, handler });
  const { signal } = await first;
  await board.call(BoardService.method.releaseJobs, { uuids: [uuid], reason: "test" });
  assert.ok((await fired(signal)) instanceof LeaseLost);
  await run;
  assert.equal(reports[0]?.ending, "LOST");
  assert.equal((await board.claim({ owner: "next" }))[0]?.uuid, uuid);
});

test("a handler that runs for too long", async () => {
  const board = await server.board();
  const [byWorker, byJob] = [await board.post({ name: "worker" }), await board.post({ name: "job", timeoutMs: 4000 })];
  for (const options of [{ names: ["worker"], timeoutMs: 50 }, { names: ["job"] }]) {
    const { first, handler } = endless();
    const { run, reports } = working({ board, maxJobs: 1, handler, ...options });
    assert.ok((await fired((await first).signal)) instanceof TimedOut);
    await run;
    assert.equal(reports[0]?.ending, "ABANDONED");
  }
  for (const { uuid } of [byWorker, byJob]) {
    const { attempt, lastReason } = await board.get(uuid);
    assert.deepEqual([attempt, lastReason], [1, "timeout"]);
  }
});

test("a worker that stops gives back what it has, and no attempt is used up", async () => {
  const board = await server.board();
  const { uuid } = await board.post({ name: "x" });
  const { first, handler } = endless();
  const { worker, run, reports } = working({ board, concurrency: 2, handler });
  const { signal } = await first;
  worker.stop();
  assert.ok((await fired(signal)) instanceof Stopping);
  await run;
  assert.equal(reports[0]?.ending, "ABANDONED");
  const job = await board.get(uuid);
  assert.deepEqual([job.state, job.attempt], [pb.State_Enum.UNCLAIMED, 0]);
});

test("a job that comes as the worker stops is worked on or there for others", async () => {
  const board = await server.board();
  for (let i = 0; i < 10; i++) {
    const { worker, run, reports } = working({ board, handler: () => undefined });
    await eventually("the worker waits", async () => (await entities(board)).includes(worker.owner));
    const posted = board.post({ name: `n${i}` });
    if (i % 2 === 0) await new Promise((resolve) => setTimeout(resolve, i / 4));
    worker.stop();
    await run;
    const job = await board.get((await posted).uuid);
    if (reports.length > 0) assert.equal(job.state, pb.State_Enum.COMPLETE);
    else {
      assert.deepEqual([job.state, job.attempt], [pb.State_Enum.UNCLAIMED, 0]);
      await board.cancel(job.uuid);
    }
  }
});

async function entities(board: Board): Promise<string[]> {
  return (await board.call(BoardService.method.listEntities, {})).entities.map(({ name }) => name);
}

test("a board lists the worker while it runs", async () => {
  const board = await server.board();
  const { worker, run } = working({ board, owner: "me", labels: { gpu: "yes" }, handler: () => undefined });
  await eventually("it is listed", async () => (await entities(board)).includes("me"));
  worker.stop();
  await run;
  await eventually("it is listed no more", async () => (await entities(board)).length === 0);
});

test("answers that are lost run no handler twice", async () => {
  const line = await Line.to(server);
  const board = await server.board("30s", line.addr);
  await board.postAll(names(40));
  const seen: string[] = [];
  line.loseAnswers("Work", 5);
  const { run, reports } = working({ board, concurrency: 3, untilEmpty: true, handler: (claim) => void seen.push(claim.uuid) });
  await run;
  assert.equal(line.lost, 5);
  assert.equal(seen.length, 40);
  assert.equal(new Set(seen).size, 40);
  assert.ok(reports.every(({ ending }) => ending === "CONSUMED"));
});

test("a worker goes on when connections are cut", async () => {
  const line = await Line.to(server);
  const board = await server.board("30s", line.addr);
  await board.postAll(names(40));
  const seen = new Set<string>();
  const { run, reports } = working({
    board,
    concurrency: 3,
    maxJobs: 40,
    handler: (claim) => {
      seen.add(claim.uuid);
      if (seen.size % 5 === 0) line.cut();
    },
  });
  await run;
  assert.equal(seen.size, 40);
  assert.ok(reports.every(({ ending }) => ending === "CONSUMED"), JSON.stringify(reports.map(({ ending }) => ending)));
});

test("a worker goes on when the server is killed and comes back", async () => {
  const mine = await Server.start();
  const board = await mine.board();
  await board.postAll(names(30));
  let handled = 0;
  const restart = async () => {
    await mine.kill();
    await mine.start();
  };
  const restarts: Promise<void>[] = [];
  const { run, reports } = working({
    board,
    concurrency: 2,
    maxJobs: 30,
    handler: async () => {
      if (++handled === 10 || handled === 20) restarts.push(restart());
      await new Promise((resolve) => setTimeout(resolve, 5));
    },
  });
  await run;
  await Promise.all(restarts);
  assert.equal(restarts.length, 2);
  assert.ok(reports.every(({ ending }) => ending === "CONSUMED"));
  const { unclaimed, claimed } = await board.count();
  assert.deepEqual([handled, unclaimed, claimed], [30, 0n, 0n]);
});

test("a server that does not answer costs the lease, and the handler knows in time", async () => {
  const mine = await Server.start();
  const board = await mine.board("4s");
  const { uuid } = await board.post({ name: "x" });
  let runs = 0;
  const { first, handler } = endless();
  const { run, reports } = working({ board, maxJobs: 2, handler: (claim, signal) => (runs++ === 0 ? handler(claim, signal) : undefined) });
  const { signal } = await first;
  mine.process.kill("SIGSTOP");
  assert.ok((await fired(signal)) instanceof LeaseLost);
  mine.process.kill("SIGCONT");
  await run;
  assert.deepEqual(reports.map(({ ending }) => ending), ["LOST", "CONSUMED"]);
  assert.equal((await board.get(uuid)).state, pb.State_Enum.COMPLETE);
});

test("a worker whose token is revoked stops at once", async () => {
  const board = await server.board();
  const { secret } = await server.admin("CreateToken", { tenant: "default", name: "short-lived", roles: ["worker"] });
  await board.post({ name: "x" });
  const { first, handler } = endless();
  const narrow = new Client({ addr: server.addr, token: String(secret) }).board(board.name);
  const { run, reports } = working({ board: narrow, concurrency: 2, handler });
  const { signal } = await first;
  await server.admin("RevokeToken", { tenant: "default", name: "short-lived" });
  assert.ok((await fired(signal)) instanceof LeaseLost);
  await assert.rejects(run, (e) => isKind(e, "UNAUTHENTICATED"));
  assert.equal(reports[0]?.ending, "LOST");
});

test("a worker that may not work says so", async () => {
  const board = await server.board();
  const { secret } = await server.admin("CreateToken", { tenant: "default", name: "reader", roles: ["viewer"] });
  const worker = new Worker({ board: new Client({ addr: server.addr, token: String(secret) }).board(board.name), handler: () => undefined });
  await assert.rejects(worker.run(), (e) => isKind(e, "PERMISSION_DENIED"));
  assert.throws(() => new Worker({ board, handler: () => undefined, concurrency: 0 }), /concurrency: want/);
});
