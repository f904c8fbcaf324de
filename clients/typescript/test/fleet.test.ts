// Three servers on one Redis that serve their boards together, and clients that are told of one of them alone. BOARDD_REDIS
// is the address of the Redis, BOARDD_PLUGINS the driver's folder.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, pb, Worker, type Board, type Claim, type ClientOptions } from "@boardd/client";
import { eventually, freePort, Line, Server } from "./server.js";

const token = "a-token-for-the-tests";

function config(port: number, line: number, boards: string[]): string {
  return `
plugin_dir = "${process.env["BOARDD_PLUGINS"]}"
advertise  = "http://127.0.0.1:${port}"
fleet {
  public = "http://127.0.0.1:${line}"
}
token "root" {
  roles  = ["operator"]
  secret = "${token}"
}
backend "main" {
  driver = "redis"
  config = { address = "${process.env["BOARDD_REDIS"]}" }
}
catalog {
  backend = "main"
}
${boards.map((name) => `board "${name}" {\n  backend = "main"\n}\n`).join("")}`;
}

/** A server of a fleet, and the line at which clients may go straight to it. */
interface Member {
  server: Server;
  line: Line;
}

async function ask(server: Server, service: string, method: string, request: object): Promise<Record<string, any>> {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const answer = await fetch(`${server.addr}/boardd.v1.${service}/${method}`, { method: "POST", headers, body: JSON.stringify(request) });
  const body = (await answer.json()) as Record<string, any>;
  if (!answer.ok) throw new Error(`${method}: ${JSON.stringify(body)}`);
  return body;
}

class Fleet {
  private static made = 0;
  readonly names = Array.from({ length: 6 }, (_, n) => `fleet${Fleet.made}-${n}`);
  readonly board = this.names[3] ?? "";

  private constructor(
    readonly members: Member[],
    /** Who has the board. */
    readonly owner: Member,
    /** Whom the client is told of. */
    readonly known: Member,
    /** Where. */
    readonly front: Line,
  ) {}

  static async start(): Promise<Fleet> {
    const names = Array.from({ length: 6 }, (_, n) => `fleet${Fleet.made}-${n}`);
    const members: Member[] = [];
    for (let n = 0; n < 3; n++) {
      const port = await freePort();
      const line = await Line.to({ port });
      members.push({ line, server: await Server.configured(port, config(port, Number(line.addr.split(":").at(-1)), names)) });
    }
    await settled(members, names.length);
    const owner = await ownerOf(members, names[3] ?? "");
    const known = members.find((member) => member !== owner);
    if (known === undefined) throw new Error("there is one server");
    const fleet = new Fleet(members, owner, known, await Line.to(known.server));
    Fleet.made++;
    return fleet;
  }

  /** Ends the servers, so that the next fleet is alone on the Redis. */
  async close(): Promise<void> {
    for (const { server } of this.members) await server.close();
  }

  open(options: ClientOptions = {}): Board {
    return new Client({ addr: this.front.addr, token, ...options }).board(this.board);
  }

  get others(): Member[] {
    return this.members.filter((member) => member !== this.owner);
  }

  settled(): Promise<void> {
    return settled(this.members, this.names.length);
  }

  /** Waits until the board is the owner's, or no more. */
  async moved(back: boolean): Promise<Member> {
    await eventually("the board has moved", async () => ((await ownerOf(this.others, this.board, this.members)) === this.owner) === back);
    return ownerOf(this.others, this.board, this.members);
  }

  async drain(undo: boolean): Promise<void> {
    await ask(this.known.server, "AdminService", "DrainServer", { server: this.owner.server.addr, undo });
  }

  /** Waits until calls are made at a server, and nowhere else. */
  async goesStraight(board: Board, member: Member): Promise<void> {
    const calls = (line: Line): number => line.calls.filter((call) => call === "CountJobs").length;
    await eventually("calls go straight to the board's server", async () => {
      const [before, there] = [calls(this.front), calls(member.line)];
      await board.count();
      return calls(this.front) === before && calls(member.line) > there;
    });
  }
}

