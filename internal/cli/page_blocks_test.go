package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How each block of a page is held against the program, in the order of the page:
//
//	test NAME    the test of that name plays it, or compares it
//	played       TestPagesShowWhatIsPrinted runs it, and compares what the page shows
//	typed        its commands have the flags and arguments that the program takes; it shows no output
//	go test      its commands name tests that exist
//	machine WHY  nothing runs it; the files of the project that it names exist
//
// A page that is not here has no block.
func pageBlocks() map[string][]string {
	const sdk, packages, cluster = "machine code of the vendors' SDKs", "machine a package manager and root", "machine a cluster"
	guide := slices.Repeat([]string{"test TestGuideToACommandLeadsToGreen"}, 8)
	provider := slices.Repeat([]string{"test TestGuideToAProviderLeadsToGreen"}, 5)
	return map[string][]string{
		"README.md":                 {"test TestReadmeDrill", "test TestReadmeDrill", "played", "machine an installation", "played"},
		"CONTRIBUTING.md":           {"test TestMakeHasTheVerbsOfThePage"},
		"docs/ADDING-A-COMMAND.md":  guide,
		"docs/ADDING-A-PROVIDER.md": append(slices.Clip(provider), "test TestGuideToAProviderLeadsToGreen", "test TestGuideToAProviderLeadsToGreen", "test TestGuideToAProviderLeadsToGreen", "test TestCodeOfThePageIsInTheSource"),
		"docs/ALERTS.md":            {"test TestConfigurationsOfPagesAreAccepted"},
		"docs/ARCHITECTURE.md":      {"test TestFloorsOfThePageAreRooms", "test TestActsOfThePageAreFunctions"},
		"docs/ASSISTANTS.md":        {"test TestTheEntryOfAnAssistantStartsTheServer"},
		"docs/CLEANUP.md":           {"played", "played", sdk, "typed", "test TestThePlanOfThePage", "played", "test TestCronLineIsQuietWhenAllIsWell", "played"},
		"docs/CONFIGURATION.md":     {"test TestConfigurationsOfPagesAreAccepted", "typed", "typed"},
		"docs/DOCKER.md":            {"played", "test TestConfigurationsOfPagesAreAccepted"},
		"docs/EVENTS.md":            {"typed", "test TestEventOfThePageIsRead"},
		"docs/FIRST-HOUR.md":        append(slices.Repeat([]string{"test TestTheFirstHourShowsWhatIsPrinted"}, 10), "typed"),
		"docs/INSTALL.md":           {"machine an installation", packages, packages, packages, packages, "machine an engine", cluster, "test TestConfigurationsOfPagesAreAccepted", cluster, "test TestRulesOfThePageAreThere", "machine a release", packages},
		"docs/KUBERNETES.md":        {"played"},
		"docs/RUNBOOKS.md":          {"typed", "typed"},
		"docs/SAFETY.md":            {"go test"},
		"docs/TASKS.md":             {"typed", "played", "played", "played", "played", "test TestFileOfTasksOfThePageIsRead", "typed", "typed"},
		"docs/TESTING.md":           {"go test", "go test"},
	}
}

// mostMachine is how many blocks nothing runs.
const mostMachine = 12

// TestEveryBlockOfAPageIsChecked: each block has its check, each check its block, and few are left to the machine.
func TestEveryBlockOfAPageIsChecked(t *testing.T) {
	t.Parallel()
	checks, machine := pageBlocks(), 0
	names, tests := append(ownPages(t), "CONTRIBUTING.md"), sourcesOfTests(t)
	for _, name := range names {
		all := blocks(page(t, name), "")
		if !assert.Len(t, checks[name], len(all), "%s: give each of its blocks a check in pageBlocks", name) {
			continue
		}
		for i, b := range all {
			how, detail, _ := strings.Cut(checks[name][i], " ")
			switch how {
			case "test":
				assert.Contains(t, tests, "func "+detail+"(", "%s:%d", name, b.line)
			case "played":
			case "typed":
				assert.Empty(t, misspelled(b), "%s:%d", name, b.line)
			case "go":
				assert.Empty(t, missingGoTests(b, tests), "%s:%d", name, b.line)
			case "machine":
				machine++
				assert.Empty(t, missingFiles(b), "%s:%d", name, b.line)
			default:
				t.Errorf("%s: there is no check %q", name, checks[name][i])
			}
		}
	}
	for name := range checks {
		assert.Contains(t, names, name)
	}
	assert.LessOrEqual(t, machine, mostMachine, "run it, or compare it")
}

