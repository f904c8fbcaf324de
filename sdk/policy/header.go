package policy

import _ "embed" // for the headers

// The binary interface in the languages that have a header, for whoever builds
// policies: boardd_policy.h, .rs and .ts, as they stand beside this file.
var (
	//go:embed boardd_policy.h
	HeaderC []byte
	//go:embed boardd_policy.rs
	HeaderRust []byte
	//go:embed boardd_policy.ts
	HeaderAssemblyScript []byte
)
