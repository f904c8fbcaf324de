import { Code, ConnectError } from "@connectrpc/connect";
import { Code_Enum, ErrorSchema, type Error as ItemError } from "./gen/boardd/v1/boardd_pb.js";
import { Silence } from "./silent.js";

/** What sort of thing went wrong, in the words of docs/api.md. Programs look at this and at nothing else. */
export type Kind = Exclude<keyof typeof Code_Enum, "OK">;

const retryable: ReadonlySet<Kind> = new Set<Kind>(["UNAVAILABLE", "OUTCOME_UNKNOWN", "INTERRUPTED", "QUOTA_EXCEEDED", "INTERNAL"]);

/** What more there is to say of an error. */
export interface ErrorParts {
  job?: string | undefined;
  owner?: string | undefined;
  field?: string | undefined;
  changed?: "no" | "unknown" | undefined;
  cause?: unknown;
}

/** The one error of this package: what was being done, to which job, and what sort of thing went wrong. */
export class BoarddError extends Error {
  override readonly name = "BoarddError";
  /** The job concerned, where it was one. */
  readonly job: string | undefined;
  /** Who holds the job, where that is the reason. */
  readonly owner: string | undefined;
  /** The path of a wrong field. */
  readonly field: string | undefined;
  /** Whether anything was changed: "no", or "unknown". Never "probably not". */
  readonly changed: "no" | "unknown";

  constructor(
    readonly kind: Kind,
    /** The call, such as "PostJobs". */
    readonly op: string,
    message: string,
    parts: ErrorParts = {},
  ) {
    const about = parts.job === undefined ? op : `${op}: job ${parts.job}`;
    super(`${about}: ${message || kind}`, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.job = parts.job;
    this.owner = parts.owner;
    this.field = parts.field;
    this.changed = parts.changed ?? (kind === "OUTCOME_UNKNOWN" ? "unknown" : "no");
  }

  /** Whether the same request may succeed later without a change. */
  get retryable(): boolean {
    return retryable.has(this.kind);
  }
}

/** Reports whether an error is one of this package of the given kind. */
export function isKind(error: unknown, ...kinds: Kind[]): error is BoarddError {
  return error instanceof BoarddError && kinds.includes(error.kind);
}

function kindOfCode(code: Code_Enum): Kind {
  const name = Code_Enum[code] as keyof typeof Code_Enum | undefined;
  return name === undefined || name === "OK" ? "INTERNAL" : name;
}

/** Makes the error of one item of a list. */
export function itemError(op: string, job: string, e: ItemError): BoarddError {
  return new BoarddError(kindOfCode(e.code), op, e.message, { job, owner: e.owner || undefined, field: e.field || undefined });
}

/** After a try whose answer was lost, an item's error may come of what that try did. */
export function afterLost(error: BoarddError): BoarddError {
  const message = `the answer to an earlier try was lost, which may have done it; to the next one the server said ${error.kind}: ${error.message}`;
  return new BoarddError("OUTCOME_UNKNOWN", error.op, message, { job: error.job, owner: error.owner, cause: error });
}

/** For answers without a detail of boardd's, such as those of a proxy. */
const kindOfConnect: Record<Code, Kind> = {
  [Code.Canceled]: "INTERRUPTED",
  [Code.Unknown]: "INTERNAL",
  [Code.InvalidArgument]: "INVALID",
  [Code.DeadlineExceeded]: "INTERRUPTED",
  [Code.NotFound]: "NOT_FOUND",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "QUOTA_EXCEEDED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.Aborted]: "ABORTED",
  [Code.OutOfRange]: "INVALID",
  [Code.Unimplemented]: "UNSUPPORTED",
  [Code.Internal]: "INTERNAL",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DataLoss]: "CORRUPT",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
};

/** The number of one of an enum's names, which JavaScript may get wrong. */
export function enumValue(op: string, field: string, names: Record<string, string | number>, name: string): number {
  const value = names[name];
  if (typeof value === "number") return value;
  const want = Object.keys(names).filter((key) => !/^\d+$/.test(key) && key !== "UNSPECIFIED");
  throw new BoarddError("INVALID", op, `${field}: want one of ${want.join(", ")}, got ${JSON.stringify(name)}`, { field });
}

/** A failed attempt of a call. */
export interface Failure {
  error: BoarddError;
  /** The server itself said so: its errors say whether anything was changed. */
  answered: boolean;
  /** The request left this machine, or may have. */
  sent: boolean;
  /** For how long the server wants to be left alone, in milliseconds. */
  pauseMs: number;
}

// What Node says of a connection that was never made.
const neverSent: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

// What to do about a token.
const noToken = "; give Client a token or a tokenFile, or set BOARDD_TOKEN or BOARDD_TOKEN_FILE";
const otherToken = "; is it the right one in what Client was given, BOARDD_TOKEN or BOARDD_TOKEN_FILE?";

/** Says what the error of an attempt means that was made with a token or without one. */
export function failureOf(op: string, reason: unknown, token: boolean): Failure {
  if (reason instanceof Silence) {
    return { error: new BoarddError("UNAVAILABLE", op, reason.message, { cause: reason }), answered: false, sent: true, pauseMs: 0 };
  }
  if (!(reason instanceof ConnectError)) {
    return { error: new BoarddError("INTERNAL", op, String(reason), { changed: "unknown", cause: reason }), answered: false, sent: true, pauseMs: 0 };
  }
  const detail = reason.findDetails(ErrorSchema)[0];
  const seconds = Number(reason.metadata.get("Retry-After") ?? 0);
  const pauseMs = seconds > 0 ? seconds * 1000 : 0;
  if (detail !== undefined) {
    const kind = kindOfCode(detail.code);
    const advice = kind !== "UNAUTHENTICATED" ? "" : token ? otherToken : noToken;
    const error = new BoarddError(kind, op, (detail.message || reason.rawMessage) + advice, {
      owner: detail.owner || undefined,
      field: detail.field || undefined,
      changed: kind === "INTERRUPTED" || kind === "INTERNAL" ? "unknown" : undefined,
    });
    return { error, answered: true, sent: true, pauseMs };
  }
  const cause = reason.cause as { code?: unknown } | undefined;
  const sent = !neverSent.has(String(cause?.code));
  if (/wrong version number/.test(reason.rawMessage)) {
    const text = "the server speaks no TLS: want http:// in place of https://";
    return { error: new BoarddError("UNAVAILABLE", op, text, { cause: reason }), answered: false, sent: false, pauseMs };
  }
  const kind = kindOfConnect[reason.code];
  if (cause === undefined && !["INTERRUPTED", "INTERNAL", "UNAVAILABLE", "ABORTED", "QUOTA_EXCEEDED"].includes(kind)) {
    return { error: new BoarddError(kind, op, reason.rawMessage, { cause: reason }), answered: true, sent, pauseMs };
  }
  const advice = cause?.code === "ECONNREFUSED" ? "; is a boardd running there?" : "";
  return { error: new BoarddError("UNAVAILABLE", op, `no answer from the server: ${reason.rawMessage}${advice}`, { cause: reason }), answered: false, sent, pauseMs };
}
