package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms says which rooms of this module a room may import. What is not written
// here is forbidden; a room without a row is an error.
func rooms() map[string][]string {
	words := []string{"sandbox", "fault", "poll"}
	local := []string{"providers/local/cgroup", "providers/local/identity", "providers/local/plain", "providers/local/record", "providers/local/runlog", "providers/local/wire"}
	wire := with(words, "providers", "httpx", "triage", "providers/guest", "providers/wirekit")
	wireFake := []string{"sandbox", "poll", "testkit/wiretest"}
	return map[string][]string{
		// ground floor
		"sandbox": nil,
		"fault":   nil,
		"poll":    nil,
		// subtests in virtual time, for tests alone
		"testkit/bubble": nil,
		// which schedules a simulation plays, for tests alone
		"testkit/schedule": nil,
		"testkit/planted":  nil,
		// which run plays a test, and how long it waits, for tests alone
		"testkit/tiertest": nil,
		// errors of JSON in plain words
		"jsontext": nil,
		// YAML that people write, read strictly, with the place of every mistake
		"yamltext": {"sandbox", "fault"},
		// the JSON documents described, and others' documents held against that, for tests alone
		"docs": nil, "requirement": {"docs"}, "documents": {"sandbox", "output", "views"}, "testkit/documentstest": nil,
		"process": nil,
		// files of this machine
		"hostfile": {"fault"},
		// pure rules
		"cond":     {"sandbox", "fault"},
		"selector": with(words, "cond", "triage"),
		"triage":   with(words, "cron"),
		"cron":     {"fault", "sandbox"},
		"httpx":    {"fault", "jsontext", "poll"},
		"policy":   words,
		// what agents report of their work
		"agentlog": {"jsontext"},
		// what was done
		"journal": {"fault", "jsontext"},
		"lock":    {"fault", "providers/local/plain"},
		// what survives the process
		"store":         with(words, "store/address"),
		"store/address": {"fault"},
		"history":       {"sandbox", "store"},
		"check":         with(words, "cond", "cron", "triage"),
		"alert":         with(words, "check", "triage", "store"),
		// the contract and those who keep it
		"providers":                  with(words, "httpx", "process"),
		"testkit/fake":               with(words, "providers"),
		"testkit/providertest":       with(words, "providers", "fleet", "triage", "testkit/tiertest"), // the judge that every check of life asks
		"providers/local":            with(local, "sandbox", "fault", "poll", "providers", "triage", "providers/local/supervisor"),
		"providers/local/cgroup":     {"sandbox", "poll"},
		"providers/local/identity":   nil,
		"providers/local/plain":      nil,
		"providers/local/record":     with(words, "hostfile", "providers/local/identity", "providers/local/plain"),
		"providers/local/runlog":     {"sandbox", "poll", "providers/local/plain"},
		"providers/local/wire":       {"providers/local/record"},
		"providers/local/supervisor": with(local, "sandbox", "poll", "process"),
		"providers/guest":            with(words, "providers", "triage", "providers/wirekit"),
		"providers/wirekit":          with(words, "providers", "httpx"),
		"providers/e2b":              wire,
		"providers/daytona":          wire,
		"providers/docker":           wire,
		"providers/kubernetes":       with(wire, "process"), // in tests alone: what runs the programs of a kubeconfig
		"providers/vercel":           wire,
		"providers/monotask":         wire,
		"providers/omoios":           with(wire, "agentlog", "jsontext"),
		// strict wire fakes, for tests alone
		"testkit/wiretest":         with(words, "providers", "providers/wirekit", "httpx", "testkit/tiertest"),
		"testkit/wiretest/apispec": {"httpx", "testkit/wiretest"},
		"testkit/e2btest":          wireFake,
		"testkit/daytonatest":      wireFake,
		"testkit/dockertest":       wireFake,
		"testkit/kubernetestest":   wireFake,
		"testkit/verceltest":       wireFake,
		"testkit/monotasktest":     wireFake,
		"testkit/omoiostest":       wireFake,
		"config":                   with(words, "triage", "yamltext", "process", "hostfile", "providers", "store/address"),
		"output":                   with(words, "process", "hostfile"),
		"notify":                   {"sandbox", "fault", "httpx"},
		"metrics":                  with(words, "hostfile"),
		// many as one
		"fleet": with(words, "providers", "selector", "triage", "policy"),
		// what runs that end or change sandboxes have written down
		"runs": with(words, "fleet", "journal", "store"),
		// who may end what
		"safety": with(words, "fleet", "runs"),
		// what ends and repairs
		"cleanup":   with(words, "cron", "fleet", "runs", "safety", "journal", "selector", "triage", "providers"),
		"reconcile": with(words, "jsontext", "fleet", "runs", "safety", "providers", "store", "triage"),
		// what makes a task's work public
		"publish": words,
		// what launches
		"task":           with(words, "fleet", "policy", "runs", "safety", "providers", "store", "testkit/schedule", "triage"),
		"task/publisher": with(words, "providers", "publish", "task"),
		// a staged incident, for tests and demonstrations
		"testkit/stagedfleet": {"sandbox", "testkit/wiretest", "testkit/e2btest", "testkit/monotasktest"},
		"cmd/staged-incident": {"testkit/stagedfleet"},
		// what earlier versions recorded of incidents
		"incident": {"fault", "journal"},
		// operations: what the skins do, once; no arrow among the rooms but those down to ops/cron and ops/recall
		"ops":           with(words, "runs", "alert", "check", "cleanup", "config", "cron", "fleet", "history", "hostfile", "incident", "journal", "lock", "metrics", "notify", "process", "providers", "publish", "safety", "store", "task", "triage"), // the environment of operations, records, notifications, and what the rooms below share
		"ops/cron":      with(words, "check", "cleanup", "config", "cron", "history", "notify", "ops", "runs", "safety", "triage"),                                                                                                                      // whether cleanup runs as often as it should, and the lines that run it
		"ops/recall":    with(words, "check", "fleet", "history", "journal", "ops", "runs", "store", "triage"),                                                                                                                                          // what is on record of sandboxes that are not found, or were ended
		"ops/look":      with(words, "runs", "agentlog", "alert", "check", "cond", "config", "cron", "fleet", "history", "notify", "ops", "ops/cron", "ops/recall", "providers", "selector", "task", "triage"),                                          // what reads and judges
		"ops/end":       with(words, "runs", "alert", "check", "cleanup", "config", "cron", "fleet", "history", "hostfile", "journal", "jsontext", "metrics", "notify", "ops", "ops/recall", "providers", "reconcile", "safety", "store", "triage"),     // what ends, and what keeps from it: history has who kept what, as of a create
		"ops/launch":    with(words, "config", "fleet", "history", "metrics", "ops", "ops/recall", "providers", "publish", "safety", "store", "task"),                                                                                                   // what starts and stops work
		"ops/incidents": with(words, "runs", "alert", "check", "cleanup", "history", "incident", "ops", "ops/recall", "requirement", "store", "task", "triage"),                                                                                         // what happened

		// the environment of operations for tests, composed of fakes and temporary directories
		"testkit/picture": {"output"},
		"testkit/opstest": with(words, "process", "history", "httpx", "providers", "config", "fleet", "incident", "journal", "lock", "notify", "ops", "ops/recall", "publish", "store", "task", "testkit/fake"),
		// runbooks as data
		"runbook": with(words, "check", "cron", "hostfile", "yamltext", "cond", "selector", "triage", "config", "alert", "task", "ops/incidents", "ops/look", "requirement"),
		// runs of runbooks
		"runbook/engine": with(words, "runs", "check", "cond", "selector", "triage", "cron", "alert", "config", "journal", "lock", "safety", "cleanup", "reconcile", "task", "ops", "ops/cron", "ops/end", "ops/incidents", "ops/launch", "ops/look", "runbook", "history", "incident"),
		// the runbooks that sbx ships
		"runbooks": nil,
		// what results look like, for every skin
		"views": with(words, "runs", "agentlog", "check", "alert", "providers", "triage", "config", "output", "cron", "history", "fleet", "safety", "cleanup", "reconcile", "task", "ops", "ops/cron", "ops/end", "ops/incidents", "ops/launch", "ops/look", "ops/recall", "requirement", "runbook", "runbook/engine", "drill", "incident"),

		// skins
		"mcp":      {"fault", "jsontext"},
		"tui":      with(words, "runs", "selector", "triage", "fleet", "ops", "ops/look", "output", "views"),
		"faults":   with(words, "runs", "cleanup", "task", "config", "ops", "ops/end", "ops/launch", "reconcile", "runbook", "runbook/engine", "runbooks", "process", "selector", "store", "testkit/bubble", "testkit/opstest", "testkit/schedule", "fleet", "policy", "httpx", "providers", "testkit/wiretest", "providers/e2b", "testkit/e2btest", "providers/daytona", "testkit/daytonatest", "providers/docker", "testkit/dockertest", "providers/kubernetes", "testkit/kubernetestest", "providers/vercel", "testkit/verceltest", "providers/monotask", "testkit/monotasktest", "providers/omoios", "testkit/omoiostest", "triage"),
		"drill":    with(words, "runs", "process", "fleet", "safety", "triage", "providers", "config", "lock", "notify", "store", "ops", "ops/look", "runbook", "runbook/engine"),
		"spawn":    with(words, "fleet", "providers", "ops", "ops/end", "ops/launch", "ops/look"),
		"commands": with(words, "runs", "spawn", "tui", "mcp", "process", "hostfile", "providers", "cond", "selector", "triage", "config", "output", "metrics", "cron", "fleet", "cleanup", "reconcile", "task", "ops", "ops/cron", "ops/end", "ops/incidents", "ops/launch", "ops/look", "ops/recall", "runbook", "runbook/engine", "drill", "views", "incident"),
		"cli": with(words, "runs", "alert", "process", "hostfile", "httpx", "config", "output", "notify", "cron", "journal", "lock", "store",
			"providers", "providers/local", "providers/local/plain", "providers/e2b", "providers/daytona", "providers/docker", "providers/kubernetes", "providers/vercel", "providers/monotask", "providers/omoios",
			"history", "fleet", "policy", "cleanup", "triage", "task", "task/publisher", "publish", "incident", "ops", "ops/launch", "ops/recall", "drill", "views", "commands"),
		"arch": nil,
	}
}

