package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// checkFiles tells which configuration files are read. It works while one of
// them is broken.
func (d *Deps) checkFiles(ctx context.Context) []views.CheckRow {
	files, err := config.Paths(ctx, d.Input())
	if err != nil {
		return nil // the configuration itself says so
	}
	var rows []views.CheckRow
	for _, f := range files {
		message, hint := f.Path+" is read", ""
		switch {
		case !f.Found:
			message, hint = f.Path+" is not there; nothing has to be configured", ""
		case f.Ignored != "":
			row := views.ToolCheck(string(f.Role)+" file", sandbox.False, f.Path+" is not read: "+f.Ignored,
				fmt.Sprintf("make it yours; or read it, then `%s config trust %s`", d.Process.Name(), f.Path))
			row.Minor = true
			rows = append(rows, row)
			continue
		case !f.Trusted:
			message = f.Path + " is read and may only narrow: nobody trusted its present content"
			hint = fmt.Sprintf("read it, then `%s config trust %s`", d.Process.Name(), f.Path)
		}
		rows = append(rows, views.ToolCheck(string(f.Role)+" file", sandbox.True, message, hint).Inform())
	}
	return rows
}

func soundConfig(c *config.Config) views.CheckRow {
	names := make([]string, len(c.Profiles))
	for i, p := range c.Profiles {
		names[i] = p.Name
	}
	return views.ToolCheck("configuration", sandbox.True, "is valid; profiles: "+strings.Join(names, ", "), "")
}

// looseSources are those that nobody asks, since their profile is not there.
func looseSources(c *config.Config) []views.CheckRow {
	var rows []views.CheckRow
	for _, s := range c.Loose() {
		rows = append(rows, views.ToolCheck(s.Name, sandbox.Unknown, "is attached to "+s.Settings[providers.OptionAttach]+", which is not there in this run",
			"switch that profile on, or attach it to another").Inform())
	}
	return rows
}

// halfSwitched names the types of which some variables are set and others are not, so
// that no profile came of them, and nothing else says so.
func (d *Deps) halfSwitched(c *config.Config) []views.CheckRow {
	var rows []views.CheckRow
	for _, t := range d.Types {
		var set, unset []string
		for _, name := range t.SwitchedOn {
			if d.Process.Getenv(name) == "" {
				unset = append(unset, name)
			} else {
				set = append(set, name)
			}
		}
		there := slices.ContainsFunc(c.Profiles, func(p config.Profile) bool { return p.Type == t.Name })
		if len(set) == 0 || len(unset) == 0 || there {
			continue
		}
		rows = append(rows, views.ToolCheck(t.Name, sandbox.False, strings.Join(set, " and ")+" is set and makes no profile: "+strings.Join(unset, " and ")+" missing",
			"set what is missing too, or configure a profile of type "+t.Name).Inform()) // the token may be there for something else
	}
	return rows
}

// brokenConfig is a row for every mistake.
func brokenConfig(err error) []views.CheckRow {
	var rows []views.CheckRow
	for _, mistake := range ops.Mistakes(err) {
		rows = append(rows, views.ToolCheck("configuration", sandbox.False, mistake.Error(), fault.HintOf(mistake)))
	}
	return rows
}

// checkState says whether the state directory can be used.
func checkState(c *config.Config) views.CheckRow {
	const check = "state directory"
	dir, err := c.State()
	if err != nil {
		return views.ToolCheck(check, sandbox.False, err.Error(), fault.HintOf(err))
	}
	return checkFolder(check, dir)
}

// checkFolder makes the folder and writes to it: a full disk, a foreign owner
// and a read-only file system show in no other way.
func checkFolder(check, folder string) views.CheckRow {
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(folder, ".probe-*"); err == nil {
			_, err = probe.WriteString("x")
			err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return views.ToolCheck(check, sandbox.False, err.Error(), "make it yours to write, or name another with "+config.EnvStateDir)
	}
	return views.ToolCheck(check, sandbox.True, folder+" can be written", "")
}

// commonName is what people type; other tools carry the name too.
const commonName = "sbx"

// checkPath looks for other programs called sbx on PATH. One that comes first
// is what the shell runs instead of this one.
func (d *Deps) checkPath() []views.CheckRow {
	own, err := d.Program()
	if err != nil {
		return []views.CheckRow{views.ToolCheck("name on PATH", sandbox.Unknown, "this program's own file is not known: "+err.Error(), "").Inform()}
	}
	found := programs(d.Process.Getenv("PATH"))
	var rows []views.CheckRow
	for i, path := range found {
		switch {
		case sameFile(path, own):
			continue
		case i == 0:
			row := views.ToolCheck("name on PATH", sandbox.False, fmt.Sprintf("%s is another program, and `%s` runs it instead of %s", path, commonName, own),
				"Docker Sandboxes has a command of that name; put this one first on PATH, or install it under another name: help and messages follow")
			row.Minor = true
			rows = append(rows, row)
		default:
			rows = append(rows, views.ToolCheck("name on PATH", sandbox.True, path+" is another program of that name, later on PATH", "").Inform())
		}
	}
	if len(rows) == 0 {
		return []views.CheckRow{views.ToolCheck("name on PATH", sandbox.True, "no other program is called "+commonName, "")}
	}
	return rows
}

// programs lists the executables called sbx on PATH, each file once.
func programs(path string) []string {
	var found []string
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // depends on where one stands
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
