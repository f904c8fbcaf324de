/* boardd_policy.h: the binary interface of policies, version 1, for C.
 *
 * abi.md beside this file says what everything means. A policy includes this file
 * in one source, defines the functions that its manifest declares with
 * BOARDD_EXPORT, and is built by
 *
 *   clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o policy.wasm policy.c
 *
 * It needs no C library. Define BOARDD_NO_ALLOC to bring your own boardd_alloc. */
#ifndef BOARDD_POLICY_H
#define BOARDD_POLICY_H

#include <stdint.h>

#define BOARDD_MAGIC 0x31504442u /* "BDP1" */
#define BOARDD_MAX_BLOCK (512 * 1024)
#define BOARDD_OK 0
#define BOARDD_FAILED 1
#define BOARDD_NO_OPINION INT64_MIN

enum boardd_decision { BOARDD_DENY = 0, BOARDD_ALLOW = 1, BOARDD_DEFER = 2 };

enum boardd_tag {
  BOARDD_ABSENT, BOARDD_INT, BOARDD_FLOAT, BOARDD_BOOL, BOARDD_STRING,
  BOARDD_LIST, BOARDD_MAP, BOARDD_TIME, BOARDD_DURATION, BOARDD_ZONE
};

typedef struct { uint32_t at, n; } boardd_pair; /* offset from the block's start; length or count */

typedef struct {
  uint32_t magic;
  uint16_t major, minor;
  uint32_t header_size;
  uint32_t total;
  uint32_t call;
  uint32_t count;
  uint32_t records, record_size;
  uint32_t out, out_size;
  int64_t now; /* ns since 1970; 0: withheld */
  boardd_pair worker;     /* table of labels */
  boardd_pair parameters; /* cells */
  boardd_pair text;       /* room for an error or an explanation */
  uint32_t text_length;   /* the guest writes it */
  uint32_t index;         /* the record that boardd_explain is about */
  uint8_t reserved[16];
} boardd_block;

typedef struct {
  uint8_t id[16];
  uint64_t sequence;
  int64_t created;
  int64_t not_before;
  int32_t priority; /* -2 very high to 2 very low */
  int32_t attempt;
  int32_t max_attempts;
  int32_t operation_priority;
  boardd_pair name;
  boardd_pair labels;
  boardd_pair facts; /* cells */
  uint8_t reserved[16];
} boardd_job;

typedef struct {
  boardd_pair key;
  int64_t running, waiting, served;
  int64_t oldest; /* ns since 1970; 0: none waits */
  uint8_t reserved[8];
} boardd_key;

typedef struct { uint8_t tag, reserved[3]; uint32_t length; union { int64_t i; double f; uint64_t at; } value; } boardd_cell;
typedef struct { uint8_t decision, reserved[3]; uint32_t reason; int64_t until; } boardd_verdict;
typedef struct { int64_t score; uint32_t full; uint32_t most; } boardd_rank; /* most may run at the same time; 0: not said */
typedef struct { const char *data; uint32_t n; } boardd_text; /* data is 0 if there is none */

_Static_assert(sizeof(boardd_block) == 96, "header");
_Static_assert(sizeof(boardd_job) == 96, "job");
_Static_assert(sizeof(boardd_key) == 48, "key");
_Static_assert(sizeof(boardd_cell) == 16, "cell");
_Static_assert(sizeof(boardd_verdict) == 16, "verdict");
_Static_assert(sizeof(boardd_rank) == 16, "rank");

#define BOARDD_EXPORT(name) __attribute__((export_name(#name))) extern

static inline const boardd_job *boardd_job_at(const boardd_block *b, uint32_t i) {
  return (const boardd_job *)((const char *)b + b->records + i * b->record_size);
}

static inline const boardd_key *boardd_key_at(const boardd_block *b, uint32_t i) {
  return (const boardd_key *)((const char *)b + b->records + i * b->record_size);
}

