package main

import (
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The suffix keeps the uses out of this module's own build.
//
//go:embed uses/*.go.txt
var files embed.FS

// use is one library as the product uses it.
type use struct {
	name   string // "cobra"
	module string // "github.com/spf13/cobra"
	source string // a file of package main that declares call
	call   string // "useCobra"
}

// uses reads the embedded files, in the order of their names.
func uses() ([]use, error) {
	entries, err := files.ReadDir("uses")
	if err != nil {
		return nil, err
	}
	list := make([]use, 0, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("uses", entry.Name()))
		if err != nil {
			return nil, err
		}
		u, err := parseUse(strings.TrimSuffix(entry.Name(), ".go.txt"), string(text))
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

// parseUse reads a file whose first line says which module it measures and
// which declares the function useName.
func parseUse(name, source string) (use, error) {
	first, _, _ := strings.Cut(source, "\n")
	module, ok := strings.CutPrefix(first, "// measures ")
	if !ok {
		return use{}, fmt.Errorf("uses/%s: the first line must be `// measures MODULE`", name)
	}
	call := "use" + strings.ToUpper(name[:1]) + name[1:]
	if !strings.Contains(source, "func "+call+"()") {
		return use{}, fmt.Errorf("uses/%s: no function %s()", name, call)
	}
	return use{name: name, module: strings.TrimSpace(module), source: source, call: call}, nil
}

// required reads module -> version from the go.mod in root, the direct
// dependencies and the indirect ones.
func required(root string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	return parseRequired(string(text)), nil
}

func parseRequired(text string) map[string]string {
	versions := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions
}
