package boarddv1

import _ "embed"

// Schema is the text of boardd.proto, which describes every message and call.
//
//go:embed boardd.proto
var Schema string
