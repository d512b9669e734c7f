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
	"slices"
	"strings"
	"testing"
	"time"
)

const list = `name: sbx
version: ${VERSION}
version_schema: none
platform: ${OS}
arch: amd64
maintainer: a <a@b>
license: Apache-2.0
description: d
rpm: {buildhost: localhost}
contents:
  - {src: sbx, dst: "/usr/bin/sbx", file_info: {mode: 0755}}
  - {src: "*.md", dst: /usr/share/doc/sbx}
  - {src: unit, dst: /usr/lib/systemd/system/sbx.service}
  - {src: unit, dst: /usr/share/deb, packager: deb}
`

// stage makes the folder in which the list is and enters it.
func stage(t *testing.T, platform string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"list": list, "sbx": "binary", "a.md": "a", "b.md": "b", "unit": "u"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("VERSION", "1.2.4~rc.1")
	t.Setenv("OS", platform)
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
}

func pack(t *testing.T, format, out string) []byte {
	t.Helper()
	named := map[string]string{"deb": "sbx_1.2.4~rc.1_amd64.deb", "rpm": "sbx-1.2.4~rc.1-1.x86_64.rpm"}
	args := []string{"list", format, out}
	if named[format] != "" {
		args[2], out = ".", named[format]
	}
	if err := run(args); err != nil {
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

func TestArchivesHaveTheFilesOfThePackage(t *testing.T) {
	stage(t, "linux")
	packed, err := gzip.NewReader(bytes.NewReader(pack(t, "tar.gz", "sbx_1.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(packed); ; {
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
		"sbx_1/bin/sbx 755 1700000000", "sbx_1/lib/systemd/system/sbx.service 644 1700000000",
		"sbx_1/share/doc/sbx/a.md 644 1700000000", "sbx_1/share/doc/sbx/b.md 644 1700000000",
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
	if want := []string{"sbx_1/bin/sbx", "sbx_1/share/doc/sbx/a.md", "sbx_1/share/doc/sbx/b.md"}; !slices.Equal(names, want) {
		t.Errorf("without systemd: want %q, got %q", want, names)
	}
}

func TestRunRefuses(t *testing.T) {
	stage(t, "linux")
	for want, args := range map[string][]string{
		"usage": {"list"}, "no such file": {"none", "deb", "x"}, "no packager": {"list", "cab", "x.cab"},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, got %v", args, want, err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if err := run([]string{"list", "deb", "x"}); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH is not set") {
		t.Errorf("without a time: %v", err)
	}
}
