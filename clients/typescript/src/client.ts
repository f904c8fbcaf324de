import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { create, toBinary, type DescMessage, type DescMethodServerStreaming, type DescMethodUnary, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createNodeHttpClient } from "@connectrpc/connect-node";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { Board } from "./board.js";
import { backoff, now, sleep } from "./clock.js";
import { BoarddError, failureOf, type Failure } from "./error.js";
import { Ear, Silence } from "./silent.js";
import { namesAnother, strange, Straights, wayOf, type Place, type Way } from "./straight.js";

/** Where a boardd listens that was told nothing else. */
export const defaultAddr = "http://127.0.0.1:7422";

/** How to reach a server. What is absent comes from the environment, as the command line takes it. */
export interface ClientOptions {
  /** http://HOST:PORT or https://...; several servers of the same boards with commas between them. Absent: BOARDD_ADDR, or defaultAddr. */
  addr?: string;
  /** Sent with every call. Absent: BOARDD_TOKEN, or no token. */
  token?: string;
  /** A file with the token, read again when the server refuses it. Absent: BOARDD_TOKEN_FILE, unless a token is given. */
  tokenFile?: string;
  /** Certificates to trust instead of the system's, and our own, as PEM. */
  tls?: { ca?: string | Buffer; cert?: string | Buffer; key?: string | Buffer };
  /** For how long one attempt of a call may take, beyond what the call asks the server to wait; 30,000. */
  callTimeoutMs?: number;
  /** For how long a call is repeated while the server is not reachable; 30,000. 0: a call is tried once. */
  retryForMs?: number;
  /**
   * Makes every call at addr. Otherwise, where several servers share their boards and say where clients may go straight to
   * each of them, calls of a board go there once a server of addr has said so: with the same certificates, and never with
   * less encryption than to addr.
   */
  stayAtAddr?: boolean;
}

/** What a call may be given. */
export interface CallOptions {
  /** Ends the call; its error is INTERRUPTED then. */
  signal?: AbortSignal | undefined;
  /** For how long the request asks the server to wait. */
  waitMs?: number | undefined;
  /** Is told of each try, when it began, and why it failed where the server could not be reached. */
  tried?: ((began: number, error: BoarddError | undefined) => void) | undefined;
}

/** What came of a call. */
export interface Answer<T> {
  message: T;
  /** The answer to an earlier try was lost, which may have made the change. */
  unsure: boolean;
  /** How often it was tried. */
  tries: number;
}

// In which the transport says what HTTP's status was: its errors have only words for some.
const statusHeader = "Boardd-Client-Status";

// The largest message that the transport reads or writes, in bytes: it has no limit by itself.
const largest = 0xffffffff;

/** Where one request goes. */
interface Route {
  transport: Transport;
  ear: Ear | undefined;
  /** Which of the addresses that were given, unless it goes straight to a place. */
  at: number;
}

/** A Client calls a server with one token. Nothing is connected to before the first call. */
export class Client {
  private readonly transports: Transport[];
  private readonly ears: Ear[]; // of each of the transports; none: there is only one
  private lost = 0; // how many calls at the addresses that were given failed in a row
  private readonly straights: Straights | undefined; // undefined: every call goes to the addresses that were given
  private readonly straightTransports = new WeakMap<Place, Transport>();
  private readonly agent: { plain: http.Agent; tls: https.Agent };
  private readonly tokenFile: string | undefined;
  private readonly callTimeoutMs: number;
  private readonly retryForMs: number;
  private token: string;
  private at = 0; // of the transports

