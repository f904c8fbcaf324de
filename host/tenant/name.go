package tenant

import (
	"regexp"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// MaxNameLength is the length of the longest name of a tenant, token, board,
// backend or policy, in bytes.
const MaxNameLength = 63

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// CheckName refuses, as Invalid, what is no name of a tenant, token, board,
// backend or policy. The few characters that are left leave no room for a name
// that only looks like another one, or that leads out of a folder.
func CheckName(name string) error {
	if namePattern.MatchString(name) {
		return nil
	}
	return job.Errorf(job.Invalid, "%q is not a name; want 1 to %d of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit", Clip(name), MaxNameLength)
}

// Clip shortens what a stranger wrote for a message.
func Clip(s string) string { return shorten.Text(s) }
