package tenant

import (
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// Role is a set of calls that a token may make.
type Role string

// The roles. Poster, Worker and PolicyAuthor read as Viewer does.
const (
	Viewer       Role = "viewer"        // reads
	Poster       Role = "poster"        // posts, cancels, keeps books
	Worker       Role = "worker"        // claims jobs and does all that their holder may
	PolicyAuthor Role = "policy-author" // writes policies
	TenantAdmin  Role = "tenant-admin"  // everything within its tenant
	Operator     Role = "operator"      // stands above the tenants
	Metrics      Role = "metrics"       // reads the server's metrics, and nothing of a board
	Support      Role = "support"       // reads the boards of every tenant, one at a time
)

// Roles returns every role.
func Roles() []Role {
	return []Role{Viewer, Poster, Worker, PolicyAuthor, TenantAdmin, Operator, Metrics, Support}
}

// ParseRole returns the role with the given name. Its error names the nearest
// right one.
func ParseRole(name string) (Role, error) {
	names := make([]string, 0, len(Roles()))
	for _, role := range Roles() {
		names = append(names, string(role))
	}
	if !slices.Contains(names, name) {
		return "", job.Errorf(job.Invalid, "there is no role %q%s; the roles are %s",
			name, nearest.Hint(name, names), strings.Join(names, ", "))
	}
	return Role(name), nil
}

// readers are the roles that see what stands on a board.
var readers = []Role{Viewer, Poster, Worker, PolicyAuthor, TenantAdmin, Operator, Support}

// MetricsCall stands for GET /metrics in the table of calls.
const MetricsCall = "GET /metrics"

// ProfileCall stands for GET /debug/pprof/ in the table of calls.
const ProfileCall = "GET /debug/pprof/"

// The roles that write policies, run a tenant, and run the server.
var (
	authors   = []Role{PolicyAuthor, TenantAdmin, Operator}
	admins    = []Role{TenantAdmin, Operator}
	operators = []Role{Operator}
)

// harmless are the calls of AdminService that concern a whole tenant, or all, and that a
// token bound to some boards may make all the same.
var harmless = map[string]bool{"ListTenants": true, "ListBackends": true, "ListPolicies": true, "ListTenantBoards": true, "ListServers": true}

// Routine reports whether a call is one of those by which posters and workers do
// their work.
func Routine(call string) bool {
	allowed := permissions[call]
	return (slices.Contains(allowed, Poster) || slices.Contains(allowed, Worker)) && !slices.Contains(allowed, Viewer)
}
