import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually, Server } from "./server.js";

// The example in examples/web-typescript, as a process of its own.
test("a web program posts, and its worker works", async (t) => {
  const server = await Server.start();
  const main = join(dirname(fileURLToPath(import.meta.url)), "web", "main.js");
  const program = spawn(process.execPath, [main], { env: { ...process.env, BOARDD_ADDR: server.addr, BOARDD_TOKEN: "dev", PORT: "0" }, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => program.kill("SIGKILL"));
  const [said] = (await once(program.stdout, "data")) as [Buffer];
  const port = /port: (\d+)/.exec(said.toString())?.[1];
  const ask = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };

  const key = "6f2c1a52-6d4a-4d5e-9d2b-0123456789ab";
  const post = (text: string) => ask("/texts", { method: "POST", body: text, headers: { "Idempotency-Key": key } });
  assert.deepEqual(await post("four words, no more"), { status: 202, body: { job: key } });
  assert.deepEqual(await post("four words, no more"), { status: 202, body: { job: key } });
  assert.equal((await post("another text")).status, 409);
  await eventually("the words are counted", async () => (await ask(`/texts/${key}`)).body["words"] === 4);
  await eventually("the job is done", async () => (await ask(`/texts/${key}`)).body["state"] === "COMPLETE");

  const empty = await ask("/texts", { method: "POST", body: "" });
  await eventually("the empty one is set aside", async () => {
    const { body } = await ask(`/texts/${String(empty.body["job"])}`);
    return body["state"] === "TRASHED" && body["reason"] === "there is no text";
  });
  assert.equal((await ask("/texts/00000000-0000-4000-8000-000000000000")).status, 404);

  const ended = once(program, "exit");
  program.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
});