// ownPages are the pages that people write.
func ownPages(t *testing.T) []string {
	t.Helper()
	var own []string
	for _, name := range pages(t) {
		if !strings.HasPrefix(name, "docs/cli/") && !strings.HasPrefix(name, "docs/decisions/") {
			own = append(own, name)
		}
	}
	return own
}

// sourcesOfTests is the text of all tests.
func sourcesOfTests(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var raw []byte
			raw, err = os.ReadFile(path)
			text.Write(raw)
		}
		return err
	}))
	return text.String()
}

// commandsOf are the commands of sbx in a block: lines that begin with it, those of a console behind the prompt. What
// stands behind two spaces or # is a remark.
func commandsOf(b block) []string {
	var all []string
	for _, line := range b.lines {
		line, prompted := strings.CutPrefix(line, "$ ")
		if b.language == "console" && !prompted {
			continue
		}
		line, _, _ = strings.Cut(line, "  ")
		line, _, _ = strings.Cut(line, " #")
		if strings.HasPrefix(line, "sbx ") {
			all = append(all, line)
		}
	}
	return all
}

// misspelled are the commands of a block that the program would refuse for their flags or arguments, and what shows an
// output.
func misspelled(b block) (wrong []string) {
	for _, line := range commandsOf(b) {
		words := shellWords(line)
		cmd, rest, err := tree().Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil && cmd.Args != nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err != nil {
			wrong = append(wrong, line+": "+err.Error())
		}
	}
	if len(commandsOf(b)) == 0 {
		wrong = append(wrong, "there is no command")
	}
	for i, line := range b.lines {
		isCommand := strings.HasPrefix(line, "$ ") || b.language != "console" && regexp.MustCompile(`^(sbx |#|export |$)`).MatchString(line)
		if !isCommand {
			wrong = append(wrong, b.lines[i])
		}
	}
	return wrong
}

// shellWords splits a line as a shell does, as far as pages quote.
func shellWords(line string) []string {
	var words []string
	for _, m := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
		words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(m))
	}
	return words
}

// missingGoTests are commands of a block whose tests do not exist.
func missingGoTests(b block, tests string) (missing []string) {
	for _, line := range b.lines {
		m := regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*go test .*-run '\^(\w+)\$' \./(\S+)$`).FindStringSubmatch(line)
		if m == nil || !strings.Contains(tests, "func "+m[1]+"(") {
			missing = append(missing, line)
			continue
		}
		if _, err := os.Stat(filepath.Join(root, m[2])); err != nil {
			missing = append(missing, line)
		}
	}
	return missing
}

// missingFiles are words of a block that look like files of the project and are none.
func missingFiles(b block) (missing []string) {
	for _, word := range regexp.MustCompile(`(?:\./)?\b(?:cmd|deploy|scripts)/[\w./-]+`).FindAllString(b.text(), -1) {
		if _, err := os.Stat(filepath.Join(root, word)); err != nil {
			missing = append(missing, word)
		}
	}
	return missing
}

// TestAStaleBlockIsFound plants one of each kind.
func TestAStaleBlockIsFound(t *testing.T) {
	t.Parallel()
	of := func(language string, lines ...string) block { return block{language: language, lines: lines} }
	for _, good := range []block{
		of("sh", "sbx ls --stuck", "", "# as above", "sbx run --memory 1G -- sh -c 'a b'"), of("console", "$ sbx events a.jsonl --diff"), of("text", "sbx ls      all of them"),
	} {
		assert.Empty(t, misspelled(good), "%v", good.lines)
	}
	for _, stale := range []block{
		of("sh", "sbx ls --no-such-flag"), of("sh", "sbx lss"), of("sh", "sbx inspect"), of("console", "$ sbx ls", "NAME  REF"), of("text", "sbx ls", "prod/a running"), of("sh", "make it"),
	} {
		assert.NotEmpty(t, misspelled(stale), "%v", stale.lines)
	}
	tests := "func TestA(t *testing.T)"
	assert.Empty(t, missingGoTests(of("sh", "SBX_SEEDS=2 go test -count=1 -run '^TestA$' ./internal/cli"), tests))
	assert.NotEmpty(t, missingGoTests(of("sh", "go test -run '^TestB$' ./internal/cli"), tests))
	assert.NotEmpty(t, missingGoTests(of("sh", "go test -run '^TestA$' ./internal/none"), tests))
	assert.Empty(t, missingFiles(of("sh", "kubectl apply -f deploy/cron.yaml", "go install ./cmd/sbx")))
	assert.NotEmpty(t, missingFiles(of("sh", "kubectl apply -f deploy/none.yaml")))
}
