-- All times are nanoseconds since 1970 on the server's clock, and 0 is none. Texts
-- that the server of boardd chooses are bytes, since they may hold what text cannot.
-- What SQL never looks into is bytea, as the driver's program encodes it.

CREATE TABLE {s}.store (id bytea NOT NULL); -- one row: tells this store from every other

-- One change, one number, whichever board it is on. A batch takes its numbers while it
-- has its board's row locked, so that on one board they follow the order of commits.
CREATE SEQUENCE {s}.positions AS bigint CACHE 1;
CREATE SEQUENCE {s}.document_versions AS bigint CACHE 1;

-- Whoever changes a board locks its row, and does not update it.
CREATE TABLE {s}.boards (
  board      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name       bytea NOT NULL UNIQUE,
  generation bigint NOT NULL DEFAULT 1,
  term       bigint NOT NULL DEFAULT 0 -- when the server was started under which leases count
);

-- How a board stands after its last batch. Each batch adds a row and takes away the one
-- before: the newest is at the end of the index, whatever dead rows are before it.
CREATE TABLE {s}.batches (
  board        bigint NOT NULL,
  position     bigint NOT NULL, -- of the last change
  told         bigint NOT NULL, -- how many changes there ever were
  forgotten    bigint NOT NULL, -- changes up to this position are no longer known
  stamps_after bigint NOT NULL, -- there are no stamps up to here
  open         bigint NOT NULL,
  claimed      bigint NOT NULL,
  trashed      bigint NOT NULL,
  ended        bigint NOT NULL,
  stamps       bigint NOT NULL,
  finals       bigint NOT NULL,
  final_bytes  bigint NOT NULL,
  PRIMARY KEY (board, position)
);

-- A job as it stands. No index has a column that a claim changes.
CREATE TABLE {s}.jobs (
  board      bigint NOT NULL,
  job        uuid NOT NULL,
  shelf      smallint NOT NULL, -- the scan that finds it: 0 open, 1 trashed, 2 ended
  place      bigint NOT NULL,   -- and where: the position of its post, or of its leaving the board
  state      smallint NOT NULL, -- 1 unclaimed, 2 claimed, 3 ended, 4 trashed
  lease      bigint NOT NULL,   -- of the claim, as granted; 0: no expiry
  ends       bigint NOT NULL,
  tombstone  bigint NOT NULL,   -- the stamp of the op that ended it; 0: there is none
  keep_until bigint NOT NULL,   -- there is a final record until then
  size       bigint NOT NULL,   -- of everything kept with the final record
  posting    bytea NOT NULL,
  record     bytea NOT NULL,
  PRIMARY KEY (board, job)
) WITH (fillfactor = 70);
CREATE INDEX jobs_by_place ON {s}.jobs (board, shelf, place);
CREATE INDEX finals_by_time ON {s}.jobs (board, keep_until) WHERE keep_until > 0;
CREATE INDEX finals_by_place ON {s}.jobs (board, place) WHERE keep_until > 0;

-- The larger parts: DETAILS, FINAL, and attached records by their names, which have no
-- capital letters.
CREATE TABLE {s}.parts (
  board bigint NOT NULL,
  job   uuid NOT NULL,
  name  bytea NOT NULL,
  data  bytea NOT NULL,
  PRIMARY KEY (board, job, name)
);

-- What an op is recognised by when it comes again. That of the op which ended a job is
-- the job's tombstone, too.
CREATE TABLE {s}.stamps (
  board  bigint NOT NULL,
  stamp  bigint NOT NULL, -- the position of the change
  job    uuid NOT NULL,
  random uuid NOT NULL,
  at     bigint NOT NULL,
  answer bytea NOT NULL,
  PRIMARY KEY (board, stamp)
);
CREATE INDEX stamps_by_op ON {s}.stamps (board, job, random);

-- The last changes of each board for its watchers, those of a batch in one row.
CREATE TABLE {s}.changes (
  board    bigint NOT NULL,
  position bigint NOT NULL, -- of the last one
  first    bigint NOT NULL, -- the number of the first one among all that the board ever had
  changes  bytea NOT NULL,
  PRIMARY KEY (board, position)
);

-- What the limits count, as batches does: the newest row of a key counts.
CREATE TABLE {s}.limits (
  board    bigint NOT NULL,
  key      bytea NOT NULL,
  position bigint NOT NULL,
  n        bigint NOT NULL,
  PRIMARY KEY (board, key, position)
);

CREATE TABLE {s}.documents (
  board   bytea NOT NULL, -- its name, since documents need no open board
  space   bytea NOT NULL,
  name    bytea NOT NULL,
  version bigint NOT NULL,
  expires bigint NOT NULL,
  data    bytea NOT NULL,
  PRIMARY KEY (board, space, name)
);
