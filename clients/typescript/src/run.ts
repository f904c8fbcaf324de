import { hostname } from "node:os";
import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { duration, json, refusedLater } from "./board.js";
import { Alarm, backoff, now, sleep } from "./clock.js";
import { conclude, reasonOf, unbegun, type Outcome } from "./ending.js";
import { BoarddError, isKind, itemError } from "./error.js";
import { BoardService, type Claim, type WorkEndingSchema, type WorkRequestSchema, type WorkResponse } from "./gen/boardd/v1/boardd_pb.js";
import { Hands, type Hand } from "./hands.js";
import { failed, Outage } from "./outage.js";
import type { WorkerOptions } from "./worker.js";

type WorkEnding = MessageInitShape<typeof WorkEndingSchema>;
type WorkRequest = MessageInitShape<typeof WorkRequestSchema>;

/** An ending that a trip is to bring. */
interface Delivery {
  ending: WorkEnding;
  done: (error: BoarddError | undefined) => void;
  alone?: boolean; // it is brought by a trip of its own
}

/** A call that stands in line for claims, or with asked 0 for notices alone. */
interface Wait {
  asked: number;
  controller: AbortController;
  request: WorkRequest;
  busy: boolean; // claims were in hand as it was sent
  left: number; // claims that had been ended then
}

// With every handler busy, so long goes by before it waits for notices alone: most jobs end sooner than one comes.
const hushMs = 100;

// Items in one call, and claims that it asks for.
const most = 1000;

// For how long the worker is listed after it was last heard of, and what stands for "no more".
const presenceMs = 180_000;
const shortlyMs = 1000;

/**
 * One run of a worker. Two calls of Work are under way at most: a trip, which brings endings and comes back with claims, and
 * a wait, which stands in line for claims, or for notices alone where every handler is busy. Leases are extended by calls of
 * their own, so that a trip that hangs costs no claim.
 */
export class Run {
  private readonly hands: Hands;
  private readonly outage = new Outage((message) => this.warn(message));
  private readonly over = new AbortController(); // of everything in the background
  private readonly stopped = new AbortController();
  private outbox: Delivery[] = [];
  private free: number; // handlers that may start
  private reserved = 0; // claims that calls under way ask for
  private started = 0;
  private left = 0; // claims that were ended
  private trip = false; // one is under way
  private wait: Wait | undefined;
  private readonly quiet = new Alarm(() => this.turn(() => (this.hushed = true)));
  private readonly again = new Alarm(() => this.turn());
  private hushed = false; // it is time to wait for notices alone
  private retryAt = 0;
  private failed = 0; // waits in a row
  private missed = false; // notices, perhaps
  private dry = false; // nothing to claim until a claim in hand has ended
  private closing = false; // it claims no more
  private off = false; // the server said that it may not
  private leaseMs: number; // asked for or the board's; 0: not known, or none
  private boardBacksOff = false;
  private settle: ((error?: unknown) => void) | undefined;
  private result: { error?: unknown } | undefined; // it starts no handler any more

  constructor(
    private readonly options: WorkerOptions,
    private readonly owner: string,
  ) {
    this.free = options.concurrency ?? 1;
    this.leaseMs = options.leaseMs ?? 0;
    const extend = (hands: Hand[], within: number) => options.board.extend(hands.map((hand) => hand.claim), options.leaseMs, AbortSignal.any([this.over.signal, AbortSignal.timeout(Math.max(1, Math.floor(within)))]));
    this.hands = new Hands({ extend, warn: (message) => this.warn(message) }, options.timeoutMs ?? 0);
  }

