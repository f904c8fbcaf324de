/* A policy in AssemblyScript: whose job needs a GPU gets a worker with that GPU,
 * and gold comes before silver. The folders beside this one have the same in other
 * languages. */
import { ALLOW, Block, DENY, hash, OK, Text, valueAt, valueSize } from "./boardd_policy";
export { boardd_alloc, boardd_policy_abi_1 } from "./boardd_policy";

const GPU = memory.data<u8>([0x67, 0x70, 0x75]);
const TIER = memory.data<u8>([0x74, 0x69, 0x65, 0x72]);
const GOLD = memory.data<u8>([0x67, 0x6f, 0x6c, 0x64]);
const SILVER = memory.data<u8>([0x73, 0x69, 0x6c, 0x76, 0x65, 0x72]);

let gold: i64 = 0;
let silver: i64 = 0;

export function boardd_configure(b: Block, length: u32): i32 {
  gold = b.parameterInt(0, 0);
  silver = b.parameterInt(1, 0);
  return OK;
}

export function boardd_eligible(b: Block, length: u32): i32 {
  const has = b.find(b.workerAt, b.workerSize, GPU, 3);
  for (let i: u32 = 0; i < b.count; i++) {
    const j = b.job(i);
    const wants = b.find(j.labelsAt, j.labelsSize, GPU, 3);
    const fits = !wants || (has != 0 && Text.same(valueAt(has), valueSize(has), valueAt(wants), valueSize(wants)));
    b.setVerdict(i, fits ? ALLOW : DENY, 0, 0);
  }
  return OK;
}

export function boardd_score(b: Block, length: u32): i32 {
  for (let i: u32 = 0; i < b.count; i++) {
    const j = b.job(i);
    let score = -(<i64>j.priority) * 1000000 - <i64>j.attempt * 1000 - <i64>j.operationPriority;
    const tier = b.find(j.labelsAt, j.labelsSize, TIER, 4);
    if (tier) {
      if (Text.same(valueAt(tier), valueSize(tier), GOLD, 4)) score += gold;
      else if (Text.same(valueAt(tier), valueSize(tier), SILVER, 6)) score += silver;
    }
    b.setScore(i, score + <i64>(hash(b.base + j.nameAt, j.nameSize) & 63)); // spreads what is alike
  }
  return OK;
}
