package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/nearest"
)

// program is one run of boardd: where it reads and writes, and the flags that
// every command has.
type program struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	settle   func() // called by what runs for long, before it begins; nil: nothing

	started bool // the command line was right and the command has begun

	addrs                     []string // servers of the same boards
	token, tokenFile          string
	board                     string
	tenant                    string
	caFile, certFile, keyFile string
	output                    format
}

// run carries out one command line and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(negativesLast(args))
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	return p.exit(ctx, root.ExecuteContext(ctx))
}

func (p *program) root() *cobra.Command {
	root := p.group("boardd", "A jobboard: the server and its client",
		"A board is a place where jobs are posted and workers pick. boardd serve runs the\n"+
			"server; most other commands talk to one.",
		p.serveCommand(), p.configCommand(), p.jobCommand(), p.scheduleCommand(), p.batchCommand(), p.webhookCommand(), p.workerCommand(), p.entityCommand(), p.boardCommand(), p.tenantCommand(), p.tokenCommand(), p.backendCommand(), p.serverCommand(), p.policyCommand(),
		p.applyCommand(), p.reloadCommand(), p.auditCommand(), p.catalogCommand(),
		p.pluginCommand(), p.clientCommand(), p.topCommand(), p.benchCommand(), p.doctorCommand(), p.readyCommand(), p.versionCommand(), p.driverCommand(), p.manCommand())
	root.Example = "  boardd serve --dev\n  boardd job post hello\n  boardd worker run --until-empty -- cat"
	root.Version = thisBuild().line()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() { // cobra's own would show help and end with 0 whatever is asked for
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, whichCommand
		case "help":
			c.Run, c.RunE = nil, help
		}
	}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&p.addrs, "addr", nil, "address of the server; may be repeated, for several servers of the same boards; BOARDD_ADDR, with commas (default "+client.DefaultAddr+")")
	flags.StringVar(&p.token, "token", "", "token to present; BOARDD_TOKEN")
	flags.StringVar(&p.tokenFile, "token-file", "", "file that holds the token; BOARDD_TOKEN_FILE")
	flags.Var((*named)(&p.board), "board", "board to work on; BOARDD_BOARD (default \"default\")")
	flags.StringVar(&p.tenant, "tenant", "", "read the boards of this tenant; for operators and the role support, who can change nothing there")
	flags.StringVar(&p.caFile, "ca-file", "", "certificates to trust instead of the system's; BOARDD_CA_FILE")
	flags.StringVar(&p.certFile, "cert-file", "", "certificate to present; BOARDD_CERT_FILE")
	flags.StringVar(&p.keyFile, "key-file", "", "key of that certificate; BOARDD_KEY_FILE")
	_ = root.RegisterFlagCompletionFunc("board", p.completeBoards()) // it fails only for a flag that is not there
	p.output = "table"
	flags.VarP(&p.output, "output", "o", "table, or json: the server's answer as it is")
	root.SetFlagErrorFunc(wrongFlag)
	return root
}

// wrongFlag names the flag that was probably meant, and where all of them are.
func wrongFlag(c *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok && errors.Is(err, strconv.ErrRange) {
		bits := map[string]int{"int32": 32, "int": strconv.IntSize, "int64": 64}[invalid.GetFlag().Value.Type()]
		if bits > 0 {
			return usagef("--%s %s: want a whole number up to %d", invalid.GetFlag().Name, invalid.GetValue(), int64(1)<<(bits-1)-1)
		}
	}
	unknown, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return usagef("%v", err)
	}
	var names []string
	add := func(f *pflag.Flag) { names = append(names, f.Name) }
	c.LocalFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	hint := nearest.Hint(unknown, names)
	return usagef("%v%s; %s --help shows all flags", err, strings.Replace(hint, `"`, `"--`, 1), c.CommandPath())
}

// flagGroups are cobra's words about flags that belong together, and ours.
var flagGroups = []struct {
	pattern *regexp.Regexp
	says    func(flags []string) string
}{
	{regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`), func(flags []string) string {
		return "--" + strings.Join(flags, " or --") + " is missing"
	}},
	{regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`), func(flags []string) string {
		return "want only one of --" + strings.Join(flags, " and --")
	}},
}

// plainly says what is wrong with a command line in the words of the other errors.
func plainly(text string) string {
	for _, g := range flagGroups {
		if found := g.pattern.FindStringSubmatch(text); found != nil {
			return g.says(strings.Fields(found[1]))
		}
	}
	return text
}

// group is a command that only has other commands. Its example is the first one of its first
// command.
func (p *program) group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: name, Short: short, Long: long,
		Args: cobra.ArbitraryArgs, RunE: whichCommand,
	}
	group.Example, _, _ = strings.Cut(commands[0].Example, "\n")
	group.AddCommand(commands...)
	return group
}

// help shows the help of a command, or says that there is none of that name.
func help(c *cobra.Command, args []string) error {
	of, rest, err := c.Root().Find(args)
	if err != nil || len(rest) > 0 {
		if of == nil {
			of = c.Root()
		}
		return whichCommand(of, rest)
	}
	return of.Help()
}

// whichCommand is what a group of commands does by itself: it says that one of them is wanted.
func whichCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		_ = c.Help()
		return usagef("which command?")
	}
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return usagef("there is no command %q in %s%s", args[0], c.CommandPath(), nearest.HintOr(args[0], names))
}

// command makes a command. The example is shown by --help; use begins with the
// command's name. The arguments are checked by do, with usagef.
func (p *program) command(use, short, long, example string, do func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + long, Example: "  " + example,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			p.fromEnvironment(c)
			p.started = true
			return do(c.Context(), args)
		},
	}
}

// fromEnvironment fills in what the flags leave open.
func (p *program) fromEnvironment(c *cobra.Command) {
	set := func(flag, name string, value *string) {
		if v, ok := p.env(name); ok && v != "" && !c.Flags().Changed(flag) {
			*value = v
		}
	}
	if v, ok := p.env("BOARDD_ADDR"); ok && v != "" && !c.Flags().Changed("addr") {
		p.addrs = strings.Split(v, ",")
	}
	set("board", "BOARDD_BOARD", &p.board)
	set("ca-file", "BOARDD_CA_FILE", &p.caFile)
	set("cert-file", "BOARDD_CERT_FILE", &p.certFile)
	set("key-file", "BOARDD_KEY_FILE", &p.keyFile)
	if !c.Flags().Changed("token") && !c.Flags().Changed("token-file") {
		set("token", "BOARDD_TOKEN", &p.token)
		set("token-file", "BOARDD_TOKEN_FILE", &p.tokenFile)
	}
	if p.board == "" {
		p.board = "default"
	}
}
