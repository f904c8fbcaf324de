// Real servers for the tests, and a line to them that can be cut. BOARDD_PROGRAM is the server.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Client, type Board } from "@boardd/client";

const started = new Set<Server | Line>();
after(async () => {
  for (const it of started) await it.close();
});

let boards = 0;

/** A boardd in a process of its own, with a folder of its own and the token "dev" for everything. */
export class Server {
  readonly dir = mkdtempSync(join(tmpdir(), "boardd-typescript-"));
  process!: ChildProcess;
  /** The file of the configuration; absent: that of --dev. */
  private config: string | undefined;

  private constructor(public port = 0) {}

  static async start(): Promise<Server> {
    const server = new Server();
    started.add(server);
    await server.start();
    return server;
  }

  /** Starts a server with a configuration, at a port that it may name. */
  static async configured(port: number, config: string): Promise<Server> {
    const server = new Server(port);
    started.add(server);
    server.config = join(server.dir, "boardd.hcl");
    writeFileSync(server.config, config);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const ready = join(this.dir, "ready");
    rmSync(ready, { force: true });
    const program = process.env["BOARDD_PROGRAM"];
    if (program === undefined) throw new Error("BOARDD_PROGRAM names no server");
    const how = this.config === undefined ? ["--dev"] : ["--config", this.config];
    this.process = spawn(program, ["serve", ...how, "--listen", `127.0.0.1:${this.port}`, "--ready-file", ready, "--data", join(this.dir, "data")], { stdio: ["ignore", "pipe", "pipe"] });
    const log = createWriteStream(join(this.dir, "log"), { flags: "a" });
    this.process.stdout?.pipe(log);
    this.process.stderr?.pipe(log);
    while (!existsSync(ready) || readFileSync(ready).length === 0) {
      if (this.process.exitCode !== null) throw new Error(`boardd did not start:\n${readFileSync(join(this.dir, "log"), "utf8")}`);
      await pause(10); // the file is the only word that there is
    }
    this.port = Number(readFileSync(ready, "utf8").trim().split(":").at(-1));
  }

  get addr(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await ended;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** Makes a call of the administrators'. */
  async admin(method: string, request: object): Promise<Record<string, unknown>> {
    const headers = { Authorization: "Bearer dev", "Content-Type": "application/json" };
    const answer = await fetch(`${this.addr}/boardd.v1.AdminService/${method}`, { method: "POST", headers, body: JSON.stringify(request) });
    const body = (await answer.json()) as Record<string, unknown>;
    if (!answer.ok) throw new Error(`${method}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Makes a board that no other test has, and returns it as a client at the given address sees it. */
  async board(lease = "30s", addr = this.addr, token = "dev"): Promise<Board> {
    const name = `board-${process.pid}-${boards++}`;
    await this.admin("CreateBoard", { board: { name, backend: "embedded", lease } });
    return new Client({ addr, token }).board(name);
  }
}

/** A line to a server, which loses what it is told to lose. */
export class Line {
  /** How many answers to a call are thrown away, with the connection, after the server has done what it was asked for. */
  private lose = { call: "", times: 0 };
  lost = 0;
  /** The last parts of the paths of all requests. */
  readonly calls: string[] = [];
  private readonly open = new Set<net.Socket>();
  private readonly listener: net.Server;

  private constructor(private readonly to: number) {
    this.listener = net.createServer((here) => this.pass(here));
  }

  static async to(server: { port: number }): Promise<Line> {
    const line = new Line(server.port);
    started.add(line);
    line.listener.listen(0, "127.0.0.1");
    await once(line.listener, "listening");
    return line;
  }

  get addr(): string {
    return `http://127.0.0.1:${(this.listener.address() as net.AddressInfo).port}`;
  }

  loseAnswers(call: string, times = 1): void {
    this.lose = { call, times };
  }

  /** Cuts every connection that there is. */
  cut(): void {
    for (const socket of this.open) socket.destroy();
  }

  close(): void {
    this.listener.close();
    this.cut();
  }

  private pass(here: net.Socket): void {
    const there = net.connect(this.to, "127.0.0.1");
    let losing = false;
    const end = (): void => [here, there].forEach((socket) => (this.open.delete(socket), socket.destroy()));
    for (const socket of [here, there]) this.open.add(socket.on("error", end).on("close", end));
    here.on("data", (data) => {
      const [, path] = /^(?:GET|POST) (\S+) /.exec(data.toString("latin1")) ?? [];
      if (path !== undefined) this.calls.push(path.split("/").at(-1) ?? "");
      if (this.lose.times > 0 && data.toString("latin1").startsWith(`POST /boardd.v1.BoardService/${this.lose.call} `)) {
        this.lose.times--;
        losing = true;
      }
      there.write(data);
    });
    there.on("data", (data) => {
      if (!losing) return void here.write(data);
      this.lost++;
      end();
    });
  }
}

/** A port that nobody listens at. */
export async function freePort(): Promise<number> {
  const listener = net.createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as net.AddressInfo;
  listener.close();
  await once(listener, "close");
  return port;
}

/** Waits until something is so that nobody announces. */
export async function eventually(what: string, so: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; tries < 3000; tries++) {
    if (await so()) return;
    await pause(10);
  }
  throw new Error(`it never came to be that ${what}`);
}
