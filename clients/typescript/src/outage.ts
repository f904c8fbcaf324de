import { now } from "./clock.js";
import { CancelRequested, LeaseLost, reasonOf, RetryError, Stopping, TimedOut, TrashError, type Ending } from "./ending.js";
import type { BoarddError } from "./error.js";
import type { Claim } from "./gen/boardd/v1/boardd_pb.js";

// For how long calls may fail without a word: a server that is started anew is back by then.
const blipMs = 3000;

/** Says once that a server cannot be reached, and once that it answers again. */
export class Outage {
  private since: number | undefined; // undefined: the last try did not fail
  private told = false;

  constructor(private readonly warn: (message: string) => void) {}

  /** Takes note of a try of a call. */
  readonly tried = (began: number, error: BoarddError | undefined): void => {
    const { since, told } = this;
    if (error === undefined) {
      [this.since, this.told] = [undefined, false];
      if (told && since !== undefined) this.warn(`the server answers again, after ${Math.round((now() - since) / 1000)} s`);
      return;
    }
    this.since = since ?? began;
    this.told = told || now() - this.since >= blipMs;
    if (this.told && !told) this.warn(`the server cannot be reached; the worker goes on trying: ${error.message}`);
  };

  /** Says, of the first try of some that fail in a row, that the server answers and refuses for now: the others fail as it is away. */
  refusal(failed: number, error: BoarddError): void {
    if (failed === 0 && ["QUOTA_EXCEEDED", "INTERNAL"].includes(error.kind)) this.warn(`the server refuses for now; the worker goes on trying: ${error.message}`);
  }
}

const became: Partial<Record<Ending, string>> = { ABANDONED: "given back", TRASHED: "set aside", LOST: "left alone, as its claim was lost" };

/** Says how a job ended that failed. What the handler chose to give back did not, and one that is not wanted any more. */
export function failed(claim: Claim, ending: Ending, error: unknown, stopping: boolean): void {
  const what = became[ending];
  if (what === undefined || error === undefined) return;
  if (ending !== "LOST" && (stopping || error instanceof RetryError)) return;
  const line = `boardd: job ${claim.uuid} (${claim.job?.name ?? ""}) failed at attempt ${claim.attempt}, and was ${what}: ${reasonOf(error)}`;
  // Where a handler meant what it threw, nobody has to look for the place.
  const meant = [TrashError, CancelRequested, Stopping, TimedOut, LeaseLost].some((kind) => error instanceof kind);
  console.error(ending === "LOST" || meant || !(error instanceof Error) || error.stack === undefined ? line : `${line}\n${error.stack}`);
}
