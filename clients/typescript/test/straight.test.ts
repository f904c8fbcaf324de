// The way to the server that has a board: which address is called, and which is never sent the token.
import assert from "node:assert/strict";
import { once } from "node:events";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, mock, test } from "node:test";
import { toBinary, create } from "@bufbuild/protobuf";
import { BoardService, Client, isKind, pb, type Board, type ClientOptions } from "@boardd/client";
import { trusts } from "../node_modules/@boardd/client/dist/straight.js";
import { eventually } from "./server.js";

const health = "/healthz";
const counts = toBinary(pb.CountJobsResponseSchema, create(pb.CountJobsResponseSchema, {}));
const unavailable = JSON.stringify({ code: "unavailable", message: "ask again" });

/** Who was asked, in their order. */
class Fleet {
  asked: string[] = [];
  private leaks: string[] = [];
  private readonly open: http.Server[] = [];

  async door(name: string): Promise<Door> {
    const door = new Door(name, this);
    this.open.push(door.server);
    door.server.listen(0, "127.0.0.1");
    await once(door.server, "listening");
    door.addr = `http://127.0.0.1:${(door.server.address() as AddressInfo).port}`;
    return door;
  }

  note(what: string, token: boolean): void {
    this.asked.push(what);
    if (token && what.endsWith(health)) this.leaks.push(what);
  }

  /** Makes a call, and says whom it must have asked, the signs of life last. */
  async counts(board: Board, ...want: string[]): Promise<void> {
    await board.count();
    await this.settles(board, want);
  }

  async settles(board: Board, want: string[]): Promise<void> {
    const places: Map<string, { asking: boolean }> | undefined = board.client["straights"]?.places;
    await eventually("all was asked", () => [...(places?.values() ?? [])].every(({ asking }) => !asking));
    const asked = this.asked.splice(0).sort((a, b) => Number(a.endsWith(health)) - Number(b.endsWith(health)));
    assert.deepEqual(asked, want);
    assert.deepEqual(this.leaks, [], "a server that is not known to be one was sent the token");
  }

  close(): void {
    for (const server of this.open) server.close().closeAllConnections();
  }
}

/** A server of a fleet, as far as a client sees one. */
class Door {
  addr = "";
  readonly server: http.Server;
  tells: Record<string, string> = {};
  status = 200;
  form = "application/proto";
  body: string | Uint8Array = counts;
  sick = false;
  /** What it waits for before it answers a sign of life. */
  lively: Promise<void> = Promise.resolve();

  constructor(
    readonly name: string,
    fleet: Fleet,
  ) {
    this.server = http.createServer((request, answer) => {
      const token = request.headers.authorization !== undefined;
      request.resume();
      if (request.method === "GET") {
        fleet.note(name + (request.url ?? ""), token);
        return void this.lively.then(() => answer.writeHead(this.sick ? 404 : 200, { Connection: "close" }).end("ok"));
      }
      fleet.note(name, token);
      answer.writeHead(this.status, { "Content-Type": this.form, Connection: "close", ...this.tells }).end(this.body);
    });
  }

  passes(to: Door): void {
    this.tells = { "Boardd-Server": "http://inside", "Boardd-Public": to.addr };
  }

  cannot(): void {
    [this.status, this.form, this.body, this.tells] = [503, "application/json", unavailable, {}];
  }

  moves(to?: Door): void {
    this.cannot();
    this.tells = { "Boardd-Moved": "http://inside", ...(to === undefined ? {} : { "Boardd-Moved-Public": to.addr }) };
  }

  serves(): void {
    [this.status, this.form, this.body, this.tells] = [200, "application/proto", counts, {}];
  }

  async gone(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    if (this.server.listening) await once(this.server, "close");
  }
}

function at(given: Door[], options: ClientOptions = {}): Board {
  return new Client({ addr: given.map(({ addr }) => addr).join(","), token: "secret", ...options }).board("b");
}

async function doors<N extends string>(...names: N[]): Promise<{ fleet: Fleet } & Record<N, Door>> {
  const fleet = new Fleet();
  after(() => fleet.close());
  const made = await Promise.all(names.map(async (name) => [name, await fleet.door(name)] as const));
  return { fleet, ...(Object.fromEntries(made) as Record<N, Door>) };
}