// owners says which rooms may use a library of somebody else. Tests may use
// the test libraries and whatever the room beside them may.
func owners() map[string][]string {
	return map[string][]string{
		"github.com/spf13/cobra":                 {"commands", "cli"},
		"github.com/spf13/pflag":                 {"commands", "cli"},
		"github.com/spf13/viper":                 {"config"},
		"go.yaml.in/yaml/v3":                     {"config", "output", "runbook", "yamltext", "cli", "providers/kubernetes", "testkit/wiretest/apispec"}, // in cli and kubernetes tests read files of deploy/
		"github.com/olekukonko/tablewriter":      {"output"},
		"charm.land/lipgloss":                    {"output"},
		"charm.land/bubbletea":                   {"tui"},
		"github.com/itchyny/gojq":                {"output"},
		"github.com/expr-lang/expr":              {"cond"},
		"golang.org/x/term":                      {"cli", "commands"},
		"golang.org/x/sys":                       {"providers/local", "providers/local/cgroup", "providers/local/identity", "providers/local/plain", "providers/local/record", "providers/local/runlog", "providers/local/supervisor", "providers/local/wire", "store"},
		"github.com/fsnotify/fsnotify":           {"providers/local", "providers/local/runlog"},
		"github.com/creack/pty":                  {"providers/local", "tui", "cli"},
		"github.com/stretchr/testify":            {"testkit/opstest", "testkit/picture", "testkit/planted", "testkit/providertest", "testkit/wiretest", "testkit/wiretest/apispec"},
		"al.essio.dev/pkg/shellescape":           {"commands", "cron", "mcp", "ops", "ops/look", "ops/recall", "providers/daytona", "providers/kubernetes", "providers/vercel", "providers/guest"},
		"github.com/cenkalti/backoff/v5":         {"httpx", "poll"},
		"github.com/coder/websocket":             {"providers/kubernetes", "testkit/kubernetestest", "providers/omoios", "testkit/omoiostest"},
		"github.com/docker/cli":                  {"providers/docker"},
		"github.com/docker/go-connections":       {"providers/docker"},
		"github.com/moby/moby":                   {"providers/docker"}, // in tests alone
		"k8s.io/apimachinery":                    {"providers/kubernetes"},
		"k8s.io/client-go":                       {"providers/kubernetes"},
		"golang.org/x/time":                      {"httpx"},
		"golang.org/x/net":                       {"httpx"},
		"github.com/go-json-experiment/json":     {"httpx", "jsontext", "providers/wirekit"},
		"github.com/modelcontextprotocol/go-sdk": {"mcp", "cli"}, // in cli a test drives the tools by its client
		"github.com/gofrs/flock":                 {"lock"},
		"github.com/sony/gobreaker/v2":           {"policy"},
		"modernc.org/sqlite":                     {"store"},
		"github.com/jackc/pgx/v5":                {"store"},
		"github.com/getkin/kin-openapi":          {"testkit/wiretest/apispec"},
		"github.com/santhosh-tekuri":             {"testkit/wiretest/apispec"},
	}
}