static inline void *boardd_out_at(boardd_block *b, uint32_t i) { return (char *)b + b->out + i * b->out_size; }

static inline boardd_text boardd_text_of(const boardd_block *b, boardd_pair p) {
  boardd_text t = {(const char *)b + p.at, p.n};
  return t;
}

/* boardd_cell_at returns a fact or a parameter, or 0 if there are fewer. */
static inline const boardd_cell *boardd_cell_at(const boardd_block *b, boardd_pair cells, uint32_t i) {
  return i < cells.n ? (const boardd_cell *)((const char *)b + cells.at) + i : 0;
}

/* boardd_same compares a text with a C string of known length. */
static inline int boardd_same(boardd_text t, const char *s, uint32_t n) {
  if (t.n != n) return 0;
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    uint32_t a, b;
    __builtin_memcpy(&a, t.data + i, 4);
    __builtin_memcpy(&b, s + i, 4);
    if (a != b) return 0;
  }
  for (; i < n; i++)
    if (t.data[i] != s[i]) return 0;
  return 1;
}

/* boardd_find looks up a key in a table of labels. */
static inline boardd_text boardd_find(const boardd_block *b, boardd_pair table, const char *key, uint32_t n) {
  const uint8_t *p = (const uint8_t *)b + table.at, *end = p + table.n;
  while (p + 4 <= end) {
    uint32_t both;
    __builtin_memcpy(&both, p, 4);
    uint32_t k = both & 0xffff, v = both >> 16;
    boardd_text at = {(const char *)p + 4, k};
    p += 4 + k + v;
    if (boardd_same(at, key, n)) {
      boardd_text found = {at.data + k, v};
      return found;
    }
  }
  boardd_text none = {0, 0};
  return none;
}

/* boardd_hash_on takes n more bytes into a hash. The last is read first, by its
 * distance from a place that the compiler knows nothing of: so the end of the
 * memory is looked at once for all of them. One step at a time, they don't take up
 * all registers. */
static inline uint32_t boardd_hash_on(uint32_t h, const char *p, int n) {
  const volatile uint8_t *at = (const volatile uint8_t *)p;
  __asm__("" : "+r"(at));
  uint8_t last = at[n - 1];
  for (int i = 0; i < n - 1; i++) {
    h = (h ^ at[i]) * 16777619u;
    __asm__ volatile("" : "+r"(h));
  }
  return (h ^ last) * 16777619u;
}

/* boardd_hash is FNV-1a of 32 bits, which spreads what is alike. */
static inline uint32_t boardd_hash(boardd_text t) {
  const char *p = t.data;
  uint32_t h = 2166136261u, n = t.n;
  for (; n >= 8; n -= 8, p += 8) h = boardd_hash_on(h, p, 8);
  if (n & 4) h = boardd_hash_on(h, p, 4), p += 4;
  if (n & 2) h = boardd_hash_on(h, p, 2), p += 2;
  if (n & 1) h = boardd_hash_on(h, p, 1);
  return h;
}

/* boardd_say writes the block's text: why a call failed, or an explanation. */
static inline void boardd_say(boardd_block *b, const char *s, uint32_t n) {
  char *to = (char *)b + b->text.at;
  if (n > b->text.n) n = b->text.n;
  for (uint32_t i = 0; i < n; i++) to[i] = s[i];
  b->text_length = n;
}

BOARDD_EXPORT(boardd_policy_abi_1) void boardd_policy_abi_1(void) {}

#ifndef BOARDD_NO_ALLOC
/* The host asks for its one block before anything else; memory that nobody uses
 * costs nothing until it is written. */
static _Alignas(16) uint8_t boardd_room[BOARDD_MAX_BLOCK];
BOARDD_EXPORT(boardd_alloc) void *boardd_alloc(uint32_t size) { return size <= sizeof boardd_room ? boardd_room : 0; }
#endif

#endif
