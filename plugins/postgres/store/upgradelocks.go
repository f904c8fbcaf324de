package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A tableLock is what the statements of a migration lock of the tables that were there before.
type tableLock struct {
	by    int // the version that they lead to
	since int // the version that made the table
	table string
	mode  string
}

// Modes of locks. Behind somebody who waits for the first one nobody waits but VACUUM, behind the
// second one all who write, and behind the third one all who read.
const (
	besideVacuum = "SHARE UPDATE EXCLUSIVE"
	besideWrites = "SHARE ROW EXCLUSIVE"
	besideAll    = "ACCESS EXCLUSIVE"
)

// tableLocks has the locks of all migrations, and the one that most wait behind last.
var tableLocks = []tableLock{
	{4, 1, "batches", besideVacuum},
	{4, 1, "limits", besideVacuum},
	{4, 3, "inbox", besideVacuum},
	{4, 1, "documents", besideVacuum},
	{4, 1, "jobs", besideVacuum},
	{4, 1, "parts", besideVacuum},
	{4, 1, "stamps", besideVacuum},
	{4, 1, "changes", besideVacuum},
	{4, 2, "keys", besideVacuum},
	{6, 1, "documents", besideWrites},
	{5, 3, "inbox", besideWrites},
	{5, 1, "boards", besideAll},
}

// How long an upgrade waits for its locks. While it waits others wait behind it, and so it asks
// for a moment only, and then once more.
const (
	lockMoment = 200 * time.Millisecond
	lockPause  = 50 * time.Millisecond
	lockTries  = int(10 * time.Second / (lockMoment + lockPause))
)

// lockTables takes all locks of an upgrade from a version at once, before anything is changed: a
// statement that waits later would have others wait for the locks that are held by then. What
// blocks VACUUM alone is waited for as long as PostgreSQL needs to break off an autovacuum, which
// it does for nobody who waits a moment only.
func (s *store) lockTables(at int) string {
	var gentle, hard []string
	for _, l := range tableLocks {
		if at < l.since || at >= l.by || l.by > s.version {
			continue
		}
		if name := s.sql("{s}.") + l.table; !slices.Contains(gentle, name) {
			gentle = append(gentle, name)
		}
		if l.mode != besideVacuum {
			hard = append(hard, s.sql("      LOCK TABLE {s}.")+l.table+" IN "+l.mode+" MODE;\n")
		}
	}
	if len(gentle) == 0 {
		return ""
	}
	text := fmt.Sprintf("LOCK TABLE %s IN %s MODE;\n", strings.Join(gentle, ", "), besideVacuum)
	if len(hard) == 0 {
		return text
	}
	return text + fmt.Sprintf(`DO $$
BEGIN
  PERFORM set_config('lock_timeout', '%dms', true);
  FOR try IN 1..%d LOOP
    BEGIN
%s      EXIT;
    EXCEPTION WHEN lock_not_available THEN -- what was locked is free again
      IF try = %[2]d THEN RAISE; END IF;
      PERFORM pg_sleep(%[4]g);
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', '10s', true);
END $$;
`, lockMoment.Milliseconds(), s.lockTries, strings.Join(hard, ""), lockPause.Seconds())
}
