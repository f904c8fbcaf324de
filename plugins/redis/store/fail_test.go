package store

import (
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

// An answer is an error that Redis sends.
type answer string

func (a answer) Error() string { return string(a) }

// RedisError makes it an error of Redis to go-redis.
func (answer) RedisError() {}

// TestChangeFailed: what Redis refuses has changed nothing, also in the words of versions
// before 7, which name the script first.
func TestChangeFailed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]job.Kind{
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":                                                 job.Unavailable,
		"READONLY You can't write against a read only replica. script: 04f8, on @user_script:12.":                                                          job.Unavailable,
		"@user_script: 12: -MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":                              job.Unavailable,
		"@user_script: 12: -READONLY You can't write against a read only replica.":                                                                         job.Unavailable,
		"ERR Error running script (call to f_04f8): @user_script:12: @user_script: 12: -READONLY You can't write against a read only replica.":             job.Unavailable,
		"ERR Error running script (call to f_04f8): @user_script:12: @user_script: 12: Unknown Redis command called from Lua script":                       job.OutcomeUnknown,
		"ERR Error running script (call to f_04f8): @user_script:12: user_script:12: attempt to index a nil value":                                         job.OutcomeUnknown,
		"ERR Error running script (call to f_04f8): @user_script:12: @user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.":           job.QuotaExceeded,
		"ERR Error running script (call to f_04f8): @user_script:12: @user_script: 12: -WRONGTYPE Operation against a key holding the wrong kind of value": job.Corrupt,
	} {
		if err := changeFailed(answer(text)); job.KindOf(err) != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}