  async work(): Promise<void> {
    await this.learnBoard();
    const shown = this.show();
    const ended = new Promise<void>((resolve, reject) => {
      this.settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.quiet.set(now() + hushMs);
    this.turn();
    try {
      await ended;
    } finally {
      this.over.abort();
      this.wait?.controller.abort();
      this.quiet.clear();
      this.again.clear();
      await shown;
    }
  }

  /** Claims no more, tells the handlers, and gives back what has not begun. */
  stop(): void {
    this.stopped.abort();
    this.turn(() => {
      this.closing = true;
      this.hands.stopAll();
      this.wait?.controller.abort();
    });
  }

  private warn(message: string): void {
    const { warn = (text: string) => console.warn(`boardd: ${text}`) } = this.options;
    warn(message);
  }

  /** Asks for the board's lease and back-off. */
  private async learnBoard(): Promise<void> {
    for (let failed = 0; !this.stopped.signal.aborted; failed++) {
      try {
        const { board } = await this.options.board.call(BoardService.method.getBoard, {}, { signal: this.stopped.signal, tried: this.outage.tried });
        this.boardBacksOff = board?.backoff !== undefined && durationMs(board.backoff) > 0;
        if (this.leaseMs === 0 && board?.lease !== undefined) this.leaseMs = durationMs(board.lease);
        return;
      } catch (error) {
        if (isKind(error, "PERMISSION_DENIED")) return; // a narrow token: claims tell their lease
        if (this.stopped.signal.aborted) return;
        if (!(error instanceof BoarddError && error.retryable)) throw error;
        this.outage.refusal(failed, error);
        await sleep(backoff(failed, 500, 30_000), this.stopped.signal);
      }
    }
  }

  /** Keeps the worker among those who work on the board. No claim depends on it. */
  private async show(): Promise<void> {
    const { labels, names, filter, concurrency = 1, version, board } = this.options;
    const metadata = json({ labels, names, filter, concurrency, host: hostname(), pid: process.pid, version });
    const request = (ttlMs: number) => ({ entity: { kind: "worker", name: this.owner, metadata }, ttl: durationFromMs(ttlMs) });
    let shown = false;
    for (let failed = 0; !this.over.signal.aborted; ) {
      let pause = presenceMs / 3;
      try {
        shown = true; // for all that is known
        await board.call(BoardService.method.registerEntity, request(presenceMs), { signal: this.over.signal });
        failed = 0;
      } catch (error) {
        if (!(error instanceof BoarddError && error.retryable)) return;
        pause = backoff(failed++, 1000, pause);
      }
      await sleep(pause, this.over.signal);
    }
    if (!shown) return;
    // Unheard, it runs out by itself.
    await board.call(BoardService.method.registerEntity, request(shortlyMs), { signal: AbortSignal.timeout(1000) }).catch(() => undefined);
  }

  /** How many claims may be asked for now. */
  private claimable(): number {
    const { concurrency = 1, maxJobs } = this.options;
    if (this.closing || this.outbox.length > 4 * concurrency + 256) return 0;
    const n = this.free - this.reserved;
    return Math.max(0, Math.min(n, most, maxJobs === undefined ? n : maxJobs - this.started - this.reserved));
  }

  /** Takes in what happened, and sends what there is to send. */
  private turn(change?: () => void): void {
    change?.();
    if (this.settle === undefined) return; // it has not begun
    if (!this.trip && this.outbox.length > 0) void this.sendTrip();
    const n = this.claimable();
    if (!this.off && now() >= this.retryAt) {
      if (this.wait === undefined && !this.trip && n > 0 && !this.dry) void this.sendWait(n);
      else if (this.wait === undefined && this.hushed && this.hands.all.size > 0) void this.sendWait(0);
      else if (this.wait?.asked === 0 && !this.trip && n > 0 && !this.dry) this.wait.controller.abort();
    }
    const { maxJobs } = this.options;
    if (maxJobs !== undefined && this.started >= maxJobs) this.closing = true;
    if (this.closing && !this.trip && (this.wait === undefined || this.wait.asked === 0)) this.finish();
    if (this.result !== undefined && this.hands.all.size === 0 && !this.trip) this.settle(this.result.error);
  }

  /** Starts no handler any more. */
  private finish(error?: unknown): void {
    this.closing = true;
    this.result ??= { error };
  }

  private request(max: number, ...endings: WorkEnding[]): WorkRequest {
    const { board, names = [], filter = "", labels = {}, leaseMs } = this.options;
    const requestId = max > 0 ? randomUUID() : "";
    return { board: board.name, owner: this.owner, max, names, filter, workerLabels: labels, requestId, endings, ...duration("lease", leaseMs) };
  }

  private async sendTrip(): Promise<void> {
    const brought = this.outbox.splice(0, this.outbox[0]?.alone === true ? 1 : most);
    const asked = this.claimable();
    const sent = now();
    this.trip = true;
    this.reserved += asked;
    let answer: WorkResponse | undefined;
    let failure: BoarddError | undefined;
    let unsure = false;
    let tries = 1;
    try {
      const request = this.request(asked, ...brought.map((delivery) => delivery.ending));
      ({ message: answer, unsure, tries } = await this.options.board.client.call(BoardService.method.work, request, { signal: this.over.signal, tried: this.outage.tried }));
    } catch (error) {
      failure = asError(error);
    }
    this.turn(() => {
      this.trip = false;
      this.reserved -= asked;
      if (isKind(failure, "INVALID") && brought.length > 1) {
        // Perhaps for one of them alone.
        this.outbox.unshift(...brought.map((delivery) => ({ ...delivery, alone: true })));
        return;
      }
      if (failure !== undefined) this.missed = true;
      brought.forEach(({ ending, done }, i) => {
        const error = answer?.ended[i]?.error;
        done(failure ?? (error === undefined ? undefined : refusedLater(itemError("Work", ending.uuid ?? "", error), unsure)));
      });
      if (failure !== undefined && isKind(failure, "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND")) this.refused(failure);
      if (answer !== undefined) {
        this.makeUp(tries);
        this.take(answer, sent);
      }
    });
  }

  private async sendWait(asked: number): Promise<void> {
    const request = this.request(asked);
    // A lease counts from before the call, so that a third of it at most may go by unused.
    const waitMs = asked > 0 && this.options.untilEmpty ? 0 : this.leaseMs > 0 ? Math.min(30_000, this.leaseMs / 3) : 5000;
    const busy = this.hands.all.size > 0 || this.trip || this.outbox.length > 0;
    const wait: Wait = { asked, controller: new AbortController(), request, busy, left: this.left };
    const sent = now();
    this.wait = wait;
    this.reserved += asked;
    let answered: (() => void) | undefined;
    try {
      const { message, tries } = await this.options.board.client.call(BoardService.method.work, { ...request, ...duration("wait", waitMs) }, { waitMs, signal: wait.controller.signal, tried: this.outage.tried });
      answered = () => this.answered(wait, message, sent, tries);
    } catch (error) {
      const failure = asError(error);
      if (wait.controller.signal.aborted && asked > 0 && !this.over.signal.aborted) await this.fetchCanceled(request);
      if (!wait.controller.signal.aborted) answered = () => this.waitFailed(failure);
      else this.missed = true; // an answer may have been on its way
    }
    this.turn(() => {
      this.wait = undefined;
      this.reserved -= asked;
      this.hushed = false;
      this.quiet.set(now() + hushMs);
      answered?.();
    });
  }

  /** Asks for what a wait that was called off may have been given, to give it back: nobody else would have it until its lease ran out. */
  private async fetchCanceled(request: WorkRequest): Promise<void> {
    const sent = now();
    const signal = AbortSignal.timeout(5000);
    const answer = await this.options.board.client.call(BoardService.method.work, request, { signal }).catch(() => undefined);
    if (answer !== undefined) this.take(answer.message, sent);
  }

  private answered(wait: Wait, answer: WorkResponse, sent: number, tries: number): void {
    this.failed = 0;
    this.makeUp(tries);
    this.take(answer, sent);
    if (!this.options.untilEmpty || wait.asked === 0 || answer.claims.length > 0) return;
    this.dry = this.left === wait.left; // a handler may give its job back, or post another, before it is done
    if (!wait.busy) this.finish();
  }

  /** Asks about every claim where the answer to an earlier call, or to an earlier try of this one, was lost: there may have been notices in it. */
  private makeUp(tries: number): void {
    if (this.missed || tries > 1) this.hands.checkAll();
    this.missed = false;
  }

  private waitFailed(error: BoarddError): void {
    if (this.closing && error.retryable) return;
    if (!error.retryable) return this.refused(error);
    const pause = backoff(this.failed++, 500, 30_000);
    this.missed = true;
    this.outage.refusal(this.failed - 1, error);
    this.retryAt = now() + pause;
    this.again.set(this.retryAt);
  }

  /** The server says for good that it may not work. */
  private refused(error: BoarddError): void {
    this.off = true;
    if (error.kind === "UNAUTHENTICATED") this.hands.refuse(error);
    this.finish(error);
  }

  /** Begins with claims, or gives them back where it is too late for that. */
  private take(answer: WorkResponse, sent: number): void {
    for (const notice of answer.notices) this.hands.notice(notice);
    for (const claim of answer.claims) {
      const hand = this.hands.add(claim, sent);
      if (this.closing) {
        void this.giveBack(hand);
        continue;
      }
      this.leaseMs = hand.leaseMs || this.leaseMs;
      this.started++;
      this.free--;
      void this.handle(claim, hand);
    }
  }

  private async handle(claim: Claim, hand: Hand): Promise<void> {
    this.hands.begin(hand);
    let outcome: Outcome = { ok: true };
    try {
      hand.controller.signal.throwIfAborted();
      await this.options.handler(claim, hand.controller.signal);
    } catch (error) {
      outcome = { ok: false, error };
    }
    this.hands.finished(hand);
    this.free++;
    const error = outcome.ok ? undefined : outcome.error;
    const end = conclude(hand, outcome, this.boardBacksOff);
    let lost: BoarddError | undefined;
    if ("message" in end) {
      lost = await this.insist(hand, end.message);
    } else {
      this.turn();
      await this.letGo(hand, error);
    }
    this.remove(hand);
    const ending = lost === undefined ? end.ending : "LOST";
    const { report } = this.options;
    if (report === undefined) failed(claim, ending, lost ?? error, hand.stopping);
    else report({ claim, ending, ...(lost ?? error) === undefined ? {} : { error: lost ?? error } });
  }

  private remove(hand: Hand): void {
    this.hands.remove(hand);
    this.turn(() => {
      this.left++;
      this.dry = false;
    });
  }

  /** Gives back a claim whose handler has not begun. */
  private async giveBack(hand: Hand): Promise<void> {
    this.hands.finished(hand);
    await Promise.race([this.deliver(unbegun(hand)), sleep(5000, this.over.signal)]);
    this.remove(hand);
  }

  private deliver(ending: WorkEnding): Promise<BoarddError | undefined> {
    return new Promise((done) => this.turn(() => this.outbox.push({ ending, done })));
  }

  /** Repeats the end of a claim until the server has taken it or refused it for good. The lease is extended meanwhile. */
  private async insist(hand: Hand, ending: WorkEnding): Promise<BoarddError | undefined> {
    const until = now() + Math.max(30_000, hand.since + hand.leaseMs - now());
    for (let failed = 0; ; failed++) {
      const error = await this.deliver(ending);
      if (error === undefined || !error.retryable) return error;
      const pause = backoff(failed, 50, 2000);
      if (now() + pause > until) return error;
      await sleep(pause);
    }
  }

  /** Gives back a claim that this machine could not keep up, though the server may still count on it. It is a courtesy: the lease ends anyway. */
  private async letGo(hand: Hand, error: unknown): Promise<void> {
    if (hand.fate !== "doubted") return;
    const request = { claims: [{ uuid: hand.claim.uuid, token: hand.claim.token }], reason: reasonOf(error), refundAttempt: true };
    await this.options.board.call(BoardService.method.abandonJobs, request, { signal: AbortSignal.timeout(5000) }).catch(() => undefined);
  }
}

function asError(error: unknown): BoarddError {
  return error instanceof BoarddError ? error : new BoarddError("INTERNAL", "Work", String(error), { changed: "unknown", cause: error });
}
