// The worker that `boardd client check` judges; docs/writing-a-client.md says what it has to do.
import { setTimeout as pause } from "node:timers/promises";
import { CancelRequested, Client, LeaseLost, RetryError, TimedOut, TrashError, Worker, type Claim } from "@boardd/client";

const seen = new Set<string>();

async function handle({ uuid, job }: Claim, signal: AbortSignal): Promise<void> {
  console.log("begin", uuid);
  if (job?.name === "trash") throw new TrashError("no good");
  if (job?.name === "retry") throw new RetryError("not now");
  if (job?.name === "fail") throw new Error("failed");
  if (job?.name === "busy") await pause(4000);
  if (job?.name !== "hold" || seen.has(uuid)) return;
  seen.add(uuid);
  await new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve())));
  console.log("over", uuid, why(signal.reason));
  throw signal.reason;
}

function why(reason: unknown): string {
  return reason instanceof LeaseLost ? "LOST" : reason instanceof CancelRequested ? "CANCEL" : reason instanceof TimedOut ? "TIMEOUT" : "STOP";
}

const worker = new Worker({ board: new Client().board(), handler: handle, concurrency: 3, warn: (message) => console.error(message) });
process.once("SIGTERM", () => worker.stop());
await worker.run();
