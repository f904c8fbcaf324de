package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/boardd/boardd/host/tenant"
)

// Source says where a configuration comes from. The zero Source gives a server
// without boards.
type Source struct {
	Paths []string                    // files, and folders of *.hcl
	Env   func(string) (string, bool) // answers env("NAME"), as os.LookupEnv does; nil: nothing is set
	Dev   bool                        // begin with Dev and add the files to it

	// What stands here goes before what the files say; empty: the files decide.
	Listen    string
	DataDir   string
	PluginDir string

	DrainDelay *time.Duration // nil: the files decide

	Plugins string // the folder of drivers where nothing else names one

	// Check says what else is wrong with what was read, of which what Load found wrong may be
	// missing; nil: nothing.
	Check func(*Config) Problems
}

// Load reads and checks a configuration. Its error is everything that is wrong,
// as Problems.
func Load(source Source) (*Config, error) {
	l := &loader{source: source, config: &Config{Tenants: []string{tenant.Default}, DrainDelay: DefaultDrainDelay, Audit: defaultAudit}, once: map[string]Place{}, policies: map[string]policyBlock{}}
	if source.Dev {
		l.config = Dev(source.DataDir)
	}
	l.config.places = places{}
	for _, path := range source.Paths {
		l.open(path)
	}
	l.override()
	l.check()
	if source.Check != nil {
		l.problems = append(l.problems, source.Check(l.config)...)
	}
	if len(l.problems) > 0 {
		return nil, l.problems.sort(l.files)
	}
	return l.config, nil
}

// loader gathers one configuration and everything that is wrong with it.
type loader struct {
	source   Source
	config   *Config
	problems Problems
	files    []string         // in the order of reading
	once     map[string]Place // settings outside of all blocks that were given
	tokens   []tokenPlace     // of config.Tokens, those from files
	issuers  []issuerPlace    // of config.Issuers
	grants   []grantPlace     // of config.Backends, the tenants they name
	boards   []*section       // of config.Boards, those from files
	kept     *section         // the catalog block

	fleetBlock *section

	policies map[string]policyBlock
	uses     []ruleBlock  // of policies, by boards
	shelves  []booksBlock // of config.Boards, those with books in a backend
	hooks    []hookPlace  // of config.Boards, their webhooks
	wish     bool         // it is not a server's configuration: see Wish
}

func (l *loader) problem(at Place, text string) {
	l.problems = append(l.problems, Problem{Place: at, Text: text})
}

// open reads a file or a folder.
func (l *loader) open(path string) {
	info, err := os.Stat(path)
	if err != nil {
		l.problem(Place{File: path}, plainError(err))
		return
	}
	if !info.IsDir() {
		l.read(path)
		return
	}
	names, err := filepath.Glob(filepath.Join(escapeGlob(path), "*.hcl"))
	if err != nil || len(names) == 0 {
		l.problem(Place{File: path}, "the folder has no file named *.hcl")
	}
	for _, name := range names {
		l.read(name)
	}
}

// escapeGlob takes a path's own characters literally.
func escapeGlob(path string) string {
	var out []rune
	for _, r := range path {
		if slices.Contains([]rune(`*?[\`), r) {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

// plainError says what is wrong with a file without its name, which the place
// has already. Of one that may not be read it says who wants to: often it is a service's
// user, and not the one who wrote the file.
func plainError(err error) string {
	text := err.Error()
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		text = pathError.Err.Error()
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("%s; the user %s has to be able to read it", text, reader())
	}
	return text
}

// reader is the name of the user that this program runs as, or its number.
func reader() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}

func (l *loader) read(path string) {
	if slices.Contains(l.files, path) {
		l.problem(Place{File: path}, "the file is given twice")
		return
	}
	l.files = append(l.files, path)
	data, err := readFile(path)
	if err != nil {
		l.problem(Place{File: path}, plainError(err))
		return
	}
	l.parse(path, data)
}

// parse reads the text of one file into the configuration.
func (l *loader) parse(path string, data []byte) {
	if at, text := tooDeep(path, data); text != "" {
		l.problem(at, text)
		return
	}
	file, diagnostics := hclsyntax.ParseConfig(data, path, hcl.InitialPos)
	l.diagnose(path, "", diagnostics)
	if file == nil || diagnostics.HasErrors() {
		return // what follows a broken line would only be guessed at
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return
	}
	l.noteSecrets(path, body)
	l.root(&section{
		loader: l, file: path, body: body, at: Place{File: path, Line: 1, Column: 1}, places: map[string]Place{}, bad: map[string]bool{},
	})
}

// diagnose turns the parser's findings into problems.
func (l *loader) diagnose(path, title string, diagnostics hcl.Diagnostics) {
	for _, d := range diagnostics {
		if d.Severity != hcl.DiagError {
			continue
		}
		text := d.Summary + ": " + d.Detail
		if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); ok && call.FunctionCallError() != nil {
			text = fmt.Sprintf("%s: %v", call.CalledFunctionName(), call.FunctionCallError())
		}
		if title != "" {
			text = title + ": " + text
		}
		at := Place{File: path}
		if d.Subject != nil {
			at.Line, at.Column = d.Subject.Start.Line, d.Subject.Start.Column
		}
		l.problem(at, text)
	}
}

// Limits on the shape of a file. The parser calls itself for each level, and a
// stack that runs out cannot be recovered from.
const (
	maxDepth     = 64
	maxOperators = 1024
)

// tooDeep looks at a file's tokens before the parser does.
func tooDeep(path string, data []byte) (Place, string) {
	tokens, _ := hclsyntax.LexConfig(data, path, hcl.InitialPos) // what is wrong with them the parser says again
	depth, operators := 0, 0
	for _, token := range tokens {
		switch token.Type { // only what nests
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenQuestion:
			operators++
		}
		if depth > maxDepth || operators > maxOperators {
			at := Place{File: path, Line: token.Range.Start.Line, Column: token.Range.Start.Column}
			return at, fmt.Sprintf("the file is nested too deeply: want at most %d levels and %d operators", maxDepth, maxOperators)
		}
	}
	return Place{}, ""
}

// Roots reads a file of certificates that vouch for others.
func Roots(path string) (*x509.CertPool, error) {
	pem, err := readFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", path)
	}
	return roots, nil
}
