// A server whose process is stopped keeps its connections, so that a call to it would be waited for as long as any. Among
// several servers it is therefore asked whether it is alive: after 2 s of a call that asks for no wait, and every 10 s while
// calls are under way. With no answer within 3 s all calls to it fail at once, and are made at the next server.
import { now } from "./clock.js";

const afterMs = 2000;
const againMs = 10_000;
const forMs = 3000;

/** Why a call was given up: its server gave no sign of life. Nobody knows what came of the call. */
export class Silence extends Error {
  override readonly name = "Silence";

  constructor() {
    super("the server has stopped answering");
  }
}

/** A call that was not answered yet. */
interface Attended {
  /** When the server is asked because of it. */
  due: number;
  controller: AbortController;
}

/** Listens to one server while calls to it are under way. */
export class Ear {
  private readonly calls = new Set<Attended>();
  private listening = false;

  constructor(
    /** Asks for a sign of life; without one it rejects. */
    private readonly probe: (signal: AbortSignal) => Promise<void>,
    /** Is called when there was none. */
    private readonly leave: () => void,
  ) {}

  /** Makes a call, whose signal fires with a Silence when its server turns out to be silent. */
  async listen<T>(waits: boolean, signal: AbortSignal | undefined, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const attended = { due: now() + (waits ? againMs : afterMs), controller: new AbortController() };
    const silence = attended.controller.signal;
    this.calls.add(attended);
    this.next();
    try {
      return await call(signal === undefined ? silence : AbortSignal.any([signal, silence]));
    } catch (reason) {
      throw silence.aborted && !signal?.aborted ? silence.reason : reason;
    } finally {
      this.calls.delete(attended);
    }
  }

  /** Asks for a sign of life now. */
  alive(): Promise<boolean> {
    return this.probe(AbortSignal.timeout(forMs)).then(() => true, () => false);
  }

  private next(): void {
    if (this.listening || this.calls.size === 0) return;
    this.listening = true;
    setTimeout(() => void this.look(), afterMs).unref(); // the calls keep the program alive
  }

  private async look(): Promise<void> {
    if ([...this.calls].some(({ due }) => now() >= due)) {
      const alive = await this.alive();
      if (!alive) this.leave(); // first: what fails is made again at once
      for (const call of this.calls) {
        call.due = now() + againMs;
        if (!alive) call.controller.abort(new Silence());
      }
    }
    this.listening = false;
    this.next();
  }
}
