// Times here are of this machine's monotonic clock, in milliseconds: leases are counted on it.

/** The present time. */
export function now(): number {
  return performance.now();
}

// What setTimeout takes at most; more than that and it fires at once.
const longest = 2 ** 31 - 1;

/** Calls a function once, at or after a time that may be moved. */
export class Alarm {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly ring: () => void) {}

  /** Sets the time; an earlier setting is forgotten. */
  set(at: number): void {
    this.clear();
    this.timer = setTimeout(() => (now() < at ? this.set(at) : this.ring()), Math.min(Math.max(0, Math.ceil(at - now())), longest));
  }

  clear(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}

/** Waits, and returns early when the signal fires. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(Math.max(0, ms), longest));
    signal?.addEventListener("abort", done);
  });
}

/** A pause that doubles with each attempt from 0 on, up to the most. */
export function doubled(attempt: number, first: number, most: number): number {
  return Math.min(most, first * 2 ** Math.min(attempt, 40));
}

/** The same, with up to a half taken off by chance, so that many clients don't come back at the same moment. */
export function backoff(attempt: number, first: number, most: number): number {
  return doubled(attempt, first, most) * (1 - Math.random() / 2);
}
