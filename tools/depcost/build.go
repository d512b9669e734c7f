package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// bench is a folder with the product's go.mod in which programs are built.
type bench struct{ dir string }

func newBench(root, dir string) (bench, error) {
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return bench{}, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return bench{}, err
		}
	}
	return bench{dir: dir}, nil
}

// program is a built binary: its path, its bytes and the modules linked.
type program struct {
	path    string
	bytes   int64
	modules int
}

// build links the given uses, static and stripped as a release is. The calls
// are linked but not made, so a start of the program costs only what the
// libraries do while they initialise.
func (b bench) build(name string, list []use) (program, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return program{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(mainSource(list)), 0o600); err != nil {
		return program{}, err
	}
	for _, u := range list {
		if err := os.WriteFile(filepath.Join(dir, u.name+".go"), []byte(u.source), 0o600); err != nil {
			return program{}, err
		}
	}
	return b.link(name)
}

func (b bench) link(name string) (program, error) {
	out := filepath.Join(b.dir, name, "program")
	cmd := exec.Command("go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, "./"+name)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return program{}, fmt.Errorf("build %s: %w: %s", name, err, bytes.TrimSpace(text))
	}
	stat, err := os.Stat(out)
	if err != nil {
		return program{}, err
	}
	info, err := buildinfo.ReadFile(out)
	if err != nil {
		return program{}, err
	}
	return program{path: out, bytes: stat.Size(), modules: len(info.Deps)}, nil
}

// mainSource is a program that prints its own status as the kernel sees it; it
// would call the uses if it were started with more than one argument.
func mainSource(list []use) string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tstatus, _ := os.ReadFile(\"/proc/self/status\")\n\tfmt.Printf(\"%s\", status)\n\tswitch len(os.Args) {\n")
	for i, u := range list {
		b.WriteString("\tcase " + strconv.Itoa(i+2) + ":\n\t\t" + u.call + "()\n")
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// start runs the program once and returns how long the whole process took.
func (p program) start() (time.Duration, error) {
	begin := time.Now()
	err := exec.Command(p.path).Run()
	return time.Since(begin), err
}

// anonymous starts the program once and returns its anonymous resident memory
// in KiB, -1 where the kernel does not tell (anything but Linux).
func (p program) anonymous() (int, error) {
	status, err := exec.Command(p.path).Output()
	if err != nil {
		return -1, err
	}
	return parseAnonymous(string(status)), nil
}

func parseAnonymous(status string) int {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "RssAnon:")
		if !ok {
			continue
		}
		if kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB"))); err == nil {
			return kib
		}
	}
	return -1
}