// standard says which rooms may use a guarded package of the standard library.
func standard() map[string][]string {
	return map[string][]string{
		"net/http":      with(wireRooms(), "httpx", "testkit/opstest", "testkit/providertest"),
		"os/exec":       {"cmd/staged-incident", "process", "providers/local", "providers/local/supervisor", "providers/local/identity", "testkit/planted", "testkit/wiretest", "testkit/wiretest/apispec", "publish"},
		"database/sql":  {"store"},
		"text/template": {"output"},
		"html/template": {},
	}
}

// wireRooms are the rooms that speak HTTP to or as a provider.
func wireRooms() []string {
	rooms := []string{"testkit/wiretest", "testkit/wiretest/apispec"}
	for _, p := range []string{"e2b", "daytona", "docker", "kubernetes", "vercel", "monotask", "omoios"} {
		rooms = append(rooms, "providers/"+p, "testkit/"+p+"test")
	}
	return rooms
}

func testLibraries() []string {
	return []string{"github.com/stretchr/testify", "github.com/rogpeppe/go-internal", "github.com/itchyny/gojq", "github.com/prometheus"}
}

func with(list []string, more ...string) []string { return append(slices.Clone(list), more...) }

func TestImportsGoDownstairs(t *testing.T) {
	t.Parallel()
	found, err := violations(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestPlantedImportsAreFound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, source, want string }{
		"upstairs":        {"internal/triage/x.go", `import _ "sbx/internal/fleet"`, "may import only"},
		"between rooms":   {"internal/testkit/fake/x.go", `import _ "sbx/internal/providers/local"`, "may import only"},
		"library":         {"internal/fleet/x.go", `import _ "github.com/spf13/cobra"`, "belongs to"},
		"no owner":        {"internal/fleet/x.go", `import _ "example.com/left-pad"`, "has no owner"},
		"standard":        {"internal/commands/x.go", `import _ "net/http"`, "belongs to"},
		"sql":             {"internal/fleet/x.go", `import _ "database/sql"`, "belongs to"},
		"driver":          {"internal/policy/x.go", `import _ "modernc.org/sqlite"`, "belongs to"},
		"new room":        {"internal/utils/x.go", `import _ "fmt"`, "needs a row"},
		"store of a verb": {"internal/commands/x.go", `import _ "sbx/internal/store"`, "may import only"},
		"ground library":  {"internal/fault/x.go", `import _ "golang.org/x/sys/unix"`, "belongs to"},
		"test library":    {"internal/fleet/x.go", `import _ "github.com/stretchr/testify/require"`, "belongs to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, filepath.FromSlash(tc.file))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("package x\n\n"+tc.source+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := violations(root)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || !strings.Contains(found[0], tc.want) {
				t.Fatalf("want one violation with %q, got %q", tc.want, found)
			}
		})
	}
}