  constructor(options: ClientOptions = {}) {
    const env = process.env;
    const own = options.token !== undefined || options.tokenFile !== undefined;
    this.tokenFile = own ? options.tokenFile : env["BOARDD_TOKEN"] ? undefined : env["BOARDD_TOKEN_FILE"];
    this.token = options.token ?? (own ? "" : (env["BOARDD_TOKEN"] ?? ""));
    if (this.tokenFile !== undefined && this.token === "") this.token = readToken(this.tokenFile, own ? "tokenFile" : "BOARDD_TOKEN_FILE");
    checkToken(this.token);
    this.callTimeoutMs = options.callTimeoutMs ?? 30_000;
    this.retryForMs = options.retryForMs ?? 30_000;
    this.agent = { plain: new http.Agent({ keepAlive: true }), tls: new https.Agent({ keepAlive: true, ...options.tls }) };
    const addrs = (options.addr ?? (env["BOARDD_ADDR"] || defaultAddr)).split(",").map((addr) => addr.trim());
    this.transports = addrs.map((addr) => this.transportTo(addr));
    // A sign of life: whatever the server says, it says something.
    this.ears = addrs.length < 2 ? [] : addrs.map((addr, at) => new Ear(async (signal) => void (await this.health(addr, signal)), () => this.leave(at)));
    this.straights = options.stayAtAddr === true ? undefined : new Straights(addrs, async (addr, signal) => this.isOne(addr, signal));
  }

  private transportTo(addr: string): Transport {
    const url = URL.canParse(addr) ? new URL(addr) : undefined;
    if (url === undefined || !["http:", "https:"].includes(url.protocol) || url.pathname !== "/" || url.search !== "") {
      throw new BoarddError("INVALID", "new Client", `addr: want http://HOST:PORT or https://HOST:PORT, got ${JSON.stringify(addr)}`);
    }
    // Bytes, not JSON: in boardd's JSON details stand as they are, and the standard codec would take them for base64.
    const agent = url.protocol === "https:" ? this.agent.tls : this.agent.plain;
    const send = createNodeHttpClient({ httpVersion: "1.1", nodeOptions: { agent } });
    return createTransport({
      ...{ baseUrl: url.origin, useBinaryFormat: true, interceptors: [], acceptCompression: [], sendCompression: null, compressMinBytes: 0, readMaxBytes: largest, writeMaxBytes: largest },
      httpClient: async (request) => {
        const answer = await send(request);
        answer.header.set(statusHeader, String(answer.status));
        return answer;
      },
    });
  }

  /** The board of a name. Nothing is asked of the server. */
  board(name = process.env["BOARDD_BOARD"] || "default"): Board {
    return new Board(this, name);
  }

  /** Closes the connections to the server. A call that is under way, or made later, opens another one. */
  close(): void {
    this.agent.plain.destroy();
    this.agent.tls.destroy();
  }

