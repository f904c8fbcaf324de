/* A policy for histories: what it decides follows from its parameters and from labels
 * alone, so that a checker can say the same. Jobs of one team are for that team's workers
 * and for those of the team "all"; the label "rank", a digit, orders the board. Its
 * explanation is the number of the promotion that it came by. */
#include "boardd_policy.h"

static int64_t serial;
static uint32_t kept_length;
static char kept[64];
static int reversed;

BOARDD_EXPORT(boardd_configure) int32_t boardd_configure(boardd_block *b, uint32_t length) {
  (void)length;
  const boardd_cell *c = boardd_cell_at(b, b->parameters, 0);
  if (c && c->tag == BOARDD_INT) serial = c->value.i;
  c = boardd_cell_at(b, b->parameters, 1);
  if (c && c->tag == BOARDD_STRING && c->length < sizeof kept) {
    kept_length = c->length;
    for (uint32_t i = 0; i < kept_length; i++) kept[i] = ((const char *)b + c->value.at)[i];
  }
  c = boardd_cell_at(b, b->parameters, 2);
  reversed = c && c->tag == BOARDD_BOOL && c->value.i;
  return BOARDD_OK;
}

BOARDD_EXPORT(boardd_eligible) int32_t boardd_eligible(boardd_block *b, uint32_t length) {
  (void)length;
  boardd_text has = boardd_find(b, b->worker, "team", 4);
  int mine = boardd_same(has, kept, kept_length) || boardd_same(has, "all", 3);
  for (uint32_t i = 0; i < b->count; i++) {
    boardd_text of = boardd_find(b, boardd_job_at(b, i)->labels, "team", 4);
    boardd_verdict *v = boardd_out_at(b, i);
    v->decision = mine || !kept_length || !boardd_same(of, kept, kept_length) ? BOARDD_ALLOW : BOARDD_DENY;
    v->reason = 0;
  }
  return BOARDD_OK;
}

BOARDD_EXPORT(boardd_score) int32_t boardd_score(boardd_block *b, uint32_t length) {
  (void)length;
  for (uint32_t i = 0; i < b->count; i++) {
    boardd_text rank = boardd_find(b, boardd_job_at(b, i)->labels, "rank", 4);
    int64_t score = rank.n == 1 ? rank.data[0] - '0' : 0;
    *(int64_t *)boardd_out_at(b, i) = reversed ? -score : score;
  }
  return BOARDD_OK;
}

BOARDD_EXPORT(boardd_explain) int32_t boardd_explain(boardd_block *b, uint32_t length) {
  (void)length;
  char digits[20];
  uint32_t n = 0;
  int64_t left = serial;
  do digits[n++] = '0' + left % 10;
  while (left /= 10);
  char *text = (char *)b + b->text.at;
  for (uint32_t i = 0; i < n && i < b->text.n; i++) text[i] = digits[n - 1 - i];
  b->text_length = n;
  return BOARDD_OK;
}
