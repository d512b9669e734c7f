package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The suffix keeps the programs out of this module's own build.
//
//go:embed probe/main.go.txt bare/main.go.txt loop/main.go.txt
var sources embed.FS

// programs are the built binaries.
type programs struct{ sbx, probe, bare, loop string }

// build makes the product as a release does, and beside it the programs of this
// tool: bare for what a start costs, probe for calls without one, loop for what
// reading pages costs.
func build(root, dir string) (programs, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return programs{}, err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	p := programs{sbx: in("sbx"), probe: in("probe"), bare: in("bare"), loop: in("loop")}
	if err := link(root, p.sbx, "./cmd/sbx"); err != nil {
		return p, err
	}
	for name, out := range map[string]string{"probe": p.probe, "bare": p.bare, "loop": p.loop} {
		overlay, err := lay(root, dir, name)
		if err != nil {
			return p, err
		}
		if err := link(root, out, "./cmd/perf-"+name, "-overlay", overlay); err != nil {
			return p, err
		}
	}
	return p, nil
}

// lay makes a source of this tool appear in the product's module, where it may
// import the product's rooms, without a file there.
func lay(root, dir, name string) (string, error) {
	text, err := sources.ReadFile(name + "/main.go.txt")
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, name+".go")
	if err := os.WriteFile(source, text, 0o600); err != nil {
		return "", err
	}
	raw, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, "cmd", "perf-"+name, "main.go"): source},
	})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, name+".json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}

func link(root, out, pkg string, more ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out}, append(more, pkg)...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, bytes.TrimSpace(text))
	}
	return nil
}
