//! boardd_policy.rs: the binary interface of policies, version 1, for Rust.
//!
//! abi.md beside this file says what everything means. Put this file beside the
//! policy's own and begin that with `mod boardd_policy;`. It needs no crate, and
//! no allocator: everything is read from the host's block.
#![allow(dead_code)]

pub const OK: i32 = 0;
pub const FAILED: i32 = 1;
pub const NO_OPINION: i64 = i64::MIN;
pub const DENY: u8 = 0;
pub const ALLOW: u8 = 1;
pub const DEFER: u8 = 2;
const MAX_BLOCK: usize = 512 * 1024;

#[repr(C, align(16))]
struct Room([u8; MAX_BLOCK]);
static mut ROOM: Room = Room([0; MAX_BLOCK]);

#[no_mangle]
pub extern "C" fn boardd_policy_abi_1() {}

#[no_mangle]
pub unsafe extern "C" fn boardd_alloc(size: u32) -> *mut u8 {
    if size as usize <= MAX_BLOCK { core::ptr::addr_of_mut!(ROOM) as *mut u8 } else { core::ptr::null_mut() }
}

fn u16_at(b: &[u8], at: usize) -> usize { u16::from_le_bytes([b[at], b[at + 1]]) as usize }
fn u32_at(b: &[u8], at: usize) -> usize { u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize }
fn i32_at(b: &[u8], at: usize) -> i32 { i32::from_le_bytes(b[at..at + 4].try_into().unwrap()) }
fn i64_at(b: &[u8], at: usize) -> i64 { i64::from_le_bytes(b[at..at + 8].try_into().unwrap()) }

/// A batch: what the policy is shown at once.
pub struct Batch<'a> { mem: &'a [u8], records: usize, stride: usize, count: usize }

impl<'a> Batch<'a> {
    fn new(mem: &'a [u8]) -> Self {
        Batch { mem, records: u32_at(mem, 24), stride: u32_at(mem, 28), count: u32_at(mem, 20) }
    }
    pub fn len(&self) -> usize { self.count }
    pub fn now(&self) -> i64 { i64_at(self.mem, 40) }
    pub fn worker(&self, key: &str) -> Option<&'a [u8]> { find(table(self.mem, self.mem, 48), key) }
    pub fn parameter(&self, i: usize) -> Cell<'a> { cell(self.mem, self.mem, 56, i) }
    pub fn job(&self, i: usize) -> Job<'a> { Job { mem: self.mem, head: &self.mem[self.records + i * self.stride..][..96] } }
    pub fn key(&self, i: usize) -> Key<'a> { Key { mem: self.mem, head: &self.mem[self.records + i * self.stride..][..48] } }
}

/// A job of a batch. Times are in ns since 1970.
pub struct Job<'a> { mem: &'a [u8], head: &'a [u8] }

impl<'a> Job<'a> {
    pub fn id(&self) -> &'a [u8] { &self.head[..16] }
    pub fn sequence(&self) -> u64 { i64_at(self.head, 16) as u64 }
    pub fn created(&self) -> i64 { i64_at(self.head, 24) }
    pub fn not_before(&self) -> i64 { i64_at(self.head, 32) }
    pub fn priority(&self) -> i32 { i32_at(self.head, 40) }
    pub fn attempt(&self) -> i32 { i32_at(self.head, 44) }
    pub fn max_attempts(&self) -> i32 { i32_at(self.head, 48) }
    pub fn operation_priority(&self) -> i32 { i32_at(self.head, 52) }
    pub fn name(&self) -> &'a [u8] { table(self.mem, self.head, 56) }
    pub fn label(&self, key: &str) -> Option<&'a [u8]> { find(table(self.mem, self.head, 64), key) }
    pub fn fact(&self, i: usize) -> Cell<'a> { cell(self.mem, self.head, 72, i) }
}

/// A group of jobs, with its counts.
pub struct Key<'a> { mem: &'a [u8], head: &'a [u8] }

impl<'a> Key<'a> {
    pub fn key(&self) -> &'a [u8] { table(self.mem, self.head, 0) }
    pub fn running(&self) -> i64 { i64_at(self.head, 8) }
    pub fn waiting(&self) -> i64 { i64_at(self.head, 16) }
    pub fn served(&self) -> i64 { i64_at(self.head, 24) }
    pub fn oldest(&self) -> i64 { i64_at(self.head, 32) }
}

