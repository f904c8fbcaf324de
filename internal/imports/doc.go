// Package imports holds the architecture of this module as tests: which package
// may import which, who owns which outside dependency, and the rules of style
// that a parser can check. It has no other code.
//
// The tests parse the sources in their own process. A test that asked the go
// command instead would be answered from the test cache after a forbidden import
// had been added, since the cache does not see what a child process reads.
package imports
