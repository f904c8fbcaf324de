package config

// ServerLimits bounds what a server spends on some of its work, for all tenants
// together. The configuration's are never 0; elsewhere 0 is the default.
type ServerLimits struct {
	PolicyProcesses int64 // that run modules which tenants brought
	PolicyMemory    int64 // bytes that these may take
	Compilations    int64 // of such modules at once
	Simulations     int64 // at once
}

// The defaults of ServerLimits.
const (
	DefaultServerPolicyProcesses = 64
	DefaultServerPolicyMemory    = 4 << 30
	DefaultCompilations          = 2
	DefaultSimulations           = 2
)

// WithDefaults returns the limits with what is 0 filled in.
func (l ServerLimits) WithDefaults() ServerLimits {
	for _, d := range []struct {
		field *int64
		value int64
	}{
		{&l.PolicyProcesses, DefaultServerPolicyProcesses},
		{&l.PolicyMemory, DefaultServerPolicyMemory},
		{&l.Compilations, DefaultCompilations},
		{&l.Simulations, DefaultSimulations},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return l
}

func (l *loader) serverLimits(s *section) {
	limits := &l.config.Server
	limits.PolicyProcesses, _ = s.number("policy_processes", 1, MaxLimit)
	limits.PolicyMemory, _ = s.bytes("policy_memory")
	limits.Compilations, _ = s.number("policy_compilations", 1, mostServerWork)
	limits.Simulations, _ = s.number("simulations", 1, mostServerWork)
	s.close("server_limits", "")
}

// mostServerWork is the most compilations, or simulations, that a server may be told
// to run at once.
const mostServerWork = 1024
