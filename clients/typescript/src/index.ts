export { Board, parsed, type AbandonOptions, type ClaimOptions, type Ended, type Json, type ListOptions, type NewJob, type Proof } from "./board.js";
export { Client, defaultAddr, type Answer, type CallOptions, type ClientOptions } from "./client.js";
export { CancelRequested, LeaseLost, newOwner, RetryError, Stopping, TimedOut, TrashError, type Ending } from "./ending.js";
export { BoarddError, isKind, type Kind } from "./error.js";
export { BoardService, type Claim, type Event, type ExtendResult, type Job } from "./gen/boardd/v1/boardd_pb.js";
export * as pb from "./gen/boardd/v1/boardd_pb.js";
export { Worker, type Report, type WorkerOptions } from "./worker.js";
