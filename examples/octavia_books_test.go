package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// database is one in which TaskFlow keeps logbooks, with an account of TaskFlow's and one
// that may only read.
type database struct{ writer, reader string }

// databases are the sorts that the page names. Each is started when it is asked for.
var databases = map[string]func(t *testing.T) database{
	"SQLite": func(t *testing.T) database {
		t.Helper()
		url := "sqlite:///" + filepath.Join(t.TempDir(), "books")
		return database{url, url}
	},
	"PostgreSQL": func(t *testing.T) database {
		t.Helper()
		needModule(t, "psycopg2")
		postgres := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
		postgres.SQL("postgres", "CREATE DATABASE octavia")
		for _, statement := range []string{"CREATE ROLE boardd LOGIN", "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO boardd"} {
			postgres.SQL("octavia", statement)
		}
		return database{"postgresql+psycopg2://postgres@" + postgres.Addr + "/octavia", "postgresql+psycopg2://boardd@" + postgres.Addr + "/octavia"}
	},
	"MariaDB": func(t *testing.T) database {
		t.Helper()
		needModule(t, "pymysql")
		socket := startMariaDB(t, "CREATE DATABASE octavia;", "CREATE USER octavia@'%' IDENTIFIED BY 'octavia-secret';", "GRANT ALL ON octavia.* TO octavia@'%';",
			"CREATE USER boardd@'%' IDENTIFIED BY 'boardd-secret';", "GRANT SELECT ON octavia.* TO boardd@'%';")
		return database{"mysql+pymysql://octavia:octavia-secret@localhost/octavia?unix_socket=" + socket, "mysql+pymysql://boardd:boardd-secret@localhost/octavia?unix_socket=" + socket}
	},
}

func needModule(t *testing.T, name string) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), python, "-c", "import "+name).Run(); err != nil {
		testneed.Skip(t, python+" has no "+name)
	}
}

// startMariaDB starts a MariaDB of its own and returns its socket. The statements are
// carried out before, a line each.
func startMariaDB(t *testing.T, statements ...string) string {
	t.Helper()
	const program, tables = "/usr/sbin/mariadbd", "/usr/share/mysql"
	testneed.Program(t, program)
	folder := t.TempDir()
	options := []string{"--no-defaults", "--datadir=" + folder}
	if os.Getuid() == 0 {
		options = append(options, "--user=root")
	}
	first := "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n" + readText(t, filepath.Join(tables, "mysql_system_tables.sql")) + "\n" +
		readText(t, filepath.Join(tables, "mysql_system_tables_data.sql")) + "\nFLUSH PRIVILEGES;\n" + strings.Join(statements, "\n") + "\n"
	mustRun(t, strings.NewReader(first), program, append(slices.Clone(options), "--bootstrap")...)
	log, socket := filepath.Join(folder, "log.err"), filepath.Join(folder, "s")
	command := exec.Command(program, append(options, "--socket="+socket, "--skip-networking", "--log-error="+log)...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	testserver.Eventually(t, "MariaDB is ready", func() bool {
		text, _ := os.ReadFile(log) // it may not be there yet
		return strings.Contains(string(text), "ready for connections")
	})
	return socket
}

// TestTaskFlowBooks has boardd show the logbook of a flow that failed, which TaskFlow keeps
// in a database, by the driver of the example and with an account that may only read.
func TestTaskFlowBooks(t *testing.T) {
	t.Parallel()
	testserver.NeedTaskFlow(t)
	needModule(t, "sqlalchemy_utils")
	dir := t.TempDir()
	copyPython(t, filepath.Join("octavia", "taskflow-books"), filepath.Join(dir, "taskflow-books"))
	describe(t, dir)
	program := testserver.Build(t, "./cmd/boardd")
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			uuid := strings.TrimSpace(mustRun(t, nil, python, filepath.Join("testdata", "write_book.py"), d.writer))
			config := filepath.Join(t.TempDir(), "boardd.hcl")
			text := `plugin_dir = "` + dir + `"` + "\n" + bookBlocks(t, d.reader) + "token \"root\" {\n  roles  = [\"operator\"]\n  secret = \"" + rootToken + "\"\n}\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			server := testserver.New(t, program, "", "--config", config)
			server.Env = []string{"BOOKS_URL=" + d.reader}
			server.Restart()
			c, err := client.New(client.Config{Addr: server.Addr, Token: rootToken})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			var book *boarddv1.GetBookResponse
			testserver.Eventually(t, "the driver has started, and the book is there", func() bool {
				book, err = c.Board("octavia").Book(t.Context(), uuid)
				return job.KindOf(err) != job.Unavailable
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, server.Log())
			}
			checkBook(t, book.GetBook().GetContent())
			if book.GetBook().GetName() != "create_load_balancer" || book.GetSource() != "taskflow-books://books/taskflow" {
				t.Errorf("the book %q in %q", book.GetBook().GetName(), book.GetSource())
			}
			if _, err := c.Board("octavia").Book(t.Context(), "another"); job.KindOf(err) != job.NotFound {
				t.Errorf("another book: %v", err)
			}
			if strings.Contains(server.Log(), "boardd-secret") {
				t.Error("the log has the password")
			}
		})
	}
}

// bookBlocks returns what docs/octavia.md says of books, in a whole configuration.
func bookBlocks(t *testing.T, url string) string {
	t.Helper()
	for _, block := range strings.Split(octaviaPage(t), "```txt\n")[1:] {
		if body, _, _ := strings.Cut(block, "```"); strings.Contains(body, "= \"taskflow-books\"") {
			return body
		}
	}
	t.Fatal("docs/octavia.md does not say how to show " + url)
	return ""
}

// checkBook checks that the book says which task failed and why, and what the others came to.
func checkBook(t *testing.T, content []byte) {
	t.Helper()
	var book struct {
		Meta  map[string]string
		Flows []struct {
			State string
			Atoms []struct {
				Type string
				Atom struct {
					Name, State string
					Results     any
					UpdatedAt   string `json:"updated_at"`
					Failure     struct {
						Text string `json:"exception_str"`
					}
				}
			} `json:"atom_details"`
		} `json:"flow_details"`
	}
	if err := json.Unmarshal(content, &book); err != nil || len(book.Flows) != 1 || book.Flows[0].State != "REVERTED" || book.Meta["note"] != "käse" {
		t.Fatalf("%v: %s", err, content)
	}
	got := map[string]string{}
	for _, a := range book.Flows[0].Atoms {
		got[a.Atom.Name] = a.Type + " " + a.Atom.State + " " + a.Atom.Failure.Text
		if a.Atom.Name == "boot" && a.Atom.Results != 1.25 || a.Atom.UpdatedAt == "" && a.Atom.State != "PENDING" {
			t.Errorf("%s came to %v, %s", a.Atom.Name, a.Atom.Results, a.Atom.UpdatedAt)
		}
	}
	for name, want := range map[string]string{"boot": "TASK_DETAIL REVERTED ", "plug": "TASK_DETAIL REVERTED no answer from the amphora \u2620", "mark-active": "TASK_DETAIL PENDING "} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
