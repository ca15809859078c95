// Command millrace publishes a website over machine-content protocols, mirrors sites that use
// them, and checks sites against them.
//
// Run it without arguments for a list of commands.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/daemon"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/internal/terminal"
	origins "github.com/millrace/millrace/origin/all"
)

// Exit codes of every command.
const (
	exitGood    = 0
	exitFailure = 1 // findings or a failure
	exitUsage   = 2
	exitUnclear = 3 // a limit ended the work early
)

func main() {
	log.SetOutput(io.Discard) // net/http logs text from clients to this logger
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	p := newProcess(os.LookupEnv, os.Stdin, os.Stdout, os.Stderr)
	p.reloadSignals = daemon.Hangups
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// commands is the command line. Each command has its own struct and file.
type commands struct {
	Serve    serveCommand    `cmd:"" help:"Publish a site in every protocol, and keep the documents up to date."`
	Ready    readyCommand    `cmd:"" help:"Check whether a running server serves the site: exit code 0 or 1."`
	Build    buildCommand    `cmd:"" help:"Write a site in every protocol to a folder, for static hosts."`
	Pull     pullCommand     `cmd:"" help:"Mirror sites, each in the cheapest way that it offers."`
	Watch    watchCommand    `cmd:"" help:"Mirror sites continuously, and report changes."`
	Sites    sitesCommand    `cmd:"" help:"Manage the sites that watch --all pulls: add, remove, list, pause, resume."`
	Discover discoverCommand `cmd:"" help:"List all ways to read a site and their costs, and the way that pull would use."`
	Check    checkCommand    `cmd:"" help:"Check a site against the specifications."`
	Read     readCommand     `cmd:"" help:"Print a page as Markdown."`
	Extract  extractCommand  `cmd:"" help:"Show the content that is extracted from a page, and why."`
	Search   searchCommand   `cmd:"" help:"Search the pages of a store."`
	Verify   verifyCommand   `cmd:"" help:"Check a store and its documents, or a built folder, for damage."`
	Export   exportCommand   `cmd:"" help:"Export the pages of a store as JSON Lines, Markdown, Parquet or CSV."`
	Report   reportCommand   `cmd:"" help:"Report the bot traffic of a site, and what mirroring saves."`
	MCP      mcpCommand      `cmd:"" name:"mcp" help:"Let agents search and read a store over the Model Context Protocol."`
	Keys     keysCommand     `cmd:"" help:"Manage keys: add, list, revoke, sign, password, directory."`
	SCP      scpCommand      `cmd:"" name:"scp" help:"Inspect, verify and print SCP collections."`
	ARC      arcCommand      `cmd:"" name:"arc" help:"Work with ARC pages: snapshot, lint, annotate."`
	Snippet  snippetCommand  `cmd:"" help:"Print configuration for nginx, Caddy or systemd."`
	Up       upCommand       `cmd:"" help:"Set up your site: probe it, ask questions, write the configuration, and serve. With --apply, also configure your web server."`
	Init     initCommand     `cmd:"" help:"Probe your site, and write a configuration for it."`
	Config   configCommand   `cmd:"" help:"Show the values that a command uses, and where each comes from."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
	Help     helpCommand     `cmd:"" help:"Explain a command."`
}

// commonFlags holds the flags of every command.
type commonFlags struct {
	JSON     bool   `name:"json" help:"Print the report as JSON to standard output."`
	Quiet    bool   `short:"q" help:"Print no progress, and log only errors."`
	LogLevel string `enum:"debug,info,warn,error" default:"info" help:"Lowest level to log: ${enum}."`
	Config   string `placeholder:"FILE" help:"Configuration file (default: millrace.yaml in the current folder, if it exists)."`
}

func (c *commonFlags) flags() *commonFlags { return c }

// process is the environment of a command. Commands use no other state of the operating
// system's process, so tests can run them as functions.
type process struct {
	lookup      func(string) (string, bool) // looks up an environment variable
	stdin       io.Reader
	stdout      *terminal.Writer
	stderr      *terminal.Writer
	reported    bool // a report was printed
	rare        bool // help shows rarely used flags
	commonFlags *commonFlags
	log         *slog.Logger
	policy      *millrace.Policy // policy from the configuration, or nil
	board       terminal.Screen  // progress bars
	// dial replaces connections to the network in tests. The guard against private addresses still
	// applies. If nil, commands use the network.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// reloadSignals returns a channel of the signals that make a server reload its configuration, until
	// stop is called. If reloadSignals is nil, there are no signals. If the channel is closed, the
	// server ends.
	reloadSignals func() (signals <-chan os.Signal, stop func())
	// again parses the command line again, with the current environment and configuration
	// file.
	again func() (*commands, *config.Config, error)
	conf  *config.Config // flags from the file and the environment, or nil
	// reloads carries requests to reload the configuration of a server. The server sends the
	// result to the channel in the request. If nil, no server runs.
	reloads chan chan<- error
}

// errReported ends a command that has already reported its failure.
var errReported = errors.New("reported")

// errInconclusive ends a command whose report states that a limit ended the work.
var errInconclusive = errors.New("inconclusive")

// exited carries an exit code of kong through its call stack.
type exited int

func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	return newProcess(lookup, stdin, stdout, stderr).run(ctx, args)
}

func newProcess(lookup func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) *process {
	return &process{lookup: lookup, stdin: stdin, stdout: terminal.New(stdout, lookup), stderr: terminal.New(stderr, lookup)}
}

// run runs a command and returns the exit code.
func (p *process) run(ctx context.Context, args []string) (code int) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			code = int(r)
		default:
			panic(r)
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "help" {
		p.rare = slices.Contains(args, "--all")
		args = slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return a == "--all" })
		args = append(args, "--help")
	}
	_, conf, kctx, err := p.parse(args)
	if err != nil {
		fmt.Fprintf(p.stderr, "millrace: %v\n", err)
		if slices.Contains(args, "--json") {
			p.printFailure(usageError(err.Error()))
		}
		if conf != nil { // the configuration is valid
			if args[0] == "search" && strings.HasPrefix(err.Error(), "unknown flag") {
				fmt.Fprintln(p.stderr, `To exclude a word, quote the whole query: millrace search "wheel -paddles" --store FILE`)
			}
			fmt.Fprintln(p.stderr, "Run millrace help, or millrace help COMMAND.")
		}
		return exitUsage
	}
	p.policy, p.conf = conf.Policy, conf
	p.again = func() (*commands, *config.Config, error) {
		line, conf, _, err := p.parse(args)
		return line, conf, err
	}
	kctx.BindTo(ctx, (*context.Context)(nil))
	if err = p.begin(kctx.Selected().Target.Addr().Interface()); err == nil {
		err = kctx.Run(p)
	}
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errReported):
		return exitFailure
	case errors.Is(err, errInconclusive):
		return exitUnclear
	}
	name := strings.Fields(kctx.Command())[0]
	p.fail(name, err)
	if p.commonFlags != nil && p.commonFlags.JSON && !p.reported {
		p.printFailure(err)
	}
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case millrace.ErrorCode(err) == "probe-timeout":
		return exitUnclear
	}
	return exitFailure
}

// fail prints the error of a command.
func (p *process) fail(name string, err error) {
	if errors.Is(err, syscall.EMFILE) {
		err = fmt.Errorf("%w; this process has reached the limit of open files and connections; raise it with ulimit -n, or LimitNOFILE in systemd", err)
	}
	fmt.Fprintf(p.stderr, "millrace %s: %s\n", name, strings.TrimPrefix(err.Error(), name+" ")) // "check URL: …" starts with the name
}

// parse parses the command line, the environment and the configuration file. If the file is
// invalid, the returned configuration is nil.
func (p *process) parse(args []string) (*commands, *config.Config, *kong.Context, error) {
	line, conf := new(commands), config.New(p.lookup)
	k, err := kong.New(line,
		kong.Name("millrace"),
		kong.Description("millrace publishes a website in every machine-content protocol, mirrors sites and checks them. Every flag is also a key of millrace.yaml and an environment variable: for example, MILLRACE_LOG_LEVEL sets --log-level. millrace help COMMAND --all also shows rarely used flags. The policy key of millrace.yaml sets the permitted uses of the content."),
		kong.Writers(p.stdout.Own(), p.stderr.Own()),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: true, NoExpandSubcommands: true}),
		kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, at *kong.Path, f *kong.Flag) (any, error) {
			if onCommandLine(at.Command, f) {
				return nil, nil
			}
			return conf.Resolve(f.Name), nil
		})),
		helpVars(),
		kong.NamedMapper("names", kong.MapperFunc(decodeNames)),
	)
	if err != nil {
		panic("millrace: define command line: " + err.Error())
	}
	// Show help even if the configuration is invalid.
	if !slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
		if err := load(conf, args, p.lookup, k); err != nil {
			return nil, nil, nil, err
		}
	}
	if p.rare {
		for _, command := range k.Model.Leaves(false) {
			for _, f := range command.Flags {
				f.Hidden = false
			}
		}
	}
	kctx, err := k.Parse(args)
	if err != nil {
		return nil, conf, nil, explain(conf, err)
	}
	setSource(conf, kctx.Selected())
	return line, conf, kctx, nil
}

// helpVars returns the lists of names that the tags of flags use.
func helpVars() kong.Vars {
	return kong.Vars{"origins": originNames(), "hosts": strings.Join(static.HostNames(), ",")}
}

// originNames lists the values of --as except mirror.
func originNames() string {
	var names []string
	for _, o := range append(origins.Origins(false), origins.Origins(true)...) {
		names = append(names, o.Name)
	}
	return strings.Join(names, ",")
}

// usageError is an error in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// ErrorCode returns "usage/FLAG" for the first flag in the text, or "usage" if it names no flag.
func (e usageError) ErrorCode() string {
	if m := flagName.FindStringSubmatch(string(e)); m != nil {
		return "usage/" + m[1]
	}
	return "usage"
}

// inFlag returns err as a usage error of a flag. If err is nil, it returns nil.
func inFlag(flag string, err error) error {
	if err == nil {
		return nil
	}
	return usageError(flag + ": " + err.Error())
}

// usageOf returns err as a usage error with the code of err.
func usageOf(err error) error {
	return millrace.Coded(millrace.ErrorCode(err), usageError(err.Error()))
}

// printFailure prints the JSON line of a command that fails before its report.
func (p *process) printFailure(err error) {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	_ = e.Encode(struct { // the exit code also reports the failure
		Error string `json:"error"`
		Code  string `json:"code"`
	}{err.Error(), millrace.ErrorCode(err)})
}

// begin prepares the process for a command, and checks common flags.
func (p *process) begin(command any) error {
	if c, ok := command.(interface{ flags() *commonFlags }); ok {
		p.start(c.flags())
	}
	if r, ok := command.(interface{ fetching() *fetchFlags }); ok {
		return r.fetching().validate()
	}
	return nil
}

// start applies the flags of every command to the process.
func (p *process) start(c *commonFlags) {
	p.commonFlags = c
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		panic("millrace: kong accepted an invalid log level: " + err.Error())
	}
	if c.Quiet {
		level.Set(max(level.Level(), slog.LevelError))
	}
	p.log = slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: withCode}))
}

// withCode adds the code of a logged error, and replaces option names in its text with flags.
func withCode(_ []string, a slog.Attr) slog.Attr {
	err, ok := a.Value.Any().(error)
	if !ok || err == nil {
		return a
	}
	return slog.Attr{Value: slog.GroupValue(slog.Attr{Key: a.Key, Value: slog.StringValue(optionFlags.Replace(err.Error()))}, slog.String("code", millrace.ErrorCode(err)))}
}

// report prints a report: as JSON with --json, otherwise as text.
func (p *process) report(v any, text func(w *bytes.Buffer)) error {
	p.reported = true
	if !p.commonFlags.JSON {
		var w bytes.Buffer
		text(&w)
		_, err := p.stdout.Write(w.Bytes())
		return err
	}
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// memory configures the garbage collector.
func (p *process) memory() daemon.Memory { return daemon.Memory{Env: p.lookup} }

// notify sends the state of the service to its manager.
func (p *process) notify(lines ...string) {
	socket, _ := p.lookup("NOTIFY_SOCKET")
	if err := daemon.Notify(socket, lines...); err != nil {
		p.log.Warn("could not notify service manager", "path", socket, "err", err)
	}
}

// oneOrAll returns the only element of a list, or the list.
func oneOrAll[T any](list []T) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// helpCommand is handled before the command line is parsed. It exists only for the list of
// commands.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"Command to explain."`
	All     bool     `help:"Also show rarely used flags, which are mostly set in millrace.yaml."`
}

// Run does nothing, because [process.run] handles the command.
func (c *helpCommand) Run() error { return nil }
