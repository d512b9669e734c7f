package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plant writes a module and gives its folder.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module example.com/planted\n\ngo 1.26.0\n"
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func planted(t *testing.T) string {
	t.Helper()
	return plant(t, map[string]string{
		"internal/shop/till.go": `package shop

import "example.com/planted/internal/stock"

// Pay uses a function and a method of goods.go, and the declarations of another room.
func Pay() int { g := newGoods(); return g.price() + stock.Count() + stock.Shelf{}.Height() }
`,
		"internal/shop/goods.go": `package shop

type goods struct{ label label; count }
type count interface{ total() int }

func newGoods() *goods { return &goods{} }
func (g *goods) price() int { return g.label.cents }
`,
		"internal/shop/label.go": `package shop

type label struct{ cents int }

var printed = Pay() // back to the till
`,
		"internal/shop/fields.go": `package shop

func sum(all []struct{ cents int }) (n int) {
	for _, one := range all {
		n += one.cents
	}
	return n
}
`,
		"internal/shop/owner.go":         "package shop\n\nfunc owner() int { return sum(nil) + Pay() + Pay() }\n",
		"internal/shop/shop_test.go":     "package shop\n\nfunc ofTests() int { return owner() }\n",
		"internal/shop/shop_windows.go":  "package shop\n\nfunc onlyThere() {}\n",
		"internal/stock/label.go":        "package stock\n\n// Count is in a file of a name that another room has, too.\nfunc Count() int { return 1 }\n\n// Shelf has a method.\ntype Shelf struct{}\n\n// Height is one.\nfunc (Shelf) Height() int { return 1 }\n",
		"internal/testkit/shoptest/t.go": "package shoptest\n\nfunc Stage() int { return 1 }\n",
		"internal/checks/c_test.go":      "package checks\n",
		"cmd/shop/main.go":               "package main\n\nimport \"example.com/planted/internal/shop\"\n\nfunc main() { shop.Pay() }\n",
	})
}

func TestArrowsOfAPlantedRoom(t *testing.T) {
	t.Parallel()
	rooms, err := loadRooms(planted(t), []string{"internal/shop/"})
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) != 1 || rooms[0].name != "internal/shop" {
		t.Fatalf("got %+v", rooms)
	}
	got := map[string][]string{}
	for from, to := range arrowsOf(rooms[0]) {
		got[from] = slices.Sorted(maps.Keys(to))
	}
	want := map[string][]string{
		"fields.go": nil, // its own struct has a field like one of another file
		"goods.go":  {"label.go"},
		"label.go":  {"till.go"},
		"owner.go":  {"fields.go", "till.go"},
		"till.go":   {"goods.go"}, // stock/label.go is no file of this room
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("want %v, got %v", want, got)
	}
}

func TestFiguresOfPlantedRooms(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := runTool([]string{"-C", planted(t), "-json"}, &out); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rooms) != 3 || r.Total == nil {
		t.Fatalf("got %s", out.String())
	}
	i := slices.IndexFunc(r.Rooms, func(f figures) bool { return f.Room == "internal/shop" })
	shop := r.Rooms[i]
	if shop.Files != 6 || shop.Functions != 5 || shop.Unexported != 4 || shop.CodeLines >= shop.Lines || shop.OneWord != 3 || shop.Shared != 0 || shop.Arrows != 5 || shop.Upward != 1 || shop.InCircles != 3 {
		t.Errorf("got %+v", shop)
	}
	if want := [][2]string{{"till.go", "goods.go"}}; !slices.Equal(shop.Back, want) {
		t.Errorf("upward: want %v, got %v", want, shop.Back)
	}
	if shop.TestLines != 3 || shop.Exported != 1 || r.Total.TestLines != 7 || r.Total.Exported != 4 {
		t.Errorf("tests and exported names: got %+v and %+v", shop, *r.Total)
	}
	if r.Total.Files != 8 || r.Total.Functions != 7 || r.Total.Arrows != 5 {
		t.Errorf("got %+v", *r.Total)
	}
	out.Reset()
	if err := runTool([]string{"-C", planted(t), "-room", "internal/shop", "-arrows"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| internal/shop | 6 | ", " | 5 | 4 | 3 (75 %) | 0 (0 %) | 5 | 1 (20 %) | 3 |\n", "internal/shop: till.go uses goods.go\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "total") {
		t.Errorf("one room has no total:\n%s", out.String())
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	t.Parallel()
	broken := plant(t, map[string]string{"internal/x/x.go": "package x\n\nfunc f() { g() }\n"})
	for name, args := range map[string][]string{
		"no such room":     {"-C", planted(t), "-room", "internal/none"},
		"no such module":   {"-C", t.TempDir()},
		"does not compile": {"-C", broken},
	} {
		if err := runTool(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// draw makes a graph of words such as "a>b".
func draw(arrows string) graph {
	g := graph{}
	for arrow := range strings.FieldsSeq(arrows) {
		from, to, _ := strings.Cut(arrow, ">")
		g.add(from, to)
	}
	return g
}

func TestUpward(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arrows  string
		upward  int
		circles int
		order   string // "" = any
	}{
		"nothing":                    {},
		"itself":                     {arrows: "a>a"},
		"a tree against the letters": {arrows: "z>y z>x y>b x>b b>a", order: "z y x b a"},
		"two that use each other":    {arrows: "a>b b>a", upward: 1, circles: 2},
		"a ring":                     {arrows: "a>b b>c c>d d>a", upward: 1, circles: 4},
		"two rings with a bridge":    {arrows: "a>b b>a c>d d>c b>c", upward: 2, circles: 4},
		"many to one and one back":   {arrows: "a>x b>x c>x d>x x>a", upward: 1, circles: 2},
		"a hub both ways":            {arrows: "a>x b>x c>x x>a x>b x>c", upward: 3, circles: 4},
		"all of three":               {arrows: "a>b b>a a>c c>a b>c c>b", upward: 3, circles: 3},
		"an order with one back":     {arrows: "a>b a>c a>d b>c b>d c>d d>a", upward: 1, circles: 4, order: "a b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := draw(tc.arrows)
			circles := 0
			for _, group := range components(g) {
				if len(group) > 1 {
					circles += len(group)
				}
			}
			if back := upward(g); len(back) != tc.upward || circles != tc.circles {
				t.Errorf("want %d upward and %d in circles, got %v and %d", tc.upward, tc.circles, back, circles)
			}
			got := order(g)
			if tc.order != "" && strings.Join(got, " ") != tc.order {
				t.Errorf("want the order %s, got %v", tc.order, got)
			}
			if again := order(draw(tc.arrows)); !slices.Equal(got, again) {
				t.Errorf("two orders: %v, %v", got, again)
			}
			if len(got) != len(g) {
				t.Errorf("%d of %d files have a place", len(got), len(g))
			}
		})
	}
}

func TestCodeLines(t *testing.T) {
	t.Parallel()
	text := "// Package p.\npackage p\n\n/* two\nlines */\nvar a = `x\n\ny` // one\n\nfunc f() {\n\t// nothing\n}\n"
	if got := codeLines([]byte(text)); got != 6 {
		t.Errorf("got %d", got)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	names := []string{"add", "Add", "addAll", "add2", "add_all", "é", "add", "add", "Name", "Name"}
	if got := oneWord(names); got != 5 {
		t.Errorf("one word: got %d", got)
	}
	if got := shared(names); got != 3 {
		t.Errorf("shared: got %d", got)
	}
}
