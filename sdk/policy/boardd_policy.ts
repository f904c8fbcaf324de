/* boardd_policy.ts: the binary interface of policies, version 1, for
 * AssemblyScript.
 *
 * abi.md beside this file says what everything means. Put this file beside the
 * policy's own, and export what is exported here from there:
 *
 *   export { boardd_policy_abi_1, boardd_alloc } from "./boardd_policy";
 *
 * Nothing here allocates: a job is a place in the host's block. */

export const OK: i32 = 0;
export const FAILED: i32 = 1;
export const NO_OPINION: i64 = i64.MIN_VALUE;
export const DENY: u8 = 0;
export const ALLOW: u8 = 1;
export const DEFER: u8 = 2;

const room = memory.data(512 * 1024, 16);

export function boardd_policy_abi_1(): void {}
export function boardd_alloc(size: u32): usize { return size <= 512 * 1024 ? room : 0; }

/** A text in the block; at is 0 if there is none. */
@unmanaged
export class Text {
  @inline static same(at: usize, n: u32, other: usize, m: u32): bool { return n == m && memory.compare(at, other, n) == 0; }
}

/** The block's header. */
@unmanaged
export class Block {
  magic: u32;
  version: u32;
  headerSize: u32;
  total: u32;
  call: u32;
  count: u32;
  records: u32;
  recordSize: u32;
  out: u32;
  outSize: u32;
  now: i64;
  workerAt: u32;
  workerSize: u32;
  parametersAt: u32;
  parametersCount: u32;
  textAt: u32;
  textRoom: u32;
  textLength: u32;
  index: u32;

  @inline get base(): usize { return changetype<usize>(this); }
  @inline job(i: u32): Job { return changetype<Job>(this.base + this.records + i * this.recordSize); }
  @inline key(i: u32): Key { return changetype<Key>(this.base + this.records + i * this.recordSize); }
  @inline outAt(i: u32): usize { return this.base + this.out + i * this.outSize; }
  @inline setScore(i: u32, score: i64): void { store<i64>(this.outAt(i), score); }
  @inline setVerdict(i: u32, decision: u8, reason: u32, until: i64): void {
    store<u8>(this.outAt(i), decision);
    store<u32>(this.outAt(i), reason, 4);
    store<i64>(this.outAt(i), until, 8);
  }
  @inline setRank(i: u32, score: i64, full: bool, most: u32 = 0): void {
    store<i64>(this.outAt(i), score);
    store<u32>(this.outAt(i), full ? 1 : 0, 8);
    store<u32>(this.outAt(i), most, 12);
  }
  /** A whole number, a bool, a time or a duration that was set; or the default. */
  parameterInt(i: u32, otherwise: i64): i64 {
    if (i >= this.parametersCount) return otherwise;
    const cell = this.base + this.parametersAt + i * 16;
    const tag = load<u8>(cell);
    return tag == 1 || tag == 3 || tag == 7 || tag == 8 ? load<i64>(cell, 8) : otherwise;
  }
  /** The entry of a table of labels, 0 if there is none: see valueAt, valueSize. */
  find(at: u32, size: u32, key: usize, n: u32): usize {
    let p = this.base + at;
    const end = p + size;
    while (p + 4 <= end) {
      const k = <u32>load<u16>(p), v = <u32>load<u16>(p, 2);
      if (Text.same(p + 4, k, key, n)) return p;
      p += 4 + k + v;
    }
    return 0;
  }
}

/** The value of an entry that find returned. */
@inline export function valueAt(entry: usize): usize { return entry + 4 + load<u16>(entry); }
@inline export function valueSize(entry: usize): u32 { return load<u16>(entry, 2); }

/** FNV-1a of 32 bits, which spreads what is alike. Eight bytes are read at once
 * first: so the end of the memory is looked at once for all of them. */
export function hash(at: usize, n: u32): u32 {
  let h: u32 = 2166136261, p = at;
  for (; n >= 8; n -= 8, p += 8) {
    const eight = load<u64>(p);
    h = (h ^ <u32>(eight & 0xff)) * 16777619;
    h = (h ^ load<u8>(p, 1)) * 16777619;
    h = (h ^ load<u8>(p, 2)) * 16777619;
    h = (h ^ load<u8>(p, 3)) * 16777619;
    h = (h ^ load<u8>(p, 4)) * 16777619;
    h = (h ^ load<u8>(p, 5)) * 16777619;
    h = (h ^ load<u8>(p, 6)) * 16777619;
    h = (h ^ <u32>(eight >> 56)) * 16777619;
  }
  for (; n; n--, p++) h = (h ^ load<u8>(p)) * 16777619;
  return h;
}

/** A job of the block. Times are in ns since 1970. */
@unmanaged
export class Job {
  id0: u64;
  id1: u64;
  sequence: u64;
  created: i64;
  notBefore: i64;
  priority: i32;
  attempt: i32;
  maxAttempts: i32;
  operationPriority: i32;
  nameAt: u32;
  nameSize: u32;
  labelsAt: u32;
  labelsSize: u32;
  factsAt: u32;
  factsCount: u32;
}

/** A group of jobs, with its counts. */
@unmanaged
export class Key {
  keyAt: u32;
  keySize: u32;
  running: i64;
  waiting: i64;
  served: i64;
  oldest: i64;
}
