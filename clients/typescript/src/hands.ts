import { durationMs } from "@bufbuild/protobuf/wkt";
import { Alarm, backoff, now } from "./clock.js";
import { CancelRequested, LeaseLost, Stopping, TimedOut } from "./ending.js";
import { BoarddError, isKind } from "./error.js";
import { What_Enum, type Claim, type ExtendResult, type WorkNotice } from "./gen/boardd/v1/boardd_pb.js";

/** What is known of a claim. Doubted: nothing was heard in time, so its lease may have run out. Gone: the server said so. */
export type Fate = "in hand" | "doubted" | "gone";

/** One claim in hand. */
export class Hand {
  readonly controller = new AbortController();
  leaseMs: number; // 0: it does not expire
  fate: Fate = "in hand";
  stopping = false;
  late = false;
  canceled = false;
  done = false; // the handler has returned
  heardAt: number | undefined; // of something that may have ended it; undefined: the server was asked since
  expiry: Alarm | undefined;
  limit: Alarm | undefined;

  constructor(
    readonly claim: Claim,
    public since: number, // from when the lease counts
  ) {
    this.leaseMs = claim.lease === undefined ? 0 : durationMs(claim.lease);
  }
}

/** What the hands need of the worker that they belong to. */
export interface Owner {
  extend(hands: Hand[], within: number): Promise<(ExtendResult | BoarddError)[]>;
  warn(message: string): void;
}

/** The part of a lease during which its holder may act: the rest is for what a clock gains, and for the handler to stop. */
const trust = 0.9;

/** How long before the end of a job's timeout its handler is told to stop; at most an eighth of the timeout. */
const timeToStop = 15_000;

// Claims in one call, which is what a server takes.
const batch = 1000;

/** The claims that a worker has in hand. It extends their leases, and tells the handlers of those that it can't be sure of any longer. */
export class Hands {
  readonly all = new Set<Hand>();
  private readonly alarm = new Alarm(() => void this.extendDue());
  private extending = false;
  private failed = 0;
  private notBefore = 0;

  constructor(
    private readonly owner: Owner,
    private readonly timeoutMs: number,
  ) {}

  /** Takes a claim in hand that was asked for at a time. */
  add(claim: Claim, sent: number): Hand {
    const hand = new Hand(claim, sent);
    this.all.add(hand);
    if (hand.leaseMs > 0) {
      hand.expiry = new Alarm(() => this.lose(hand, "doubted", "the lease could not be extended in time"));
      if (now() >= sent + hand.leaseMs * trust) this.lose(hand, "doubted", "the claim was granted too late to be used");
      else hand.expiry.set(sent + hand.leaseMs * trust);
    }
    this.schedule();
    return hand;
  }

  /** Notes that the handler of a claim starts. */
  begin(hand: Hand): void {
    const timeout = hand.claim.job?.timeout;
    const whole = timeout === undefined ? 0 : durationMs(timeout);
    const ends = [Infinity];
    if (this.timeoutMs > 0) ends.push(now() + this.timeoutMs);
    // The job's timeout counts from the claim; at its end the server takes the claim away.
    if (whole > 0) ends.push(hand.since + whole - Math.min(whole / 8, timeToStop));
    const at = Math.min(...ends);
    if (at === Infinity) return;
    hand.limit = new Alarm(() => {
      if (hand.fate !== "in hand") return;
      hand.late = true;
      hand.controller.abort(new TimedOut("the handler has run for as long as it may"));
    });
    hand.limit.set(at);
  }

  /** Notes that the handler has returned: from now on the worker itself ends the claim. */
  finished(hand: Hand): void {
    hand.done = true;
    hand.heardAt = undefined;
    hand.limit?.clear();
  }

  /** Lets go of a claim. */
  remove(hand: Hand): void {
    this.all.delete(hand);
    hand.expiry?.clear();
    hand.limit?.clear();
    this.schedule();
  }

  /** Tells every handler that the worker stops. */
  stopAll(): void {
    for (const hand of this.all) {
      hand.stopping = true;
      hand.controller.abort(new Stopping("the worker stops"));
    }
  }

  /** Tells every handler that the server accepts nothing more from this worker: the claims are useless, though their leases last. */
  refuse(error: BoarddError): void {
    for (const hand of this.all) this.lose(hand, "gone", `the server refuses this worker: ${error.message}`);
  }

