// Package release makes a release by scripts/release.sh and looks at what comes out: its
// tests are all there is.
package release