/** Has this machine's monotonic clock go on when it is told to. */
function clock(t: { after: (done: () => void) => void }): { now: number } {
  const at = { now: 1_000_000 };
  const mocked = mock.method(performance, "now", () => at.now);
  t.after(() => mocked.mock.restore());
  return at;
}

describe("straight to the board's server", () => {
  test("it follows the board", async (t) => {
    const time = clock(t);
    const { fleet, front, one, two } = await doors("front", "one", "two");
    front.passes(one);
    const board = at([front]);
    await fleet.counts(board, "front", "one/healthz");
    await fleet.counts(board, "one");
    one.passes(two); // the board has moved
    await fleet.counts(board, "one", "two/healthz");
    await fleet.counts(board, "two");
    await two.gone();
    front.serves();
    await fleet.counts(board, "front"); // in the same call
    await fleet.counts(board, "front");
    front.passes(two); // it is to go to the one that is gone, which is not asked all the time
    await fleet.counts(board, "front");
    time.now += 4900;
    await fleet.counts(board, "front");
  });

  test("around the addresses that were given, while none is reachable", async () => {
    const { fleet, front, one, two } = await doors("front", "one", "two");
    front.passes(one);
    const board = at([front]);
    await fleet.counts(board, "front", "one/healthz");
    one.passes(two);
    await fleet.counts(board, "one", "two/healthz");
    await front.gone();
    await two.gone();
    one.serves();
    await fleet.counts(board, "one"); // which is known, and passes on what is not its own
    await fleet.counts(board, "one");
    one.passes(two); // so that another one is to be found, but is not
    await fleet.counts(board, "one");
    one.serves();
    await fleet.counts(board, "one");
  });

  test("one that does not answer is left alone, for longer each time", async (t) => {
    const time = clock(t);
    const { fleet, front, one } = await doors("front", "one");
    front.passes(one);
    one.sick = true;
    const board = at([front]);
    await fleet.counts(board, "front", "one/healthz");
    for (const pause of [5, 10, 20, 40, 80, 160, 300, 300]) {
      time.now += (pause - 0.5) * 1000;
      await fleet.counts(board, "front");
      time.now += 1000;
      await fleet.counts(board, "front", "one/healthz");
    }
    one.sick = false;
    time.now += 301_000;
    await fleet.counts(board, "front", "one/healthz");
    await fleet.counts(board, "one");
    one.tells = { "Boardd-Server": "http://inside" }; // the next one is not to be reached straight
    await fleet.counts(board, "one");
    await fleet.counts(board, "front");
  });

  test("calls end with the address of the server that has the board now", async () => {
    const { fleet, front, other, one, two } = await doors("front", "other", "one", "two");
    front.passes(one);
    const board = at([front, other]);
    await fleet.counts(board, "front", "one/healthz");
    one.moves(two);
    front.passes(two);
    let known = (): void => undefined;
    two.lively = new Promise((resolve) => (known = resolve));
    await board.count(); // which goes on before it is known
    known();
    await fleet.settles(board, ["one", "front", "two/healthz"]);
    await fleet.counts(board, "two");
    one.serves();
    two.moves(one);
    await fleet.counts(board, "two", "one"); // which is known
    one.cannot(); // nothing is said but that
    front.serves();
    await fleet.counts(board, "one", "front");
    front.moves();
    await fleet.counts(board, "front", "other");
  });

  for (const [status, form, body] of [
    [401, "application/json", `{"code":"unauthenticated"}`],
    [421, "application/json", `{"code":"permission_denied"}`],
    [502, "text/html", "a proxy's page"],
    [302, "text/html", "elsewhere"],
    [200, "text/html", "a page"],
    [404, "text/plain", "no page"],
    [400, "text/plain", "Client sent an HTTP request to an HTTPS server.\n"],
  ] as const) {
    test(`another one than was meant answers with ${status} and ${form}`, async () => {
      const { fleet, front, one } = await doors("front", "one");
      front.passes(one);
      [one.status, one.form, one.body] = [status, form, body];
      const board = at([front]);
      await fleet.counts(board, "front", "one/healthz");
      await fleet.counts(board, "one", "front");
      await fleet.counts(board, "front");
    });
  }

  test("the shortcut is no try", async () => {
    const { fleet, front, one } = await doors("front", "one");
    front.passes(one);
    const board = at([front], { retryForMs: 0 });
    await fleet.counts(board, "front", "one/healthz");
    await one.gone();
    front.serves();
    await fleet.counts(board, "front");
    await front.gone();
    await assert.rejects(board.count(), (e) => isKind(e, "UNAVAILABLE"));
  });

  test("a client that stays, and a call of no board", async () => {
    const { fleet, front, one } = await doors("front", "one");
    front.passes(one);
    const stays = at([front], { stayAtAddr: true });
    await fleet.counts(stays, "front");
    await fleet.counts(stays, "front");
    const board = at([front]);
    await board.client.call(BoardService.method.whoAmI, {});
    await fleet.settles(board, ["front"]);
  });

  test("what is kept is bounded", async () => {
    const { fleet, front } = await doors("front");
    const board = at([front]);
    const others = await Promise.all(Array.from({ length: 260 }, (_, n) => fleet.door(`s${n}`)));
    for (const [n, other] of others.entries()) {
      front.passes(other);
      await board.client.board(`b${n}`).count();
    }
    await eventually("all were asked", () => fleet.asked.filter((what) => what.endsWith(health)).length >= 256);
    assert.equal(new Set(fleet.asked.filter((what) => what.endsWith(health))).size, 256);
  });

  test("an OUTCOME_UNKNOWN of the server that it was passed on to is no refusal", async () => {
    const { front } = await doors("front");
    const answers = ["OUTCOME_UNKNOWN", "INVALID"] as const;
    let asked = 0;
    front.server.removeAllListeners("request");
    front.server.on("request", (request, answer) => {
      request.resume();
      const code = answers[asked++] ?? "INVALID";
      const value = Buffer.from(toBinary(pb.ErrorSchema, create(pb.ErrorSchema, { code: pb.Code_Enum[code], message: code }))).toString("base64");
      const error = { code: code === "INVALID" ? "invalid_argument" : "unavailable", details: [{ type: "boardd.v1.Error", value }] };
      answer.writeHead(code === "INVALID" ? 400 : 503, { "Content-Type": "application/json" }).end(JSON.stringify(error));
    });
    await assert.rejects(at([front]).post({ name: "x" }), (e) => isKind(e, "OUTCOME_UNKNOWN") && e.changed === "unknown");
    assert.equal(asked, 2);
  });
});

