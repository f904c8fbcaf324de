// A web program that leaves its work to a worker: it posts a job for each text that it is sent, and shows what became of
// it. The worker, which is in the same process here and could as well be in another one, counts the words.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { BoarddError, Client, isKind, parsed, pb, TrashError, Worker, type Claim } from "@boardd/client";

const board = new Client().board(); // of BOARDD_ADDR, BOARDD_TOKEN and BOARDD_BOARD
const results = new Map<string, number>(); // a real program has a database here

/** POST /texts: the caller's Idempotency-Key, if it is a uuid, makes sending a text again safe. */
async function post(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const key = request.headers["idempotency-key"];
  const posting = { name: "count-words", details: { text: Buffer.concat(chunks).toString() }, maxAttempts: 5 };
  const job = await board.post(typeof key === "string" ? { ...posting, uuid: key } : posting);
  answer(response, 202, { job: job.uuid }, { Location: `/texts/${job.uuid}` });
}

/** GET /texts/UUID */
async function show(uuid: string, response: ServerResponse): Promise<void> {
  const job = await board.get(uuid);
  answer(response, 200, { state: pb.State_Enum[job.state], reason: job.lastReason, words: results.get(uuid) });
}

/** Counts the words of one text. It may be called again for the same one, so it does what does no harm when it is done twice. */
async function countWords(claim: Claim, signal: AbortSignal): Promise<void> {
  const { text } = parsed(claim.job?.details) as { text?: string };
  if (!text) throw new TrashError("there is no text");
  signal.throwIfAborted(); // as often as there is an occasion: what is done after the signal fired is for nothing
  results.set(claim.uuid, text.trim().split(/\s+/).length);
}

function answer(response: ServerResponse, status: number, body: object, headers = {}): void {
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(`${JSON.stringify(body)}\n`);
}

/** An error of boardd's as one of HTTP's. */
function refuse(error: unknown, response: ServerResponse): void {
  if (!(error instanceof BoarddError)) throw error;
  const status = isKind(error, "NOT_FOUND") ? 404 : isKind(error, "INVALID") ? 400 : isKind(error, "ALREADY_EXISTS") ? 409 : 503;
  answer(response, status, { error: error.message, retry: error.retryable, changed: error.changed });
}

const server = createServer((request, response) => {
  const uuid = /^\/texts\/([0-9a-f-]+)$/.exec(request.url ?? "")?.[1];
  let done: Promise<void> | undefined;
  if (request.method === "POST" && request.url === "/texts") done = post(request, response);
  if (request.method === "GET" && uuid !== undefined) done = show(uuid, response);
  if (done === undefined) return answer(response, 404, { error: "want POST /texts or GET /texts/UUID" });
  done.catch((error: unknown) => refuse(error, response));
});

const worker = new Worker({ board, handler: countWords, names: ["count-words"], concurrency: 4, warn: (message) => console.error(message) });
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    server.close();
    worker.stop(); // what is not done goes back to the board
  });
}
server.listen(Number(process.env["PORT"] ?? 8080), "127.0.0.1", () => console.log("listening on", server.address()));
await worker.run();
