import { randomUUID } from "node:crypto";
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { CallOptions, Client } from "./client.js";
import { backoff, sleep } from "./clock.js";
import { afterLost, BoarddError, enumValue, isKind, itemError } from "./error.js";
import * as pb from "./gen/boardd/v1/boardd_pb.js";
import { Silence } from "./silent.js";
import { wayOf } from "./straight.js";

/** A JSON object, or its text as bytes, which comes back byte for byte. */
export type Json = object | Uint8Array;

/** A posting. */
export interface NewJob {
  name: string;
  /** By which a posting can be repeated; post() gives it one where it has none. */
  uuid?: string;
  details?: Json;
  priority?: keyof typeof pb.Priority_Enum;
  labels?: Record<string, string>;
  /** Not to be claimed before. */
  notBefore?: Date;
  /** How many claims it gets; the board's where it is absent. */
  maxAttempts?: number;
  /** For how long one claim of it may stand. */
  timeoutMs?: number;
  /** Everything else that the API's NewJob has. */
  more?: Omit<MessageInitShape<typeof pb.NewJobSchema>, "$typeName" | "uuid" | "name" | "details" | "priority" | "labels" | "notBefore" | "maxAttempts" | "timeout">;
}

/** Which jobs are claimed, by whom and for how long. */
export interface ClaimOptions {
  owner: string;
  /** These jobs; absent: the best that this worker may have. */
  uuids?: string[];
  /** How many of the best; 1. */
  max?: number;
  names?: string[];
  /** FIELD OP VALUE, joined by AND. */
  filter?: string;
  /** Absent: the board's. */
  leaseMs?: number;
  /** Describe the worker to the board's policies. */
  labels?: Record<string, string>;
  /** For how long to wait for a job; at most 60,000. */
  waitMs?: number;
  /** Makes claiming again answer the same claims; absent: one is made, for the repetitions of this call. */
  requestId?: string;
  signal?: AbortSignal;
}

/** What became of a job of several that were to end: nothing, or why it did not. */
export type Ended = BoarddError | undefined;

/** How jobs go back to the board. */
export interface AbandonOptions {
  reason?: string;
  /** Absent: the board's back-off. */
  retryAfterMs?: number | undefined;
  /** The claim does not count as an attempt. */
  refundAttempt?: boolean;
}

/** Which jobs a listing shows. */
export interface ListOptions {
  /** Absent: UNCLAIMED and CLAIMED. */
  states?: (keyof typeof pb.State_Enum)[];
  filter?: string;
  fields?: string[];
  pageSize?: number;
  signal?: AbortSignal;
}

/** What a call reads of a claim, so that no job's details travel back. */
export type Proof = Pick<pb.Claim, "uuid" | "owner" | "token">;

/** The text of a job's details, of an operation's input and the like, as a value; undefined where there is none. */
export function parsed(json: Uint8Array | undefined): unknown {
  return json === undefined || json.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(json));
}

// How long a watch may be still before it is taken for dead: the server sends a heartbeat every 15 s.
const silenceMs = 45_000;

/**
 * One board of a server. A method on one job throws its BoarddError; one on several returns for each of them what it got
 * or its BoarddError, in the request's order.
 */
export class Board {
  constructor(
    readonly client: Client,
    readonly name: string,
  ) {}

