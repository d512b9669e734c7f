package main

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestSourcesParse(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"probe", "bare", "loop"} {
		text, err := sources.ReadFile(name + "/main.go.txt")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
			t.Error(err)
		}
	}
}

func TestMedianAndRatios(t *testing.T) {
	t.Parallel()
	for want, values := range map[float64][]float64{0: nil, 3: {3}, 2: {1, 2}, 5: {9, 1, 5}} {
		kept := slices.Clone(values)
		if got := median(values); got != want {
			t.Errorf("median of %v is %v", values, got)
		}
		if !slices.Equal(kept, values) {
			t.Errorf("median reorders what it was given: %v", values)
		}
	}
	if got := ratios([]float64{4, 9, 1}, []float64{2, 3, 0}); !slices.Equal(got, []float64{2, 3}) {
		t.Error(got)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	var tab table
	tab.add("x", "8", "ms", 1.234, 12.34, 123.4)
	tab.add("y", "", "KiB", 7)
	tab.print(&b)
	for _, want := range []string{"| x | 8 | 1.23 | 12.3 | 123 | ms | 3 |\n", "| y | - | 7 | 7 | 7 | KiB | 1 |\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestOnlyRequestsAndMemoryFail: a figure without a limit is reported, however bad it is.
func TestOnlyRequestsAndMemoryFail(t *testing.T) {
	t.Parallel()
	slow := guard{what: "x: wall", target: "1.3", unit: "times", values: []float64{9, 8, 7}}
	enough := guard{what: "requests", unit: "requests", limit: 6.5, values: []float64{6, 6, 9}}
	many := guard{what: "y: requests", target: "1.2", unit: "requests", limit: 6.5, values: []float64{6, 7, 9}}
	var b bytes.Buffer
	if err := printGuards(&b, []guard{slow, enough}); err != nil {
		t.Error(err)
	}
	if err := printGuards(&b, []guard{slow, many}); err == nil || err.Error() != "y: requests: 7 requests instead of at most 6.50" {
		t.Error(err)
	}
	for _, want := range []string{"| x: wall | 1.3 | 7 | 8 | times | reported |\n", "| requests | - | 6 | 6 | requests | at most 6.50 |\n", "| y: requests | 1.2 | 6 | 7 | requests | RED: more than 6.50 |\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestStatusField(t *testing.T) {
	t.Parallel()
	text := "Name:\tsbx\nRssAnon:\t    2048 kB\nEmpty:\nWord:\tx\nnonvoluntary_ctxt_switches:\t5\nvoluntary_ctxt_switches:\t3\n"
	for name, want := range map[string]float64{"RssAnon": 2048, "voluntary_ctxt_switches": 3, "nonvoluntary_ctxt_switches": 5} {
		if got, ok := statusField(text, name); !ok || got != want {
			t.Errorf("%s is %v (%v)", name, got, ok)
		}
	}
	for _, name := range []string{"Rss", "Empty", "Word", "Absent"} {
		if got, ok := statusField(text, name); ok {
			t.Errorf("%s is %v", name, got)
		}
	}
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	l, err := newLibrary(time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	get := func(target string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		l.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
		return w
	}
	ids := map[string]bool{}
	token, pages := "", 0
	for more := true; more; pages++ {
		w := get("/500/v2/sandboxes?limit=100&nextToken=" + token)
		var page []struct{ SandboxID string }
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
			t.Fatal(w.Code, err)
		}
		for _, row := range page {
			ids[row.SandboxID] = true
		}
		token = w.Header().Get("X-Next-Token")
		more = token != ""
	}
	if pages != 5 || len(ids) != 500 {
		t.Errorf("%d pages with %d sandboxes", pages, len(ids))
	}
	for _, target := range []string{"/500/v2/sandboxes", "/500/v2/sandboxes?limit=100&nextToken=5", "/150/v2/sandboxes?limit=100", "/500/other?limit=100", "/"} {
		if w := get(target); w.Code < 400 {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	got, err := count(iotest.OneByteReader(strings.NewReader("id: 1, id: 2, id")), "id:", time.Now())
	if err != nil || got.marks != 2 || got.first > got.last {
		t.Errorf("%+v %v", got, err)
	}
	got, err = count(strings.NewReader("a\nb\n\n"), "\n", time.Now())
	if err != nil || got.marks != 3 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := count(iotest.ErrReader(os.ErrDeadlineExceeded), "x", time.Now()); err == nil {
		t.Error("an output that breaks off was counted")
	}
}

func TestOwnStatus(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc:", err)
	}
	if kib, err := anonymous(os.Getpid()); err != nil || kib <= 0 {
		t.Error(kib, err)
	}
	if n, err := switches(os.Getpid()); err != nil || n <= 0 {
		t.Error(n, err)
	}
	if ms, err := onProcessor(os.Getpid()); err != nil || ms <= 0 {
		t.Error(ms, err)
	}
	if _, err := switches(1 << 30); err == nil {
		t.Error("a process that is not there was counted")
	}
}

func TestParseFigures(t *testing.T) {
	t.Parallel()
	got, err := parseFigures("create 1.5\nkill 2\ncreate 3\n")
	if err != nil || !slices.Equal(got["create"], []float64{1.5, 3}) || !slices.Equal(got["kill"], []float64{2}) {
		t.Error(got, err)
	}
	for _, text := range []string{"create", "create x", " 1"} {
		if got, err := parseFigures(text); err == nil && len(got) == 0 {
			t.Errorf("%q became %v", text, got)
		}
	}
	if _, err := parseFigures("create x\n"); err == nil {
		t.Error("a word was taken for a figure")
	}
}
