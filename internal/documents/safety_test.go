package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const safetyPage = "../../docs/SAFETY.md"

// testFiles are the texts of all files below internal that hold tests, by their path.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") && (!strings.HasSuffix(path, ".go") || !strings.Contains(path, "testkit")) {
			return err
		}
		raw, err := os.ReadFile(path)
		texts[filepath.ToSlash(path)] = string(raw)
		return err
	}))
	return texts
}

// claimMarks are the parts of the page of safety that name tests: comments, and the last cells of the table of rules.
func claimMarks(page string) []string {
	var marks []string
	for _, m := range regexp.MustCompile(`(?s)<!-- test: (.*?) -->`).FindAllStringSubmatch(page, -1) {
		marks = append(marks, m[1])
	}
	_, table, _ := strings.Cut(page, "| rule | enforced in | tested by |\n|---|---|---|\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "|"), "|")
		marks = append(marks, cells[len(cells)-1])
	}
	return marks
}

// missingTests are the names in a mark that nothing has: `room` `TestX` "a case of it", `a_check_of_providertest`, script `name`.
func missingTests(mark string, files map[string]string) (missing []string, named int) {
	room, script := "", false
	for _, m := range regexp.MustCompile(`"[^"]+"|[A-Za-z]\w*|;`).FindAllString(mark, -1) {
		found := func(text string, rooms ...string) bool {
			for path, body := range files {
				in := len(rooms) == 0 || rooms[0] == ""
				for _, r := range rooms {
					in = in || strings.HasSuffix(filepath.ToSlash(filepath.Dir(path)), "/"+r)
				}
				if in && strings.Contains(body, text) {
					return true
				}
			}
			return false
		}
		var ok bool
		switch {
		case m == ";":
			room, script = "", false
			continue
		case m[0] == '"':
			ok = found(strings.TrimSuffix(strings.TrimSuffix(m, `"`), "..."), room)
		case regexp.MustCompile(`^(Test|Fuzz)[A-Z]`).MatchString(m):
			named++
			ok = found("func "+m+"(", room)
		case strings.Contains(m, "_"):
			named++
			ok = found(`"`+m+`"`, "providertest")
		case m == "script" || m == "scripts":
			script = true
			continue
		case script:
			named++
			_, err := os.Stat(filepath.Join("..", "cli", "testdata", "script", m+".txtar"))
			ok = err == nil
		default:
			room = m
			continue
		}
		if !ok {
			missing = append(missing, strings.TrimSpace(room+" "+m))
		}
	}
	return missing, named
}

// TestThePageOfSafetyNamesTests finds what docs/SAFETY.md names as a test and does not exist, and each paragraph, row and
// entry with a word that allows no exception and without a test.
func TestThePageOfSafetyNamesTests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(safetyPage)
	require.NoError(t, err)
	page, files := string(raw), testFiles(t)
	marks := claimMarks(page)
	require.Greater(t, len(marks), 60, "the table of rules was not found")
	for _, mark := range marks {
		missing, named := missingTests(mark, files)
		assert.Empty(t, missing, "nothing has this name")
		assert.NotZero(t, named, "%q names no test", mark)
	}
	for _, claim := range untestedClaims(page) {
		t.Errorf("put <!-- test: room TestName --> behind it, or take it back: %s", claim)
	}
}

func untestedClaims(page string) (claims []string) {
	head, rest, _ := strings.Cut(page, "| rule | enforced in | tested by |")
	absolute := regexp.MustCompile(`(?i)\b(never|always|only|all|nothing|nobody|none|no|every|each|cannot)\b`)
	_, schedules, _ := strings.Cut(rest, "\n\n")
	if before, generated, found := strings.Cut(head, "<!-- begin: "); found {
		_, after, _ := strings.Cut(generated, "<!-- end: ")
		head = before + "\n\nAll of the table.\n<!-- end: " + after // its test stands right behind it
	}
	for _, part := range regexp.MustCompile(`\n\n|\n(?:- |\|)`).Split(head+"\n\n"+schedules, -1) {
		text := regexp.MustCompile(`(?m)^#.*$|(?s)<!--.*?-->|`+"`[^`]*`").ReplaceAllString(part, "")
		if absolute.MatchString(text) && !strings.Contains(part, "<!-- test: ") {
			claims = append(claims, part)
		}
	}
	return claims
}

func TestMissingTestsAreFound(t *testing.T) {
	t.Parallel()
	files := map[string]string{"../fleet/a_test.go": "func TestA(t", "../testkit/providertest/b.go": `"one_check"`, "../task/c_test.go": `func TestC(t "a case": {`}
	for mark, want := range map[string][]string{
		"`fleet` `TestA`; `task` `TestC` \"a case\"; `providertest` `one_check`": nil,
		"fleet TestGone":                  {"fleet TestGone"},
		"`task` `TestA`":                  {"task TestA"},
		"`task` `TestC` \"another case\"": {`task "another case"`},
		"`providertest` `gone_check`":     {"providertest gone_check"},
		"script `thereisnone`":            {"thereisnone"},
	} {
		missing, _ := missingTests(mark, files)
		assert.Equal(t, want, missing, mark)
	}
	assert.Len(t, untestedClaims("# T\n\nIt never ends.\n\nIt never ends. <!-- test: fleet TestA -->\n\n- one\n- all of it\n\n| rule | enforced in | tested by |\n"), 2)
}