  /** Makes any unary call of the API on this board. */
  async call<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: Omit<MessageInitShape<I>, "board">, options?: CallOptions): Promise<MessageShape<O>> {
    const answer = await this.client.call(method, { ...request, board: this.name } as unknown as MessageInitShape<I>, options);
    return answer.message;
  }

  /** Puts a job on the board. The posting gets a uuid if it has none, so that posting it once more after an error adds nothing twice. */
  async post(job: NewJob): Promise<pb.Job> {
    return only(await this.postAll([job]));
  }

  /** Puts jobs on the board, each by itself: one that is refused holds none of the others up. */
  async postAll(jobs: NewJob[]): Promise<(pb.Job | BoarddError)[]> {
    const postings = jobs.map((job) => {
      job.uuid ??= randomUUID();
      return posting(job);
    });
    const { message, unsure } = await this.client.call(pb.BoardService.method.postJobs, { board: this.name, jobs: postings });
    return jobResults("PostJobs", message.results, jobs.map((job) => job.uuid ?? ""), unsure);
  }

  /** Returns a job. */
  async get(uuid: string): Promise<pb.Job> {
    return only(await this.getAll([uuid]));
  }

  /** Returns jobs. */
  async getAll(uuids: string[], fields: string[] = []): Promise<(pb.Job | BoarddError)[]> {
    const { message } = await this.client.call(pb.BoardService.method.getJobs, { board: this.name, uuids, fields });
    return jobResults("GetJobs", message.results, uuids, false);
  }

  /** Waits until a job has ended or is in the trash, and returns it. */
  async ended(uuid: string, signal?: AbortSignal): Promise<pb.Job> {
    const waitMs = 30_000;
    for (;;) {
      const request = { board: this.name, uuids: [uuid], wait: durationFromMs(waitMs) };
      const { message } = await this.client.call(pb.BoardService.method.getJobs, request, { waitMs, signal });
      if (message.results.length > 0) return only(jobResults("GetJobs", message.results, [uuid], false));
    }
  }

  /** Goes through the jobs in claim order. */
  async *list(options: ListOptions = {}): AsyncGenerator<pb.Job, void, undefined> {
    const { signal, states = [], filter = "", fields = [], pageSize = 0 } = options;
    let pageToken = "";
    do {
      const request = { states: states.map((state) => enumValue("ListJobs", "states", pb.State_Enum, state)), filter, fields, pageSize, pageToken };
      const page = await this.call(pb.BoardService.method.listJobs, request, { signal });
      yield* page.jobs;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** How many jobs the board has. */
  async count(): Promise<pb.CountJobsResponse> {
    return this.call(pb.BoardService.method.countJobs, {});
  }

  /**
   * Claims jobs. None is no error, but with uuids: then the first one that was not granted is, and those that were are
   * given back. The lease of a claim counts from before the call was sent: keep the time.
   */
  async claim(options: ClaimOptions): Promise<pb.Claim[]> {
    const { owner, uuids = [], max = 0, names = [], filter = "", labels = {}, waitMs = 0, requestId = randomUUID(), signal } = options;
    const request = {
      ...{ board: this.name, owner, uuids, max, names, filter, workerLabels: labels, requestId },
      ...duration("lease", options.leaseMs),
      ...duration("wait", waitMs || undefined),
    };
    const { message } = await this.client.call(pb.BoardService.method.claimJobs, request, { waitMs, signal });
    const failed = message.failures.find((failure) => failure.error !== undefined);
    if (failed?.error === undefined) return message.claims;
    await Promise.all(message.claims.map((claim) => this.abandon(claim, { reason: "another job was not granted", retryAfterMs: 0, refundAttempt: true })));
    throw itemError("ClaimJobs", failed.uuid, failed.error);
  }

  /** Makes the leases of claims begin anew, with the given length or as long as before. */
  async extend(claims: Proof[], leaseMs?: number, signal?: AbortSignal): Promise<(pb.ExtendResult | BoarddError)[]> {
    const request = { board: this.name, claims: claims.map(proof), ...duration("lease", leaseMs) };
    const { message } = await this.client.call(pb.BoardService.method.extendClaims, request, { signal });
    return message.results.map((result, i) => (result.error === undefined ? result : itemError("ExtendClaims", claims[i]?.uuid ?? "", result.error)));
  }

  /** Ends a claimed job as done, or several: then it returns nothing or the BoarddError of each. */
  async consume(claim: Proof): Promise<void>;
  async consume(claims: Proof[]): Promise<Ended[]>;
  async consume(claims: Proof | Proof[]): Promise<Ended[] | void> {
    return this.end(pb.BoardService.method.consumeJobs, claims, {});
  }

  /** Gives a claimed job back to the board, or several, as consume does. */
  async abandon(claim: Proof, options?: AbandonOptions): Promise<void>;
  async abandon(claims: Proof[], options?: AbandonOptions): Promise<Ended[]>;
  async abandon(claims: Proof | Proof[], options: AbandonOptions = {}): Promise<Ended[] | void> {
    const { reason = "", refundAttempt = false, retryAfterMs } = options;
    return this.end(pb.BoardService.method.abandonJobs, claims, { reason, refundAttempt, ...duration("retryAfter", retryAfterMs) });
  }

  /** Sets a claimed job aside for a person to look at, or several, as consume does. */
  async trash(claim: Proof, reason?: string): Promise<void>;
  async trash(claims: Proof[], reason?: string): Promise<Ended[]>;
  async trash(claims: Proof | Proof[], reason = ""): Promise<Ended[] | void> {
    return this.end(pb.BoardService.method.trashJobs, claims, { reason });
  }

  private async end<I extends DescMessage>(method: DescMethodUnary<I, DescMessage>, claims: Proof | Proof[], more: object): Promise<Ended[] | void> {
    const several = Array.isArray(claims) ? claims : [claims];
    const request = { ...more, board: this.name, claims: several.map(proof) } as unknown as MessageInitShape<I>;
    const { message, unsure } = await this.client.call(method, request);
    const { results } = message as unknown as pb.ConsumeJobsResponse;
    const ended = several.map((claim, i) => {
      const error = results[i]?.error;
      return error === undefined ? undefined : refusedLater(itemError(method.name, claim.uuid, error), unsure);
    });
    if (Array.isArray(claims)) return ended;
    if (ended[0] !== undefined) throw ended[0];
  }

  /** Cancels a job; with force one that is being worked on too, whose worker is asked to stop. */
  async cancel(uuid: string, force = false): Promise<void> {
    const { message, unsure } = await this.client.call(pb.BoardService.method.cancelJobs, { board: this.name, uuids: [uuid], force });
    const error = message.results[0]?.error;
    if (error === undefined) return;
    const failed = itemError("CancelJobs", uuid, error);
    throw unsure ? afterLost(failed) : failed; // a uuid does not tell one cancellation from another
  }

  /**
   * Goes through the board's events after a cursor; without one, from now on. It connects again by itself and goes on where
   * it was, so that no event is missed or seen twice; when the board has forgotten that much of its past, a RESYNC event
   * says so: list the board again. It ends when the signal fires, or with an error that connecting again does not mend.
   */
  async *watch(options: { from?: string; signal?: AbortSignal } = {}): AsyncGenerator<pb.Event, void, undefined> {
    let cursor = options.from ?? "";
    for (let failed = 0; !options.signal?.aborted; failed++) {
      const quiet = new AbortController();
      const silence = setTimeout(() => quiet.abort(new Silence()), silenceMs);
      const request = { board: this.name, from: cursor };
      const way = wayOf(pb.BoardService.method.watchBoard, request);
      let seen = false;
      const signal = options.signal === undefined ? quiet.signal : AbortSignal.any([options.signal, quiet.signal]);
      try {
        for await (const event of this.client.stream(pb.BoardService.method.watchBoard, request, signal, way)) {
          silence.refresh();
          seen = true;
          if (event.cursor !== "") cursor = event.cursor;
          if (event.type !== pb.EventType_Enum.HEARTBEAT) yield event;
        }
      } catch (error) {
        if (options.signal?.aborted) return;
        if (!isKind(error, "UNAVAILABLE", "INTERRUPTED", "ABORTED", "INTERNAL", "QUOTA_EXCEEDED", "OUTCOME_UNKNOWN")) throw error;
      } finally {
        clearTimeout(silence);
        quiet.abort();
      }
      if (seen) failed = 0;
      if (seen && way.moved) continue; // it goes on at the board's new server, at once
      await sleep(backoff(failed, 50, 5000), options.signal);
    }
  }
}

function only<T>(results: (T | BoarddError)[]): T {
  const result = results[0];
  if (result === undefined) throw new BoarddError("INTERNAL", "call", "the server did not answer every item");
  if (result instanceof BoarddError) throw result;
  return result;
}

function jobResults(op: string, results: pb.JobResult[], uuids: string[], unsure: boolean): (pb.Job | BoarddError)[] {
  return uuids.map((uuid, i) => {
    const { job, error } = results[i] ?? {};
    if (error !== undefined) return refusedLater(itemError(op, uuid, error), unsure);
    return job ?? new BoarddError("INTERNAL", op, "the server did not answer every item", { job: uuid });
  });
}

/**
 * The error of a change that the request names, where unsure says that the answer to an earlier try was lost: that a later
 * one could not be served does not say what became of that one.
 */
export function refusedLater(error: BoarddError, unsure: boolean): BoarddError {
  return unsure && isKind(error, "UNAVAILABLE", "QUOTA_EXCEEDED") ? afterLost(error) : error;
}

/** Strips a claim to what a request needs. */
export function proof({ uuid, owner, token }: Proof): MessageInitShape<typeof pb.ClaimSchema> {
  return { uuid, owner, token };
}

/** The member of a request for a duration that may be absent. */
export function duration<K extends string>(name: K, ms: number | undefined): { [k in K]?: ReturnType<typeof durationFromMs> } {
  if (ms !== undefined && !Number.isFinite(ms)) throw new BoarddError("INVALID", "duration", `${name}: want a number of milliseconds, got ${JSON.stringify(ms)}`, { field: name });
  return (ms === undefined ? {} : { [name]: durationFromMs(Math.round(ms)) }) as { [k in K]?: ReturnType<typeof durationFromMs> };
}

function posting(job: NewJob): MessageInitShape<typeof pb.NewJobSchema> {
  const { uuid = "", name, details, priority = "UNSPECIFIED", labels = {}, notBefore, maxAttempts = 0, timeoutMs, more, ...unknown } = job;
  for (const field of Object.keys(unknown)) {
    throw new BoarddError("INVALID", "PostJobs", `${field}: there is no such field; what else the API's NewJob has stands in more`, { field });
  }
  if (notBefore !== undefined && !(notBefore instanceof Date && Number.isFinite(notBefore.getTime()))) {
    throw new BoarddError("INVALID", "PostJobs", `notBefore: want a Date, got ${JSON.stringify(notBefore)}`, { field: "notBefore" });
  }
  return {
    ...more,
    ...{ uuid, name, labels, maxAttempts, priority: enumValue("PostJobs", "priority", pb.Priority_Enum, priority) },
    ...(details === undefined ? {} : { details: json(details) }),
    ...(notBefore === undefined ? {} : { notBefore: timestampFromDate(notBefore) }),
    ...duration("timeout", timeoutMs),
  };
}

/** The text of a JSON object. */
export function json(value: Json): Uint8Array<ArrayBuffer> {
  return value instanceof Uint8Array ? new Uint8Array(value) : new TextEncoder().encode(JSON.stringify(value));
}
