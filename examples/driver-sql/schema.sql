-- All times are nanoseconds since 1970, but for jobs.ends; 0 is none. What SQL never
-- looks into is JSON.

CREATE TABLE IF NOT EXISTS store (id BLOB NOT NULL);  -- one row: tells this file from every other

-- Whoever changes a board changes its row. Under SQLite's one lock for writing, as
-- under FOR UPDATE elsewhere, positions are so given out in the order of commits.
CREATE TABLE IF NOT EXISTS boards (
  board      INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT NOT NULL UNIQUE,
  generation INTEGER NOT NULL DEFAULT 1,
  position   INTEGER NOT NULL DEFAULT 0,  -- of the last change
  sequence   INTEGER NOT NULL DEFAULT 0,  -- of the last post
  epoch      INTEGER NOT NULL DEFAULT 0   -- of the last claim
);

-- A job as it stands: on the board, in the trash, or ended.
CREATE TABLE IF NOT EXISTS jobs (
  board      INTEGER NOT NULL REFERENCES boards ON DELETE CASCADE,
  job        BLOB NOT NULL,
  state      INTEGER NOT NULL,  -- job.State
  shelf      INTEGER NOT NULL,  -- driver.Set: the scan that finds it
  place      INTEGER NOT NULL,  -- and where: its sequence, or when it left the board
  lease      INTEGER NOT NULL,  -- of the claim, as granted; 0: no expiry
  ends       INTEGER NOT NULL,  -- on the boot clock
  boot       TEXT NOT NULL,     -- names the boot that the clock counts from
  tombstone  INTEGER NOT NULL,  -- the stamp of the op that ended it; 0: it has not ended
  keep_until INTEGER NOT NULL,  -- there is a final record until then; 0: there is none
  size       INTEGER NOT NULL,  -- of everything kept with the final record
  record     TEXT NOT NULL,     -- JSON: everything else but the larger parts
  PRIMARY KEY (board, job)
);
CREATE INDEX IF NOT EXISTS jobs_by_place ON jobs (board, shelf, place);
CREATE INDEX IF NOT EXISTS finals_by_time ON jobs (board, keep_until) WHERE keep_until > 0;
CREATE INDEX IF NOT EXISTS finals_by_place ON jobs (board, place) WHERE keep_until > 0;

-- The larger parts, which most transitions leave alone: DETAILS, FINAL, and attached
-- records by their names, which have no capital letters.
CREATE TABLE IF NOT EXISTS parts (
  board INTEGER NOT NULL,
  job   BLOB NOT NULL,
  name  TEXT NOT NULL,
  data  BLOB NOT NULL,
  PRIMARY KEY (board, job, name),
  FOREIGN KEY (board, job) REFERENCES jobs ON DELETE CASCADE
);

-- What an op is recognised by when it comes again. That of the op which ended a job
-- is the job's tombstone, too.
CREATE TABLE IF NOT EXISTS stamps (
  stamp  INTEGER PRIMARY KEY AUTOINCREMENT,  -- the oldest has the lowest
  board  INTEGER NOT NULL REFERENCES boards ON DELETE CASCADE,
  job    BLOB NOT NULL,
  random BLOB NOT NULL,
  at     INTEGER NOT NULL,
  answer TEXT NOT NULL                       -- JSON: how the op was answered
);
CREATE INDEX IF NOT EXISTS stamps_by_op ON stamps (board, job, random);
CREATE INDEX IF NOT EXISTS stamps_by_time ON stamps (board, at);

-- The last changes of each board, for its watchers. Positions have no holes.
CREATE TABLE IF NOT EXISTS changes (
  board    INTEGER NOT NULL REFERENCES boards ON DELETE CASCADE,
  position INTEGER NOT NULL,
  change   TEXT NOT NULL,                    -- JSON
  PRIMARY KEY (board, position)
) WITHOUT ROWID;

-- How many of what: boardd asks once a second, and nobody wants to count a million
-- rows for it. The triggers below keep all but the limits and the groups.
CREATE TABLE IF NOT EXISTS counts (
  board INTEGER NOT NULL REFERENCES boards ON DELETE CASCADE,
  what  TEXT NOT NULL,                       -- state, stamps, finals, bytes, limit or group
  name  TEXT NOT NULL,                       -- of the state, the limit or the group's counter
  n     INTEGER NOT NULL,
  PRIMARY KEY (board, what, name)
) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS job_in AFTER INSERT ON jobs BEGIN
  INSERT INTO counts VALUES (new.board, 'state', new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER IF NOT EXISTS job_out AFTER DELETE ON jobs BEGIN
  UPDATE counts SET n = n - 1 WHERE board = old.board AND what = 'state' AND name = old.state;
END;
CREATE TRIGGER IF NOT EXISTS job_moved AFTER UPDATE OF state ON jobs WHEN new.state <> old.state BEGIN
  UPDATE counts SET n = n - 1 WHERE board = old.board AND what = 'state' AND name = old.state;
  INSERT INTO counts VALUES (new.board, 'state', new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER IF NOT EXISTS final_in AFTER UPDATE OF keep_until ON jobs WHEN new.keep_until > 0 AND old.keep_until = 0 BEGIN
  INSERT INTO counts VALUES (new.board, 'finals', '', 1) ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO counts VALUES (new.board, 'bytes', '', new.size) ON CONFLICT DO UPDATE SET n = n + new.size;
END;
CREATE TRIGGER IF NOT EXISTS final_out AFTER UPDATE OF keep_until ON jobs WHEN new.keep_until = 0 AND old.keep_until > 0 BEGIN
  UPDATE counts SET n = n - 1 WHERE board = old.board AND what = 'finals';
  UPDATE counts SET n = n - old.size WHERE board = old.board AND what = 'bytes';
END;
CREATE TRIGGER IF NOT EXISTS stamp_in AFTER INSERT ON stamps BEGIN
  INSERT INTO counts VALUES (new.board, 'stamps', '', 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER IF NOT EXISTS stamp_out AFTER DELETE ON stamps BEGIN
  UPDATE counts SET n = n - 1 WHERE board = old.board AND what = 'stamps';
  -- A job that ended goes with its tombstone, unless its final record is still there.
  DELETE FROM jobs WHERE board = old.board AND job = old.job AND tombstone = old.stamp AND keep_until = 0;
END;

-- Names that at most one job has (driver.Key). Nothing is written here when a job ends.
CREATE TABLE IF NOT EXISTS keys (
  key   INTEGER PRIMARY KEY,
  board INTEGER NOT NULL REFERENCES boards ON DELETE CASCADE,
  name  TEXT NOT NULL,
  entry TEXT NOT NULL,                       -- JSON: whose it is, and until when
  UNIQUE (board, name)
);

-- AUTOINCREMENT never gives a number twice: so no version comes back, also not when a
-- document is deleted and made anew.
CREATE TABLE IF NOT EXISTS documents (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  board   TEXT NOT NULL,
  space   TEXT NOT NULL,
  name    TEXT NOT NULL,
  data    BLOB NOT NULL,
  expires INTEGER NOT NULL,
  UNIQUE (board, space, name)
);
