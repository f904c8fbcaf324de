package rate

import _ "embed" // for the manifest

// Manifest declares the policy, as JSON.
//
//go:embed manifest.json
var Manifest []byte
