package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const aboutRoots = `# The certificates that Mozilla trusts to vouch for servers, as golang.org/x/crypto/x509roots
# has them, but for those that are trusted only for what they signed before some day: a file
# like this one cannot say so. The list is Mozilla's, under its license (MPL 2.0,
# https://mozilla.org/MPL/2.0/).
`

// roots are the certificates that boardd trusts when it calls others, in PEM.
func roots() []byte {
	var b bytes.Buffer
	b.WriteString(aboutRoots)
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}