// violations parses the imports itself: a child `go list` would be served from
// the test cache after a forbidden import was added.
func violations(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "tools" || name == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		more, err := inFile(file, filepath.ToSlash(rel))
		found = append(found, more...)
		return err
	})
	return found, err
}

func inFile(file, rel string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	room := strings.TrimPrefix(path.Dir(rel), "internal/")
	if room == "cmd/sbx" || strings.HasPrefix(rel, "completions/") {
		return entrance(parsed.Imports, rel)
	}
	allowed, known := rooms()[room]
	if !known {
		return []string{fmt.Sprintf("%s: room %q needs a row in the table of arch", rel, room)}, nil
	}
	isTest := strings.HasSuffix(rel, "_test.go")
	var found []string
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if v := judge(room, allowed, target, isTest); v != "" {
			found = append(found, rel+" "+v)
		}
	}
	return found, nil
}

// entrance is cmd/sbx: it may import the composition root, the process value
// and the standard library.
func entrance(imports []*ast.ImportSpec, rel string) ([]string, error) {
	var found []string
	for _, spec := range imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		own := target == "sbx/internal/cli" || target == "sbx/internal/process"
		if !own && (strings.HasPrefix(target, "sbx/") || strings.Contains(strings.Split(target, "/")[0], ".")) {
			found = append(found, fmt.Sprintf("%s imports %s; main may import only cli and process", rel, target))
		}
	}
	return found, nil
}

