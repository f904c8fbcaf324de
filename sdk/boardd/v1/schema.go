// Package boarddv1 is the public API of boardd: the messages and calls of
// boardd.proto. All of it but this file is generated.
package boarddv1

import _ "embed"

// Schema is the text of boardd.proto, which describes every message and call.
//
//go:embed boardd.proto
var Schema string

// AdminSchema is the text of admin.proto, which imports boardd.proto.
//
//go:embed admin.proto
var AdminSchema string