  /** Asks the server about every claim: a notice may have been missed. */
  checkAll(): void {
    for (const hand of this.all) this.ask(hand);
  }

  /** Takes note of what the server says of a claim. */
  notice(notice: WorkNotice): void {
    for (const hand of this.all) {
      const known = hand.claim.token === notice.token;
      if (hand.done || hand.claim.uuid !== notice.uuid || (!known && notice.token !== "")) continue;
      if (known && notice.what === What_Enum.CANCEL) this.cancel(hand);
      else if (known && notice.what === What_Enum.LOST) this.lose(hand, "gone", `the claim ended: ${notice.reason}`);
      else this.ask(hand); // a hint: the extension decides
    }
  }

  private ask(hand: Hand): void {
    if (hand.done || hand.canceled || hand.leaseMs <= 0) return;
    hand.heardAt = now();
    this.schedule();
  }

  private cancel(hand: Hand): void {
    hand.canceled = true;
    hand.controller.abort(new CancelRequested("the job is to be canceled"));
  }

  private lose(hand: Hand, fate: Fate, why: string): void {
    if (hand.fate !== "in hand") return;
    hand.fate = fate;
    hand.controller.abort(new LeaseLost(why));
  }

  /** Sets the alarm to when the first lease has used a third of itself. */
  private schedule(): void {
    if (this.extending) return; // which comes back here
    let first = Infinity;
    for (const hand of this.all) {
      if (hand.leaseMs <= 0 || hand.fate !== "in hand") continue;
      first = Math.min(first, hand.heardAt !== undefined ? 0 : hand.since + hand.leaseMs / 3);
    }
    if (first === Infinity) this.alarm.clear();
    else this.alarm.set(Math.max(first, this.notBefore));
  }

  /** Extends every lease that is due, and those that soon will be, in as few calls as there may be. */
  private async extendDue(): Promise<void> {
    this.extending = true;
    const due = [...this.all].filter((hand) => hand.leaseMs > 0 && hand.fate === "in hand" && (hand.heardAt !== undefined || now() >= hand.since + hand.leaseMs / 6));
    // A call that hangs must leave time for another one.
    const within = due.reduce((least, hand) => Math.min(least, hand.leaseMs / 4), 60_000);
    let well = true;
    for (let i = 0; i < due.length; i += batch) well = (await this.extend(due.slice(i, i + batch), within)) && well;
    this.failed = well ? 0 : this.failed + 1;
    this.notBefore = well ? 0 : now() + backoff(this.failed - 1, 100, 1000);
    this.extending = false;
    this.schedule();
  }

  /** Reports whether no other try is due. */
  private async extend(hands: Hand[], within: number): Promise<boolean> {
    const sent = now();
    let results: (ExtendResult | BoarddError)[];
    try {
      results = await this.owner.extend(hands, within);
    } catch (error) {
      if (isKind(error, "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND")) {
        this.refuse(error);
        return true;
      }
      // Otherwise the server was away, which is told once.
      if (!(error instanceof BoarddError && error.retryable)) this.owner.warn(`extending ${hands.length} leases failed: ${String(error)}`);
      return false;
    }
    return hands.map((hand, i) => this.extended(hand, sent, results[i])).every(Boolean);
  }

  private extended(hand: Hand, sent: number, result: ExtendResult | BoarddError | undefined): boolean {
    if (result === undefined || result instanceof BoarddError) {
      const away = result?.retryable === true;
      if (isKind(result, "LEASE_LOST", "NOT_FOUND", "NOT_OWNER", "NOT_CLAIMED")) {
        this.lose(hand, "gone", `the claim ended: ${result.message}`);
        return true;
      }
      if (!away) this.owner.warn(`extending the lease of job ${hand.claim.uuid} failed: ${String(result)}`);
      return false; // the lease stands as it was: there is time for another try
    }
    if (hand.heardAt !== undefined && hand.heardAt <= sent) hand.heardAt = undefined;
    hand.since = sent;
    hand.leaseMs = result.lease === undefined ? 0 : durationMs(result.lease);
    if (hand.leaseMs <= 0) hand.expiry?.clear();
    else if (hand.fate === "in hand" && this.all.has(hand)) hand.expiry?.set(sent + hand.leaseMs * trust);
    if (result.cancelRequested && !hand.done) this.cancel(hand);
    return true;
  }
}