async function ownerOf(at: Member[], board: string, among = at): Promise<Member> {
  const answer = await ask((at[0] as Member).server, "BoardService", "GetBoard", { board });
  const owner = among.find(({ server }) => server.addr === answer["board"].server);
  if (owner === undefined) throw new Error(`nobody has the board: ${JSON.stringify(answer)}`);
  return owner;
}

/** Waits until the servers, and no others, live, and each board is open on one of them. */
async function settled(members: Member[], boards: number): Promise<void> {
  await eventually("each board is open on one server", async () => {
    for (const { server } of members) {
      const { servers } = await ask(server, "AdminService", "ListServers", {});
      const live = (servers as { live: boolean; boards: string }[]).filter((one) => one.live);
      if (live.length !== members.length || live.reduce((sum, one) => sum + Number(one.boards), 0) !== boards) return false;
    }
    return true;
  });
}

test("clients go straight to the server of a fleet, through a kill, a drain and a stop of the one that they know", { timeout: 300_000 }, async (t) => {
  const fleet = await Fleet.start();
  t.after(() => fleet.close());
  const board = fleet.open();
  await fleet.goesStraight(board, fleet.owner);
  const stop = new AbortController();
  const seen: string[] = [];
  const other: pb.EventType_Enum[] = [];
  const { cursor } = await board.call(pb.BoardService.method.listEvents, {});
  const watching = (async () => {
    for await (const event of fleet.open().watch({ from: cursor, signal: stop.signal })) {
      if (event.type === pb.EventType_Enum.POSTED) seen.push(event.job?.uuid ?? "");
      if (event.type === pb.EventType_Enum.RESYNC) other.push(event.type);
    }
  })();
  const worked: string[] = [];
  const endings = new Set<string>();
  const worker = new Worker({ board, concurrency: 4, handler: (claim: Claim) => void worked.push(claim.uuid), report: ({ ending }) => endings.add(ending) });
  const run = worker.run();
  const posted: string[] = [];
  const more = async (): Promise<void> => {
    for (let n = 0; n < 20; n++) posted.push((await board.post({ name: "x" })).uuid);
    await eventually("they are worked", () => worked.length >= posted.length);
  };
  await more();
  await fleet.owner.server.kill(); // the client knows one server that had to pass its calls on
  await more();
  const next = await fleet.moved(false);
  if (next !== fleet.known) await fleet.goesStraight(board, next);
  await fleet.owner.server.start();
  await fleet.settled();
  await fleet.goesStraight(board, fleet.owner);
  await fleet.drain(false); // the board moves while calls wait
  await fleet.moved(false);
  await more();
  await fleet.drain(true);
  await fleet.moved(true);
  await fleet.goesStraight(board, fleet.owner);
  await fleet.known.server.kill(); // it is needed no more
  await more();
  await eventually("all are seen", () => seen.length >= posted.length);
  worker.stop();
  await run;
  stop.abort();
  await watching;
  assert.deepEqual(seen, posted, "the watch missed a post, or saw it twice");
  assert.deepEqual(other, []);
  assert.deepEqual(worked.toSorted(), posted.toSorted(), "nothing was done twice");
  assert.deepEqual([...endings], ["CONSUMED"]);
});

test("a call and a watch go on at the board's new server at once", { timeout: 300_000 }, async (t) => {
  const fleet = await Fleet.start();
  t.after(() => fleet.close());
  const board = fleet.open({ retryForMs: 0 });
  await fleet.goesStraight(board, fleet.owner);
  const calls = (line: Line, call: string): number => line.calls.filter((made) => made === call).length;
  const claiming = board.claim({ owner: "me", waitMs: 60_000 });
  const events = board.watch();
  const event = events.next();
  await eventually("they wait", () => calls(fleet.owner.line, "ClaimJobs") === 1 && calls(fleet.owner.line, "WatchBoard") === 1);
  await fleet.drain(false);
  await eventually("they wait elsewhere", () => calls(fleet.front, "ClaimJobs") === 1 && calls(fleet.front, "WatchBoard") === 1);
  const { uuid } = await fleet.open().post({ name: "x" });
  assert.deepEqual((await claiming).map((claim) => claim.uuid), [uuid]);
  assert.equal((await event).value?.job?.uuid, uuid);
  await events.return();
  assert.equal(calls(fleet.owner.line, "ClaimJobs"), 1);
});
