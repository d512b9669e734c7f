package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryUseParsesAndNamesARequiredModule(t *testing.T) {
	t.Parallel()
	list, err := uses()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := required(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no uses are embedded")
	}
	for _, u := range list {
		if _, err := parser.ParseFile(token.NewFileSet(), u.name, u.source, 0); err != nil {
			t.Errorf("%s: %v", u.name, err)
		}
		if versions[u.module] == "" {
			t.Errorf("%s measures %s, which go.mod does not require", u.name, u.module)
		}
	}
}

func TestParseUseRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ source, want string }{
		"no module":   {"package main\n\nfunc useX() {}\n", "first line"},
		"no function": {"// measures example.com/x\npackage main\n", "no function useX()"},
	} {
		if _, err := parseUse("x", tc.source); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: want an error with %q, got %v", name, tc.want, err)
		}
	}
}

func TestParseRequired(t *testing.T) {
	t.Parallel()
	got := parseRequired("module sbx\n\ngo 1.26.0\n\nrequire example.com/one v1.0.0\nrequire (\n\texample.com/two v2.1.0 // indirect\n)\n")
	if len(got) != 2 || got["example.com/one"] != "v1.0.0" || got["example.com/two"] != "v2.1.0" {
		t.Errorf("got %v", got)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []time.Duration
		want   time.Duration
	}{{nil, 0}, {[]time.Duration{3}, 3}, {[]time.Duration{9, 1, 5}, 5}, {[]time.Duration{4, 1}, 4}} {
		if got := median(tc.values); got != tc.want {
			t.Errorf("median of %v: want %d, got %d", tc.values, tc.want, got)
		}
	}
}

func TestParseAnonymous(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{
		"VmRSS:\t 2188 kB\nRssAnon:\t     740 kB\nRssFile:\t 1 kB\n": 740,
		"VmRSS:\t 2188 kB\n":   -1,
		"RssAnon:\t many kB\n": -1,
		"":                     -1,
	} {
		if got := parseAnonymous(status); got != want {
			t.Errorf("%q: want %d, got %d", status, want, got)
		}
	}
}

// A made-up library of this module's own stands for a dependency: it is one
// constant of a megabyte that nothing else links.
func TestMeasureSeesWhatAUseAdds(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/p\n\ngo 1.26.0\n", "go.sum": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := newBench(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	heavy := use{name: "heavy", module: "example.com/heavy", call: "useHeavy", source: "package main\n\nfunc useHeavy() { println(heavy[len(heavy)/2:]) }\n\nconst heavy = \"" + strings.Repeat("0123456789abcdef", 1<<16) + "\"\n"}
	light := use{name: "light", module: "example.com/light", call: "useLight", source: "package main\n\nfunc useLight() { println(1) }\n"}
	r, err := measure(b, []use{light, heavy}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if first := r.rows[0]; first.use.name != "heavy" || first.alone < 1_000_000 || first.onTop < 1_000_000 {
		t.Errorf("the heavy one is seen as %s, alone %d, on top %d", first.use.name, first.alone, first.onTop)
	}
	if last := r.rows[1]; last.alone > 100_000 {
		t.Errorf("the light one adds %d bytes", last.alone)
	}
	var out bytes.Buffer
	r.print(&out, map[string]string{"example.com/heavy": "v1.0.0"})
	for _, want := range []string{"| example.com/heavy | v1.0.0 | 1.", "| example.com/light | - | 0.", "Bare program:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}