/// The value of a fact or a parameter.
pub struct Cell<'a> { mem: &'a [u8], head: &'a [u8] }

impl<'a> Cell<'a> {
    pub fn tag(&self) -> u8 { if self.head.is_empty() { 0 } else { self.head[0] } }
    pub fn int(&self) -> Option<i64> { if matches!(self.tag(), 1 | 3 | 7 | 8) { Some(i64_at(self.head, 8)) } else { None } }
    pub fn float(&self) -> Option<f64> { if self.tag() == 2 { Some(f64::from_bits(i64_at(self.head, 8) as u64)) } else { None } }
    pub fn text(&self) -> Option<&'a [u8]> {
        if self.tag() != 4 { return None }
        Some(&self.mem[u32_at(self.head, 8)..][..u32_at(self.head, 4)])
    }
    pub fn find(&self, key: &str) -> Option<&'a [u8]> {
        if self.tag() != 6 { return None }
        find(&self.mem[u32_at(self.head, 8)..][..u32_at(self.head, 4)], key)
    }
}

fn table<'a>(mem: &'a [u8], head: &[u8], pair: usize) -> &'a [u8] { &mem[u32_at(head, pair)..][..u32_at(head, pair + 4)] }

fn cell<'a>(mem: &'a [u8], head: &[u8], pair: usize, i: usize) -> Cell<'a> {
    if i >= u32_at(head, pair + 4) { return Cell { mem, head: &[] } }
    Cell { mem, head: &mem[u32_at(head, pair) + i * 16..][..16] }
}

fn find<'a>(table: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let mut at = 0;
    while at + 4 <= table.len() {
        let (k, v) = (u16_at(table, at), u16_at(table, at + 2));
        at += 4;
        if &table[at..at + k] == key.as_bytes() { return Some(&table[at + k..at + k + v]) }
        at += k + v;
    }
    None
}

/// FNV-1a of 32 bits, which spreads what is alike.
pub fn hash(s: &[u8]) -> u32 { s.iter().fold(2166136261, |h, c| (h ^ *c as u32).wrapping_mul(16777619)) }

/// The answer on one job.
pub struct Verdict { pub decision: u8, pub reason: u32, pub until: i64 }

/// The place of a key; most of it may run at the same time, 0: not said.
pub struct Rank { pub score: i64, pub full: bool, pub most: u32 }

unsafe fn each(at: *mut u8, length: u32, mut answer: impl FnMut(&Batch, usize, &mut [u8; 16]), size: usize) -> i32 {
    let b = Batch::new(core::slice::from_raw_parts(at, length as usize));
    let (out, stride, n) = (u32_at(b.mem, 32), u32_at(b.mem, 36), b.len());
    for i in 0..n {
        let mut record = [0u8; 16];
        answer(&b, i, &mut record);
        core::ptr::copy_nonoverlapping(record.as_ptr(), at.add(out + i * stride), size);
    }
    OK
}

/// Reads the parameters: the body of boardd_configure.
pub unsafe fn configure(at: *mut u8, length: u32, read: impl FnOnce(&Batch)) -> i32 {
    read(&Batch::new(core::slice::from_raw_parts(at, length as usize)));
    OK
}

/// The body of boardd_eligible.
pub unsafe fn eligible(at: *mut u8, length: u32, f: impl Fn(&Batch, &Job) -> Verdict) -> i32 {
    each(at, length, |b, i, r| {
        let v = f(b, &b.job(i));
        r[0] = v.decision;
        r[4..8].copy_from_slice(&v.reason.to_le_bytes());
        r[8..].copy_from_slice(&v.until.to_le_bytes());
    }, 16)
}

/// The body of boardd_score.
pub unsafe fn score(at: *mut u8, length: u32, f: impl Fn(&Batch, &Job) -> i64) -> i32 {
    each(at, length, |b, i, r| r[..8].copy_from_slice(&f(b, &b.job(i)).to_le_bytes()), 8)
}

/// The body of boardd_rank_keys.
pub unsafe fn rank_keys(at: *mut u8, length: u32, f: impl Fn(&Batch, &Key) -> Rank) -> i32 {
    each(at, length, |b, i, r| {
        let v = f(b, &b.key(i));
        r[..8].copy_from_slice(&v.score.to_le_bytes());
        r[8] = v.full as u8;
        r[12..].copy_from_slice(&v.most.to_le_bytes());
    }, 16)
}
