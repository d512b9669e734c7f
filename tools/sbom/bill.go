package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Bill is the part of CycloneDX 1.6 that a Go binary can answer for.
type Bill struct {
	BOMFormat   string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    Metadata    `json:"metadata"`
	Components  []Component `json:"components"`
}

// Metadata says which file the bill is about. Timestamp is the time of the
// commit (RFC 3339), absent when the binary does not know it.
type Metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component Component `json:"component"`
}

// Component is the program itself or one module linked into it.
type Component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []Hash     `json:"hashes,omitempty"`
	Properties []Property `json:"properties,omitempty"`
}

// Hash is a digest of a file, in lower-case hexadecimal.
type Hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

// Property is a fact that CycloneDX has no field for.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// read makes the bill of the binary in file.
func read(file string) (Bill, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return Bill{}, fmt.Errorf("%s is not a Go binary: %w", file, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Bill{}, err
	}
	bill := describe(info)
	sum := sha256.Sum256(content)
	bill.Metadata.Component.Hashes = []Hash{{Alg: "SHA-256", Content: hex.EncodeToString(sum[:])}}
	if bill.Metadata.Component.Name == "" {
		bill.Metadata.Component.Name = filepath.Base(file)
	}
	return bill, nil
}

// describe lists the modules in the order of the linker, which is sorted, and
// the standard library first: its faults concern the program as any other's.
func describe(info *debug.BuildInfo) Bill {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	program := Component{Type: "application", Name: info.Main.Path, Version: info.Main.Version}
	for _, key := range []string{"GOOS", "GOARCH", "vcs.revision"} {
		if value := settings[key]; value != "" {
			program.Properties = append(program.Properties, Property{Name: "go:" + key, Value: value})
		}
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := []Component{{Type: "library", Name: "std", Version: goVersion, PURL: "pkg:golang/std@" + goVersion}}
	for _, module := range info.Deps {
		components = append(components, library(module))
	}
	return Bill{
		BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata:   Metadata{Timestamp: settings["vcs.time"], Component: program},
		Components: components,
	}
}

// library describes one module; a replaced one is named by what replaces it.
// Its checksum is a property: go.sum's h1 is a digest of a list of files, not
// of one file, so a hash field would promise something else.
func library(module *debug.Module) Component {
	if module.Replace != nil {
		module = module.Replace
	}
	c := Component{
		Type: "library", Name: module.Path, Version: module.Version,
		PURL: "pkg:golang/" + module.Path + "@" + module.Version + "?type=module",
	}
	if module.Sum != "" {
		c.Properties = []Property{{Name: "go:sum", Value: module.Sum}}
	}
	return c
}