func judge(room string, allowed []string, target string, isTest bool) string {
	if own, ok := strings.CutPrefix(target, "sbx/internal/"); ok {
		switch {
		case own == room, slices.Contains(allowed, own):
			return ""
		case isTest && testMayImport(room, own):
			return ""
		}
		return fmt.Sprintf("imports %s; room %s may import only %v", own, room, allowed)
	}
	if isTest && underAny(target, testLibraries()) {
		return ""
	}
	if rooms, guarded := standard()[target]; guarded {
		if isTest || slices.Contains(rooms, room) {
			return ""
		}
		return fmt.Sprintf("imports %s, which belongs to %v", target, rooms)
	}
	if strings.HasPrefix(target, "sbx/") || !strings.Contains(strings.Split(target, "/")[0], ".") {
		return "" // docs and runbooks, or the standard library, which has no dot in its first element
	}
	for lib, rooms := range owners() {
		if !underAny(target, []string{lib}) {
			continue
		}
		if slices.Contains(rooms, room) {
			return ""
		}
		return fmt.Sprintf("imports %s, which belongs to %v", target, rooms)
	}
	return fmt.Sprintf("imports %s, which has no owner in the table of arch", target)
}

// testMayImport lists what tests may reach beyond their room's row: the fake
// provider, the conformance suite, the check of documents, and for the end-to-end tests all of it.
func testMayImport(room, own string) bool {
	switch room {
	case "sandbox", "fault", "process":
		return false
	case "cli":
		return true
	}
	if own == "testkit/opstest" {
		return isOps(room) || room == "commands" || room == "runbook/engine" || room == "drill" || room == "spawn"
	}
	if room == "spawn" && slices.Contains(append(rooms()["ops"], "httpx", "providers/e2b", "testkit/e2btest", "testkit/wiretest"), own) {
		return true // one provider over its fake
	}
	if room == "commands" && slices.Contains([]string{"httpx", "providers/omoios", "testkit/omoiostest"}, own) {
		return true // the events of an agent have one source
	}
	if own == "testkit/wiretest" || own == "testkit/wiretest/apispec" || own == "testkit/"+path.Base(room)+"test" {
		return slices.Contains(wireRooms(), room) || room == "providers/guest"
	}
	if own == "fleet" && slices.Contains(wireRooms(), room) {
		return true // an end is proved by a provider and the fleet together
	}
	if (room == "commands" || room == "runbook/engine") && slices.Contains(rooms()["ops"], own) {
		return true // they hand operations a store, journals and a lock; what they test has none of these
	}
	if isOps(room) && (isOps(own) || own == "selector" || slices.Contains(rooms()["ops"], own) || slices.Contains(rooms()["ops/end"], own)) {
		return true // an operation is tested beside the others
	}
	if room == "cleanup" && (own == "reconcile" || own == "store") {
		return true // the simulation plays all that ends sandboxes against one disk and one fleet
	}
	return slices.Contains([]string{"testkit/bubble", "testkit/fake", "testkit/picture", "testkit/planted", "testkit/providertest", "testkit/schedule", "testkit/tiertest", "testkit/documentstest"}, own)
}

// isOps reports whether a room has operations.
func isOps(room string) bool { return room == "ops" || path.Dir(room) == "ops" }

func underAny(target string, libs []string) bool {
	return slices.ContainsFunc(libs, func(lib string) bool {
		return target == lib || strings.HasPrefix(target, lib+"/")
	})
}
