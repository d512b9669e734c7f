package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

const list = `version: 2
project_name: sbx
builds:
  - {main: ./cmd/sbx, binary: bin/sbx, goos: [linux, windows], goarch: [amd64], flags: [-trimpath], ldflags: [-s, -w]}
archives:
  - builds_info: {mode: 0755}
    files:
      - {src: "*.md", dst: share/doc/sbx, strip_parent: true, info: {mode: 0644}}
      - {src: 'unit{{ if ne .Os "linux" }}no{{ end }}*', dst: lib/systemd, strip_parent: true, info: {mode: 0644}}
      - {src: a.md, dst: share/other/name, info: {mode: 0644}}
nfpms:
  - package_name: sbx
    maintainer: '{{ envOrDefault "MAINTAINER" "a <a@b>" }}'
    license: Apache-2.0
    description: d
    bindir: /usr
    rpm: {buildhost: localhost}
    contents:
      - {src: "*.md", dst: /usr/share/doc/sbx, file_info: {mode: 0644}}
      - {src: unit.service, dst: /usr/lib/systemd/unit.service, file_info: {mode: 0644}}
      - {src: unit.service, dst: /usr/share/deb, packager: deb, file_info: {mode: 0644}}
`

// stage makes the folder in which the list is and enters it.
func stage(t *testing.T, platform string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"list": list, "sbx": "binary", "a.md": "a", "b.md": "b", "unit.service": "u"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"VERSION": "1.2.4~rc.1", "OS": platform, "ARCH": "amd64", "BINARY": "sbx", "SOURCE_DATE_EPOCH": "1700000000"} {
		t.Setenv(name, value)
	}
}

func pack(t *testing.T, format, out string) []byte {
	t.Helper()
	named := map[string]string{"deb": "sbx_1.2.4~rc.1_amd64.deb", "rpm": "sbx-1.2.4~rc.1-1.x86_64.rpm"}
	args := []string{"list", format, out}
	if named[format] != "" {
		args[2], out = ".", named[format]
	}
	if err := run(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEqualInputGivesEqualBytes(t *testing.T) {
	stage(t, "linux")
	for _, format := range []string{"deb", "rpm", "tar.gz", "zip"} {
		first := pack(t, format, "x."+format)
		for _, name := range []string{"sbx", "a.md"} { // another checkout: its time, and the modes of its umask
			if err := errors.Join(os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0)), os.Chmod(name, 0o660)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first, pack(t, format, "x."+format)) {
			t.Errorf("two of %s differ", format)
		}
	}
}

func TestArchivesHaveTheFilesOfTheList(t *testing.T) {
	stage(t, "linux")
	unpacked, err := gzip.NewReader(bytes.NewReader(pack(t, "tar.gz", "sbx_1.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %o %d", h.Name, h.Mode, h.ModTime.Unix()))
	}
	if want := []string{
		"sbx_1/bin/sbx 755 1700000000", "sbx_1/lib/systemd/unit.service 644 1700000000",
		"sbx_1/share/doc/sbx/a.md 644 1700000000", "sbx_1/share/doc/sbx/b.md 644 1700000000", "sbx_1/share/other/name 644 1700000000",
	}; !slices.Equal(names, want) {
		t.Errorf("want %q, got %q", want, names)
	}

	t.Setenv("OS", "windows")
	text := pack(t, "zip", "sbx_1.zip")
	r, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	names = nil
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	if want := []string{"sbx_1/bin/sbx.exe", "sbx_1/share/doc/sbx/a.md", "sbx_1/share/doc/sbx/b.md", "sbx_1/share/other/name"}; !slices.Equal(names, want) {
		t.Errorf("without systemd: want %q, got %q", want, names)
	}
}

func TestTargetsAndFlags(t *testing.T) {
	stage(t, "linux")
	for word, want := range map[string]string{"targets": "linux/amd64\nwindows/amd64\n", "flags": "-trimpath\n-ldflags=-s -w\n"} {
		var out strings.Builder
		if err := run([]string{"list", word}, &out); err != nil || out.String() != want {
			t.Errorf("%s: want %q, got %q, %v", word, want, out.String(), err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	stage(t, "linux")
	for name, text := range map[string]string{
		"unknown": list + "nfpm: []\n", "more": strings.Replace(list, `"a <a@b>"`, "(env 1)", 1),
		"missing": strings.Replace(list, "src: a.md", "src: none.md", 1),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, args := range map[string][]string{
		"usage": {"list"}, "no such file or directory": {"none", "deb", "x"}, `no format "cab"`: {"list", "cab", "x.cab"},
		"field nfpm not found": {"unknown", "targets"}, `function "env" not defined`: {"more", "deb", "."}, "no such file: none.md": {"missing", "tar.gz", "x.tar.gz"},
	} {
		if err := run(args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, got %v", args, want, err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if err := run([]string{"list", "deb", "x"}, io.Discard); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH is not set") {
		t.Errorf("without a time: %v", err)
	}
}

// TestArchivesAndPackagesHoldTheSame reads the list of the project: what an archive has is in the rpm, but for what a
// package manager has a place of its own for.
func TestArchivesAndPackagesHoldTheSame(t *testing.T) {
	project, err := config.Load("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var archived, installed []string
	for _, f := range project.Archives[0].Files {
		name := f.Destination
		if f.StripParent && !strings.ContainsAny(f.Source, "*") {
			name = path.Join(name, path.Base(f.Source))
		}
		if name != "share/powershell/sbx.ps1" {
			archived = append(archived, "/usr/"+name)
		}
	}
	for _, c := range project.NFPMs[0].Contents {
		if c.Type == "dir" || c.Packager == "deb" {
			continue
		}
		name := c.Destination
		if strings.HasSuffix(name, ".d/sbx.conf") { // an archive chooses them by a pattern
			name = path.Dir(name)
		}
		installed = append(installed, name)
	}
	slices.Sort(archived)
	slices.Sort(installed)
	if !slices.Equal(archived, installed) {
		t.Errorf("archives: %q\npackages: %q", archived, installed)
	}
}
