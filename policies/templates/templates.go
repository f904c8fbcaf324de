// Package templates has one policy in each language that boardd knows how to build, to
// begin from: the same in all of them.
package templates

import "embed"

// Files has a folder for each language, and the cases that hold for all of them.
//
//go:embed cases.json go/*.go go/manifest.json c rust assemblyscript
var Files embed.FS
