package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Exposed is a file or folder that more people can read or write than should.
type Exposed struct {
	Path    string
	Problem string // what is wrong, for people
	Mend    string // the command that mends it
}

// Exposed returns what is open to everybody on the machine and should not be: files of
// the configuration in which a secret stands as it is, the key of the certificate, and
// the folder of drivers with what is in it.
func (c *Config) Exposed() []Exposed {
	var found []Exposed
	open := func(path string, bits os.FileMode, problem, mend string) {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&bits != 0 {
			found = append(found, Exposed{path, fmt.Sprintf("%s (mode %#o)", problem, info.Mode().Perm()), "chmod " + mend + " " + path})
		}
	}
	const read, write = 0o004, 0o002
	for _, path := range c.secretFiles {
		open(path, read, "everybody on this machine can read it, and a secret stands in it", "o-r")
	}
	if c.TLS != nil {
		open(c.TLS.KeyFile, read, "everybody on this machine can read the key of the certificate", "o-r")
	}
	if c.Fleet.KeyFile != "" {
		open(c.Fleet.KeyFile, read, "everybody on this machine can read the key of the fleet, and speak as one of its servers", "o-r")
	}
	if c.PluginDir == "" {
		return found
	}
	open(c.PluginDir, write, "everybody on this machine can put programs into the folder of drivers, which boardd runs", "o-w")
	programs, _ := filepath.Glob(filepath.Join(escapeGlob(c.PluginDir), "*")) // the pattern is a good one
	for _, path := range programs {
		open(path, write, "everybody on this machine can change this driver, which boardd runs", "o-w")
	}
	return found
}

// noteSecrets remembers a file in which a secret stands as it is, and not by env or file.
func (l *loader) noteSecrets(path string, body *hclsyntax.Body) {
	found := false
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
		switch n := node.(type) {
		case *hclsyntax.Attribute:
			found = found || isSecret(n.Name) && !calls(n.Expr)
		case *hclsyntax.ObjectConsExpr:
			for _, item := range n.Items {
				key := hcl.ExprAsKeyword(item.KeyExpr)
				if value, _ := item.KeyExpr.Value(nil); key == "" && value.IsKnown() && !value.IsNull() && value.Type() == cty.String {
					key = value.AsString()
				}
				found = found || isSecret(key) && !calls(item.ValueExpr)
			}
		}
		return nil
	})
	if found && !slices.Contains(l.config.secretFiles, path) {
		l.config.secretFiles = append(l.config.secretFiles, path)
	}
}

// isSecret reports whether what a setting of this name holds is to be kept.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return name != "secret_sha256" && (strings.Contains(name, "secret") || strings.Contains(name, "password") || strings.Contains(name, "credentials"))
}

// calls reports whether a value comes from a function.
func calls(e hclsyntax.Expression) bool {
	found := false
	_ = hclsyntax.VisitAll(e, func(node hclsyntax.Node) hcl.Diagnostics {
		_, is := node.(*hclsyntax.FunctionCallExpr)
		found = found || is
		return nil
	})
	return found
}
