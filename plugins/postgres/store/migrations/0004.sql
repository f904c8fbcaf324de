-- Each batch takes a row of these away and adds one, so that what is dead is soon more than
-- what lives, and small tables are looked at by what is dead in them, not by their size.
ALTER TABLE {s}.batches SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {s}.limits SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {s}.inbox SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {s}.documents SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- These are as large as the boards, and change all the time.
ALTER TABLE {s}.jobs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE {s}.parts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1,
  toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 1);
ALTER TABLE {s}.stamps SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE {s}.changes SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1,
  toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 1);
ALTER TABLE {s}.keys SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

-- For people and their graphs: a row for each board.
CREATE VIEW {s}.stats AS
  SELECT clock_timestamp() AS time,
    split_part(n.name, '/', 1) AS tenant, substr(n.name, strpos(n.name, '/') + 1) AS board, b.generation,
    coalesce(t.position, 0) AS position, coalesce(t.open - t.claimed, 0) AS unclaimed, coalesce(t.claimed, 0) AS claimed,
    coalesce(t.trashed, 0) AS trashed, coalesce(t.ended, 0) AS ended, coalesce(t.stamps, 0) AS tombstones,
    coalesce(t.finals, 0) AS finals, coalesce(t.final_bytes, 0) AS final_bytes,
    i.waiting AS inbox_waiting, i.oldest AS inbox_oldest, i.refused AS inbox_refused
  FROM {s}.boards b
  CROSS JOIN LATERAL (SELECT convert_from(b.name, 'UTF8') AS name) n
  LEFT JOIN LATERAL (SELECT * FROM {s}.batches WHERE board = b.board ORDER BY position DESC LIMIT 1) t ON true
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE refused IS NULL) AS waiting, min(at) FILTER (WHERE refused IS NULL) AS oldest,
      count(*) FILTER (WHERE refused IS NOT NULL) AS refused
    FROM {s}.inbox WHERE board = b.board
  ) i;
