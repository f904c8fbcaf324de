/* A policy in C: whose job needs a GPU gets a worker with that GPU, and gold comes
 * before silver. The folders beside this one have the same in other languages. */
#include "boardd_policy.h"

static int64_t gold, silver;

BOARDD_EXPORT(boardd_configure) int32_t boardd_configure(boardd_block *b, uint32_t length) {
  (void)length;
  const boardd_cell *c = boardd_cell_at(b, b->parameters, 0);
  if (c && c->tag == BOARDD_INT) gold = c->value.i;
  c = boardd_cell_at(b, b->parameters, 1);
  if (c && c->tag == BOARDD_INT) silver = c->value.i;
  return BOARDD_OK;
}

BOARDD_EXPORT(boardd_eligible) int32_t boardd_eligible(boardd_block *b, uint32_t length) {
  (void)length;
  boardd_text has = boardd_find(b, b->worker, "gpu", 3);
  for (uint32_t i = 0; i < b->count; i++) {
    boardd_text wants = boardd_find(b, boardd_job_at(b, i)->labels, "gpu", 3);
    boardd_verdict *v = boardd_out_at(b, i);
    v->decision = !wants.data || (has.data && boardd_same(has, wants.data, wants.n)) ? BOARDD_ALLOW : BOARDD_DENY;
    v->reason = 0;
  }
  return BOARDD_OK;
}

BOARDD_EXPORT(boardd_score) int32_t boardd_score(boardd_block *b, uint32_t length) {
  (void)length;
  for (uint32_t i = 0; i < b->count; i++) {
    const boardd_job *j = boardd_job_at(b, i);
    int64_t score = -(int64_t)j->priority * 1000000 - (int64_t)j->attempt * 1000 - j->operation_priority;
    boardd_text tier = boardd_find(b, j->labels, "tier", 4);
    if (boardd_same(tier, "gold", 4)) score += gold;
    else if (boardd_same(tier, "silver", 6)) score += silver;
    *(int64_t *)boardd_out_at(b, i) = score + (boardd_hash(boardd_text_of(b, j->name)) & 63); /* spreads what is alike */
  }
  return BOARDD_OK;
}
