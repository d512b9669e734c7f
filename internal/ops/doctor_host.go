package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// checkFiles reports which configuration files are read, also while one of them is broken.
func (e *Env) checkFiles(ctx context.Context) []Check {
	files, err := config.Paths(ctx, e.Input())
	if err != nil {
		return nil // the configuration itself says so
	}
	var rows []Check
	for _, f := range files {
		message, hint := f.Path+" is read", ""
		switch {
		case !f.Found:
			message, hint = f.Path+" is not there; nothing has to be configured", ""
		case f.Ignored != "":
			rows = append(rows, ToolCheck(string(f.Role)+" file", sandbox.False, f.Path+" is not read: "+f.Ignored,
				fmt.Sprintf("make it yours; or read it, then `%s config trust %s`", e.Process.Name(), f.Path)).AsWarning())
			continue
		case !f.Trusted:
			message = f.Path + " is read and may only narrow: nobody trusted its present content"
			hint = fmt.Sprintf("read it, then `%s config trust %s`", e.Process.Name(), f.Path)
		}
		rows = append(rows, ToolCheck(string(f.Role)+" file", sandbox.True, message, hint).AsNote())
	}
	return rows
}

// checkState says whether the state directory can be used.
func checkState(c *config.Config) Check {
	const check = "state directory"
	dir, err := c.State()
	if err != nil {
		return ToolCheck(check, sandbox.False, err.Error(), fault.HintOf(err))
	}
	return checkFolder(check, dir)
}

// checkFolder makes the folder and writes to it: a full disk, a foreign owner
// and a read-only file system show in no other way.
func checkFolder(check, folder string) Check {
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(folder, ".probe-*"); err == nil {
			_, err = probe.WriteString("x")
			err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return ToolCheck(check, sandbox.False, err.Error(), "make it yours to write, or name another with "+config.EnvStateDir)
	}
	return ToolCheck(check, sandbox.True, folder+" can be written", "")
}

// commonName is what people type; other tools carry the name too.
const commonName = "sbx"

// checkPath looks for other programs called sbx on PATH. One that comes first
// is what the shell runs instead of this one.
func (e *Env) checkPath() []Check {
	own, err := e.Program()
	if err != nil {
		return []Check{ToolCheck("name on PATH", sandbox.Unknown, "this program's own file is not known: "+err.Error(), "").AsNote()}
	}
	found := programsOnPath(e.Process.Getenv("PATH"))
	var rows []Check
	for i, path := range found {
		switch {
		case sameFile(path, own):
			continue
		case i == 0:
			rows = append(rows, ToolCheck("name on PATH", sandbox.False, fmt.Sprintf("%s is another program, and `%s` runs it instead of %s", path, commonName, own),
				"Docker Sandboxes has a command of that name; put this one first on PATH, or install it under another name: help and messages follow").AsWarning())
		default:
			rows = append(rows, ToolCheck("name on PATH", sandbox.True, path+" is another program of that name, later on PATH", "").AsNote())
		}
	}
	if len(rows) == 0 {
		return []Check{ToolCheck("name on PATH", sandbox.True, "no other program is called "+commonName, "")}
	}
	return rows
}

// programsOnPath lists the executables called sbx on PATH, each file once.
func programsOnPath(path string) []string {
	var found []string
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // it depends on the working directory
		}
		for _, name := range []string{commonName, commonName + ".exe"} {
			file := filepath.Join(folder, name)
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() || (info.Mode()&0o111 == 0 && filepath.Ext(name) == "") {
				continue
			}
			known := false
			for _, f := range found {
				known = known || sameFile(f, file)
			}
			if !known {
				found = append(found, file)
			}
		}
	}
	return found
}

func sameFile(a, b string) bool {
	left, err := os.Stat(a)
	if err != nil {
		return false
	}
	right, err := os.Stat(b)
	return err == nil && os.SameFile(left, right)
}