  /**
   * Makes any unary call of the API, such as BoardService.method.explainJob, and makes it again while the server is not
   * reachable. That is safe as every change that a request asks for is named by it: by a uuid, a claim's token, or a
   * request id.
   */
  async call<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: MessageInitShape<I>, options: CallOptions = {}): Promise<Answer<MessageShape<O>>> {
    const waitMs = options.waitMs ?? 0;
    const until = now() + this.retryForMs + waitMs;
    const changes = method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    let unsure = false;
    let reloaded = false;
    let hurried = false;
    for (let tries = 1, counted = 0; ; tries++) {
      const way = wayOf(method, request);
      const route = this.route(way);
      const { token } = this;
      const began = now();
      let failure: Failure;
      try {
        options.signal?.throwIfAborted();
        const answer = await heard(route, waitMs > 0, options.signal, (signal) => route.transport.unary(method, signal, Math.ceil(this.callTimeoutMs + waitMs), this.headers(), request));
        this.answered(route, way, answer.header);
        options.tried?.(began, undefined);
        return { message: answer.message, unsure, tries };
      } catch (reason) {
        failure = failureOf(method.name, reason, token !== "");
        if (options.signal?.aborted) {
          if (timeIsOver(options.signal)) this.failed(route, way, reason, failure);
          throw gaveUp(method.name, changes && (unsure || failure.sent), options.signal.reason);
        }
        this.failed(route, way, reason, failure);
      }
      if (!failure.answered) checkEncoding(method, request);
      const { error } = failure;
      unsure ||= changes && ((failure.sent && !failure.answered) || error.kind === "OUTCOME_UNKNOWN");
      const again = ["UNAVAILABLE", "INTERRUPTED", "OUTCOME_UNKNOWN"].includes(error.kind);
      options.tried?.(waitMs > 0 ? now() : began, again ? error : undefined); // a server that was to wait may have done so
      hurried = !hurried && way.again(again);
      if (hurried) continue; // the addresses that were given have not been tried
      counted++;
      if (error.kind === "UNAUTHENTICATED" && !reloaded) {
        reloaded = true;
        if (this.renew(token)) continue;
      }
      const another = counted % this.transports.length !== 0;
      const pause = another ? 0 : Math.max(failure.pauseMs, backoff(Math.floor(counted / this.transports.length) - 1, 50, 2000));
      if (!again || now() + pause > until) throw inDoubt(error, unsure);
      await sleep(pause, options.signal);
    }
  }

  /** Makes a call that answers with a stream, once. Its errors are a BoarddError; the way says how it went. */
  async *stream<I extends DescMessage, O extends DescMessage>(method: DescMethodServerStreaming<I, O>, request: MessageInitShape<I>, signal?: AbortSignal, way = wayOf(method, request)): AsyncGenerator<MessageShape<O>, void, undefined> {
    const route = this.route(way);
    const { token } = this;
    let begun = false;
    try {
      const answer = await heard(route, false, signal, (signal) => route.transport.stream(method, signal, undefined, this.headers(), once(request)));
      this.answered(route, way, answer.header);
      begun = true;
      yield* answer.message;
    } catch (reason) {
      const failure = failureOf(method.name, reason, token !== "");
      const { error } = failure;
      if (signal?.aborted) {
        if (signal.reason instanceof Silence) this.left(route, way);
        throw gaveUp(method.name, false, signal.reason);
      }
      const moved = begun && reason instanceof ConnectError && this.straights?.moved(way, reason.metadata) === true;
      if (!moved) this.failed(route, way, reason, failure, begun);
      if (error.kind === "UNAUTHENTICATED" && this.renew(token)) throw new BoarddError("UNAVAILABLE", method.name, "the token's file has another token now", { cause: error });
      throw error;
    }
  }

  /** Where a request goes: to the server that has its board, if that is known, or to the one that is called now. */
  private route(way: Way): Route {
    const { at } = this;
    const place = way.board === "" ? undefined : (this.straights?.of(way.board) ?? this.around(way));
    way.straight = place;
    if (place === undefined) return { at, transport: this.transport(at), ear: this.ears[at] };
    let transport = this.straightTransports.get(place);
    if (transport === undefined) this.straightTransports.set(place, (transport = this.transportTo(place.addr)));
    return { at, transport, ear: place.ear };
  }

  /** Any server that is known, if none of the addresses was reachable. */
  private around(way: Way): Place | undefined {
    if (this.lost < this.transports.length) return undefined;
    this.lost = 0; // the next one tries them again
    const place = this.straights?.any();
    way.around = place !== undefined;
    return place;
  }

  /** Takes note of an answer. */
  private answered(route: Route, way: Way, header: Headers): void {
    const status = Number(header.get(statusHeader));
    const place = way.straight;
    if (place === undefined) this.lost = 0;
    way.strange = place !== undefined && strange(status, header);
    if (way.strange) return this.left(route, way);
    if (way.board !== "") this.straights?.learn(way, status, header);
    if (place !== undefined) this.straights?.done(place);
  }

  /** Takes note of an error: an answer that is one, or that there was none. */
  private failed(route: Route, way: Way, reason: unknown, failure: Failure, begun = false): void {
    const header = reason instanceof ConnectError ? reason.metadata : new Headers();
    const said = !begun && header.has(statusHeader);
    if (said) this.answered(route, way, header);
    if (way.straight !== undefined ? said || begun : failure.answered && failure.error.kind !== "UNAVAILABLE") return;
    if (said && namesAnother(header)) return; // it says who can serve
    this.left(route, way);
  }

  /** Leaves the server of a request, which could not be made there. */
  private left(route: Route, way: Way): void {
    if (way.straight === undefined) {
      this.lost++;
      this.leave(route.at);
    } else this.straights?.fail(way.straight);
  }

  /** Asks an address that one of the servers has named whether there is a server. */
  private async isOne(addr: string, signal: AbortSignal): Promise<void> {
    const status = await this.health(addr, signal);
    if (status !== 200) throw new Error(`the server answers with status ${status}`);
  }

  /** Asks a server how it is, and returns the status of what it answers. The program does not go on for that. */
  private health(addr: string, signal: AbortSignal): Promise<number> {
    const url = new URL("/healthz", addr);
    const [get, agent] = url.protocol === "https:" ? [https.get, this.agent.tls] : [http.get, this.agent.plain];
    return new Promise((resolve, reject) => {
      const answered = (answer: http.IncomingMessage): void => {
        answer.on("error", () => undefined).resume();
        resolve(answer.statusCode ?? 0);
      };
      get(url, { agent, signal }, answered).on("error", reject).on("socket", (socket) => socket.unref());
    });
  }

  /** Goes on to the next address, unless somebody else did. */
  private leave(at: number): void {
    if (this.at === at) this.at = (at + 1) % this.transports.length;
  }

  private transport(at: number): Transport {
    const transport = this.transports[at];
    if (transport === undefined) throw new Error("there is no such address");
    return transport;
  }

  private headers(): Record<string, string> {
    return this.token === "" ? {} : { Authorization: `Bearer ${this.token}` };
  }

  /**
   * Reports whether there is another token than the one that was refused. Of several calls that were refused with that one,
   * the first finds it in the file.
   */
  private renew(refused: string): boolean {
    if (this.token !== refused) return true;
    if (this.tokenFile === undefined) return false;
    try {
      const token = readFileSync(this.tokenFile, "utf8").trim();
      checkToken(token);
      this.token = token;
      return token !== refused;
    } catch {
      return false; // the old one may be good again
    }
  }
}

