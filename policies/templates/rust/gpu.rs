//! A policy in Rust: whose job needs a GPU gets a worker with that GPU, and gold
//! comes before silver. The folders beside this one have the same in other
//! languages.
mod boardd_policy;
use boardd_policy::{Verdict, ALLOW, DENY};

static mut GOLD: i64 = 0;
static mut SILVER: i64 = 0;

#[no_mangle]
pub unsafe extern "C" fn boardd_configure(at: *mut u8, length: u32) -> i32 {
    boardd_policy::configure(at, length, |b| {
        GOLD = b.parameter(0).int().unwrap_or(0);
        SILVER = b.parameter(1).int().unwrap_or(0);
    })
}

#[no_mangle]
pub unsafe extern "C" fn boardd_eligible(at: *mut u8, length: u32) -> i32 {
    boardd_policy::eligible(at, length, |b, j| {
        let wants = j.label("gpu");
        let decision = if wants.is_none() || b.worker("gpu") == wants { ALLOW } else { DENY };
        Verdict { decision, reason: 0, until: 0 }
    })
}

#[no_mangle]
pub unsafe extern "C" fn boardd_score(at: *mut u8, length: u32) -> i32 {
    let (gold, silver) = (GOLD, SILVER);
    boardd_policy::score(at, length, |_, j| {
        let bonus = match j.label("tier") {
            Some(b"gold") => gold,
            Some(b"silver") => silver,
            _ => 0,
        };
        -(j.priority() as i64) * 1_000_000 - j.attempt() as i64 * 1_000 - j.operation_priority() as i64 + bonus
            + (boardd_policy::hash(j.name()) & 63) as i64 // spreads what is alike
    })
}
