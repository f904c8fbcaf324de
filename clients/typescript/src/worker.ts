import type { Board } from "./board.js";
import { newOwner, type Ending } from "./ending.js";
import { BoarddError } from "./error.js";
import type { Claim } from "./gen/boardd/v1/boardd_pb.js";
import { Run } from "./run.js";

/** How one job ended. */
export interface Report {
  claim: Claim;
  ending: Ending;
  /** What the handler threw, or why the claim was lost. */
  error?: unknown;
}

/** What a worker is made of. Board and handler must be given; everything else has a meaning when it is absent. */
export interface WorkerOptions {
  board: Board;
  /**
   * Works on one job. What it returns is not looked at; how it comes back ends the claim:
   *
   * - it returns: the job is consumed
   * - it throws CancelRequested, or anything after the signal fired with that reason: the job is canceled
   * - it throws a TrashError: the job is set aside for a person
   * - it throws a RetryError: the job is given back, and the attempt is refunded
   * - it throws anything after the signal fired with TimedOut: it is given back with the reason "timeout", and the attempt counts
   * - it throws anything after the signal fired with Stopping: it is given back at once, and the attempt is refunded
   * - it throws anything else: it is given back, to be tried again after the board's back-off, or where the board sets none
   *   after 1 s, doubled for each attempt up to 5 min
   *
   * Its signal fires before the claim's lease can run out, and at once when the claim was taken away or the worker's token
   * was revoked (the reason is a LeaseLost); when the job is to be canceled (CancelRequested); when it has run for as long
   * as it may (TimedOut); and when the worker stops (Stopping). A job runs at least once: a handler may see one again whose
   * claim was lost. Code that keeps the event loop busy keeps leases from being extended.
   */
  handler: (claim: Claim, signal: AbortSignal) => unknown;
  /** Absent: newOwner(). No two workers may have the same. */
  owner?: string;
  /** Only jobs of these names; absent: of any. */
  names?: string[];
  /** Only jobs that it fits: FIELD OP VALUE, joined by AND. */
  filter?: string;
  /** Describe the worker to the board's policies. */
  labels?: Record<string, string>;
  /** Handlers at the same time; 1. */
  concurrency?: number;
  /** Absent: the board's. */
  leaseMs?: number;
  /** For how long a handler may run; absent: for as long as the job's timeout lets it. */
  timeoutMs?: number;
  /** Shown to people. */
  version?: string;
  /** run() returns after so many jobs. */
  maxJobs?: number;
  /** run() returns when there is nothing to claim and nothing in hand. */
  untilEmpty?: boolean;
  /** Is told how each job ended. Absent: console.error is, of those that failed, were set aside or lost. */
  report?: (report: Report) => void;
  /** Is told what passes, such as a server that cannot be reached; absent: console.warn is. */
  warn?: (message: string) => void;
}

/**
 * A Worker claims jobs of one board, runs a handler on each, keeps the claims alive meanwhile, and ends them by what the
 * handler did. While it runs, the board lists it among those who work on it, where its token allows that.
 */
export class Worker {
  readonly owner: string;
  private run_: Run | undefined;

  constructor(private readonly options: WorkerOptions) {
    const { concurrency = 1 } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1) throw new BoarddError("INVALID", "new Worker", `concurrency: want a whole number from 1 on, got ${concurrency}`);
    if (typeof options.handler !== "function") throw new BoarddError("INVALID", "new Worker", `handler: want a function of a claim and a signal, got ${typeof options.handler}`);
    this.owner = options.owner ?? newOwner();
  }

  /**
   * Works until the signal fires, there is nothing more to do by maxJobs or untilEmpty, or the server refuses the worker
   * for good, which is the error then. When the signal fires it claims no more, fires the handlers' signals, and gives back
   * what they leave undone with the attempt refunded. It returns when every handler has come back, and goes on extending
   * their leases until then.
   */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.run_ !== undefined) throw new BoarddError("FAILED_PRECONDITION", "run", "the worker runs already");
    this.run_ = new Run(this.options, this.owner);
    const stop = (): void => this.stop();
    if (signal?.aborted) this.stop();
    signal?.addEventListener("abort", stop);
    try {
      await this.run_.work();
    } finally {
      signal?.removeEventListener("abort", stop);
      this.run_ = undefined;
    }
  }

  /** Does what the signal of run() does. */
  stop(): void {
    this.run_?.stop();
  }
}
