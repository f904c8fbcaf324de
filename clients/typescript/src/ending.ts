import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { duration } from "./board.js";
import { doubled } from "./clock.js";
import { How_Enum, type WorkEndingSchema } from "./gen/boardd/v1/boardd_pb.js";
import type { Hand } from "./hands.js";

/** What became of a claim. LOST: it ended before the worker could end it. */
export type Ending = "CONSUMED" | "TRASHED" | "ABANDONED" | "CANCELED" | "LOST";

/** Thrown by a handler to set the job aside for a person to look at: another try would fail as well. */
export class TrashError extends Error {
  override readonly name: string = "TrashError";
}

/** Thrown by a handler to give the job back with the attempt refunded: the reason was not the job's. */
export class RetryError extends Error {
  override readonly name: string = "RetryError";

  constructor(
    message: string,
    /** When it may be tried again; absent: after the board's back-off. */
    readonly afterMs?: number,
  ) {
    super(message);
  }
}

/** The reason of a handler's signal: the job is to be canceled. A handler may also throw it, and the job is. */
export class CancelRequested extends Error {
  override readonly name: string = "CancelRequested";
}

/** The reason of a handler's signal: the worker stops. */
export class Stopping extends Error {
  override readonly name: string = "Stopping";
}

/** The reason of a handler's signal: it has run for as long as it may. */
export class TimedOut extends Error {
  override readonly name: string = "TimedOut";
}

/** The reason of a handler's signal: the claim has ended, or may have. Somebody else may have the job already. */
export class LeaseLost extends Error {
  override readonly name: string = "LeaseLost";
}

/** Returns a name for a worker that no other one has: HOST-PID-RANDOM. */
export function newOwner(): string {
  return `${(hostname() || "worker").slice(0, 200)}-${process.pid}-${randomBytes(4).toString("hex")}`;
}

/** How a handler came back: it returned, or it threw. */
export type Outcome = { ok: true } | { ok: false; error: unknown };

/** A claim's end, and what is sent for it. */
export type Conclusion = { ending: "LOST" } | { ending: Ending; message: MessageInitShape<typeof WorkEndingSchema> };

/** Says how a claim ends by what its handler did. */
export function conclude(hand: Hand, outcome: Outcome, boardBacksOff: boolean): Conclusion {
  const { uuid, token } = hand.claim;
  // Worth a try even where the lease seemed lost: only the token decides.
  if (outcome.ok) return { ending: "CONSUMED", message: { uuid, token, how: How_Enum.CONSUME } };
  if (hand.fate !== "in hand") return { ending: "LOST" };
  const { error } = outcome;
  if (hand.canceled || error instanceof CancelRequested) return { ending: "CANCELED", message: { uuid, token, how: How_Enum.CANCEL } };
  const reason = reasonOf(error);
  if (error instanceof TrashError && !hand.late) return { ending: "TRASHED", message: { uuid, token, how: How_Enum.TRASH, reason } };
  const back = { uuid, token, how: How_Enum.ABANDON, reason };
  if (hand.stopping) return { ending: "ABANDONED", message: { ...back, refundAttempt: true, ...duration("retryAfter", 0) } };
  // Where the board sets no back-off, this does: from 1 s on, doubled for each attempt, up to 5 min.
  const pause = boardBacksOff ? {} : duration("retryAfter", doubled(Math.max(0, hand.claim.attempt - 1), 1000, 300_000));
  if (hand.late) return { ending: "ABANDONED", message: { ...back, reason: "timeout", ...pause } }; // as the server calls it
  if (!(error instanceof RetryError)) return { ending: "ABANDONED", message: { ...back, ...pause } };
  return { ending: "ABANDONED", message: { ...back, refundAttempt: true, ...(error.afterMs === undefined ? pause : duration("retryAfter", delay(error.afterMs))) } };
}

// The longest that a job may be delayed.
const maxDelayMs = 36_525 * 86_400_000;

/** What a board takes for a delay: from 0 on, and not too long. */
function delay(ms: number): number {
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), maxDelayMs);
}

/** The end of a claim whose handler has not begun. */
export function unbegun(hand: Hand): MessageInitShape<typeof WorkEndingSchema> {
  const { uuid, token } = hand.claim;
  return { uuid, token, how: How_Enum.ABANDON, reason: new Stopping("the worker stops").message, refundAttempt: true, ...duration("retryAfter", 0) };
}

// What a board keeps of a reason, in bytes.
const maxReason = 4096;

/** The text of what a handler threw, as far as a board keeps it. */
export function reasonOf(error: unknown): string {
  const text = Buffer.from(error instanceof Error ? error.message || error.name : String(error));
  if (text.length <= maxReason) return text.toString();
  return text.subarray(0, maxReason).toString().replace(/\uFFFD+$/, "");
}
