package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	bill := describe(&debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "sbx", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v0.1.0", Sum: "h1:abc="},
			{Path: "example.com/old", Version: "v9.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "vcs.time", Value: "2026-11-20T10:00:00Z"}, {Key: "vcs.revision", Value: "abc123"}},
	})
	for name, tc := range map[string]struct{ got, want string }{
		"format":             {bill.BOMFormat + " " + bill.SpecVersion, "CycloneDX 1.6"},
		"time is the commit": {bill.Metadata.Timestamp, "2026-11-20T10:00:00Z"},
		"program":            {bill.Metadata.Component.Name + " " + bill.Metadata.Component.Version, "sbx v1.2.3"},
		"system":             {bill.Metadata.Component.Properties[0].Value, "linux"},
		"commit":             {bill.Metadata.Component.Properties[1].Value, "abc123"},
		"standard library":   {bill.Components[0].PURL, "pkg:golang/std@1.26.8"},
		"module":             {bill.Components[1].PURL, "pkg:golang/example.com/a@v0.1.0?type=module"},
		"checksum":           {bill.Components[1].Properties[0].Value, "h1:abc="},
		"replaced module":    {bill.Components[2].PURL, "pkg:golang/example.com/new@v2.0.0?type=module"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: want %q, got %q", name, tc.want, tc.got)
		}
	}
	if len(bill.Components) != 3 {
		t.Errorf("want 3 components, got %d", len(bill.Components))
	}
}

func TestRunOnThisBinaryTwiceGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bill.json")
	if err := run([]string{self, file}, nil); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var second bytes.Buffer
	if err := run([]string{self}, &second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second.Bytes()) {
		t.Error("two bills of one binary differ")
	}
	var bill Bill
	if err := json.Unmarshal(first, &bill); err != nil {
		t.Fatal(err)
	}
	if got := bill.Metadata.Component; got.Name != "sbx/tools/sbom" || len(got.Hashes) != 1 || len(got.Hashes[0].Content) != 64 {
		t.Errorf("the program is described as %+v", got)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no argument":  {nil, "usage"},
		"too many":     {[]string{"a", "b", "c"}, "usage"},
		"missing":      {[]string{text + ".none"}, "no such file"},
		"not a binary": {[]string{text}, "is not a Go binary"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(tc.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}