test("which addresses may have the token", () => {
  for (const [given, named, trusted] of [
    ["http://front", "http://one", true],
    ["http://front", "https://one", true],
    ["https://front", "https://one", true],
    ["https://front", "http://one", false],
    ["http://front,https://other", "http://one", false],
    ["https://front", "https://one:444", true],
    ["http://front", "http://localhost:1", false],
    ["http://front", "http://LOCALHOST.", false],
    ["http://front", "http://127.0.0.2", false],
    ["http://front", "http://a.localhost", false],
    ["http://front", "http://[::1]:80", false],
    ["http://front", "http://[::ffff:127.0.0.1]:80", false],
    ["http://front", "http://[::]:80", false],
    ["http://front", "http://0.0.0.0", false],
    ["http://localhost", "http://127.0.0.1:1", true],
    ["http://[::1]", "http://127.0.0.1:1", true],
    ["http://front", "http://one.", true],
    ["http://front", "http://u:p@one", false],
    ["http://front", "http://one?x=1", false],
    ["http://front", "http://one?", false],
    ["http://front", "http://one#x", false],
    ["http://front", "http://one/", false],
    ["http://front", "http://10.0.0.1", true],
    ["http://front", "http://[2001:db8::1]:7422", true],
    ["http://front", "http://127.1", false],
    ["http://front", "http://2130706433", false],
    ["http://front", "http://0x7f.1", false],
    ["http://front", "http://0x7f000001.", false],
    ["http://front", "http://one.0xab.example", true],
    ["http://localhost", "http://127.1", false],
    ["http://front", "ftp://one", false],
    ["http://front", "one", false],
    ["http://front", "http:one", false],
    ["http://front", "http://", false],
    ["http://front", "http://one:x", false],
    ["http://front", "http://one:99999", false],
    ["http://front", " http://one", false],
    ["http://front", "http://one\n", false],
    ["http://front", "", false],
  ] as const) {
    assert.equal(trusts(given.split(","), named), trusted, `${given} and ${named}`);
  }
});