/** Reads a token's file; option is what named it. */
function readToken(file: string, option: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new BoarddError("INVALID", "new Client", `${option}: the file ${JSON.stringify(file)} cannot be read: ${why}`, { cause });
  }
}

/** Throws if a token is none, without saying what it is. */
function checkToken(token: string): void {
  if (/^[!-~]*$/.test(token)) return;
  throw new BoarddError("INVALID", "new Client", "token: want one line without blanks, as boardd token create prints it; it has other characters");
}

/** Makes a request, and has it fail when its server turns out to be silent. */
function heard<T>({ ear }: Route, waits: boolean, signal: AbortSignal | undefined, request: (signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
  return ear === undefined ? request(signal) : ear.listen(waits, signal, request);
}

/** Throws if a request cannot be sent at all, in which case the transport's error looks like one of the way to the server. */
function checkEncoding<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: MessageInitShape<I>): void {
  try {
    toBinary(method.input, create(method.input, request));
  } catch (cause) {
    throw new BoarddError("INVALID", method.name, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}

function timeIsOver(signal: AbortSignal): boolean {
  return signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
}

function gaveUp(op: string, unsure: boolean, cause: unknown): BoarddError {
  return new BoarddError("INTERRUPTED", op, "gave up before the server answered", { changed: unsure ? "unknown" : "no", cause });
}

/** Of a call of which an earlier try may have made the change: that a later one was refused says nothing of it. */
function inDoubt(error: BoarddError, unsure: boolean): BoarddError {
  if (!unsure || error.changed === "unknown") return error;
  return new BoarddError("OUTCOME_UNKNOWN", error.op, `the answer to a try was lost, which may have done it: ${error.message}`, { job: error.job, cause: error });
}
