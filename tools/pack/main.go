// Command pack writes artefacts of a release as .goreleaser.yaml lists them, where goreleaser is not to be had:
//
//	pack CONFIG targets            the systems to build for, a line each: linux/amd64
//	pack CONFIG flags              the flags of `go build`, a line each
//	pack CONFIG FORMAT OUT         one artefact
//
// FORMAT is deb, rpm, tar.gz or zip. OUT is a file, or for deb and rpm the folder of one that is named as their tools
// expect. VERSION, OS, ARCH and BINARY in the environment say of what. Of the file it reads what those need: the first
// build, the first archive and the first package. Their templates know .Version, .Os, .Arch, .CommitDate and
// envOrDefault; a key that goreleaser does not know, or a template with more, is an error. Every file has the time
// SOURCE_DATE_EPOCH (seconds) and a mode that does not depend on the checkout: equal input gives equal bytes. It is a
// module of its own and must not import the product.
package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pack: error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: pack CONFIG targets|flags|FORMAT [OUT]")
	}
	project, err := config.Load(args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if len(project.Builds) == 0 || len(project.Archives) == 0 || len(project.NFPMs) == 0 {
		return fmt.Errorf("%s: it needs a build, an archive and a package", args[0])
	}
	build := project.Builds[0]
	switch {
	case len(args) == 2 && args[1] == "targets":
		for _, system := range build.Goos {
			for _, arch := range build.Goarch {
				fmt.Fprintln(out, system+"/"+arch)
			}
		}
		return nil
	case len(args) == 2 && args[1] == "flags":
		fmt.Fprintln(out, strings.Join(build.Flags, "\n"))
		fmt.Fprintln(out, "-ldflags="+strings.Join(build.Ldflags, " "))
		return nil
	case len(args) != 3:
		return fmt.Errorf("usage: pack CONFIG targets|flags|FORMAT [OUT]")
	}
	r, err := newRelease(project)
	if err != nil {
		return err
	}
	return r.pack(args[1], args[2])
}

// release is one program of a release, and what the templates know of it.
type release struct {
	project config.Project
	binary  string // the file
	at      time.Time

	Version, Os, Arch, CommitDate string
}

func newRelease(project config.Project) (*release, error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH is not set: the artefact would have the time of its build")
	}
	r := &release{project: project, binary: os.Getenv("BINARY"), at: time.Unix(seconds, 0).UTC(), Version: os.Getenv("VERSION"), Os: os.Getenv("OS"), Arch: os.Getenv("ARCH")}
	r.CommitDate = r.at.Format(time.RFC3339)
	for name, value := range map[string]string{"VERSION": r.Version, "OS": r.Os, "ARCH": r.Arch, "BINARY": r.binary} {
		if value == "" {
			return nil, fmt.Errorf("%s is not set", name)
		}
	}
	return r, nil
}

// fill fills in the templates of some texts.
func (r *release) fill(texts ...*string) error {
	for _, text := range texts {
		t, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"envOrDefault": func(name, value string) string { return cmp.Or(os.Getenv(name), value) }}).Parse(*text)
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := t.Execute(&b, r); err != nil {
			return err
		}
		*text = b.String()
	}
	return nil
}

// pack writes one artefact.
func (r *release) pack(format, out string) error {
	var info *nfpm.Info
	if packager, err := nfpm.Get(format); err == nil {
		if info, err = r.packaged(); err != nil {
			return err
		}
		out = filepath.Join(out, packager.ConventionalFileName(info))
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	root := strings.TrimSuffix(filepath.Base(out), "."+format)
	switch {
	case info != nil:
		err = writePackage(info, format, file)
	case format == "tar.gz":
		err = writeTar(file, root, r.archived)
	case format == "zip":
		err = writeZip(file, root, r.archived)
	default:
		err = fmt.Errorf("no format %q: deb, rpm, tar.gz or zip", format)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return file.Close()
}

// packaged is the first package of the list, with the program in it.
func (r *release) packaged() (*nfpm.Info, error) {
	p := r.project.NFPMs[0]
	if err := r.fill(&p.Maintainer, &p.Description, &p.Homepage, &p.Bindir); err != nil {
		return nil, err
	}
	info := &nfpm.Info{
		Name: p.PackageName, Arch: r.Arch, Platform: r.Os, Version: r.Version, VersionSchema: "none", Section: p.Section, Priority: p.Priority,
		Maintainer: p.Maintainer, Description: p.Description, Vendor: p.Vendor, Homepage: p.Homepage, License: p.License, MTime: r.at,
		Overridables: nfpm.Overridables{
			Suggests: p.Suggests, Depends: p.Dependencies, Recommends: p.Recommends, Conflicts: p.Conflicts, Provides: p.Provides, Replaces: p.Replaces,
			RPM: nfpm.RPM{Group: p.RPM.Group, BuildHost: p.RPM.BuildHost},
		},
	}
	name := r.project.Builds[0].Binary
	all := append(slices.Clone(p.Contents), config.NFPMContent{Source: r.binary, Destination: path.Join(p.Bindir, name), FileInfo: config.FileInfo{Mode: 0o755}})
	for _, c := range all {
		if err := r.fill(&c.Source, &c.Destination); err != nil {
			return nil, err
		}
		one := &files.Content{Source: c.Source, Destination: c.Destination, Type: c.Type, Packager: c.Packager}
		if c.Type != files.TypeDir {
			one.FileInfo = &files.ContentFileInfo{Mode: c.FileInfo.Mode, MTime: r.at}
		}
		info.Contents = append(info.Contents, one)
	}
	return nfpm.WithDefaults(info), nil
}

// packed is a file of an archive.
type packed struct {
	source, name string // name is below the folder of the archive
	mode         os.FileMode
	at           time.Time
}

// archived are the files of the first archive of the list, the program among them, by their names.
func (r *release) archived() ([]packed, error) {
	a := r.project.Archives[0]
	suffix := ""
	if r.Os == "windows" {
		suffix = ".exe"
	}
	all := []packed{{r.binary, r.project.Builds[0].Binary + suffix, a.BuildsInfo.Mode, r.at}}
	for _, f := range a.Files {
		if err := r.fill(&f.Source, &f.Destination); err != nil {
			return nil, err
		}
		found, err := filepath.Glob(f.Source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Source, err)
		}
		if len(found) == 0 && !strings.ContainsAny(f.Source, "*?[") {
			return nil, fmt.Errorf("no such file: %s", f.Source)
		}
		for _, source := range found {
			name := f.Destination
			if f.StripParent {
				name = path.Join(name, filepath.Base(source))
			}
			all = append(all, packed{source, name, f.Info.Mode, r.at})
		}
	}
	slices.SortFunc(all, func(a, b packed) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func writePackage(info *nfpm.Info, format string, file io.Writer) error {
	// What rpm's own build marks as documentation; the list cannot, since a pattern has no type.
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	for _, c := range info.Contents {
		if format == "rpm" && c.Type == files.TypeFile && (strings.HasPrefix(c.Destination, "/usr/share/doc/") || strings.HasPrefix(c.Destination, "/usr/share/man/")) {
			c.Type = files.TypeRPMDoc
		}
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return packager.Package(info, file)
}

func writeTar(file io.Writer, root string, contents func() ([]packed, error)) error {
	compressed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	if err := archive(contents, func(c packed, size int64) (io.Writer, error) {
		return w, w.WriteHeader(&tar.Header{Name: path.Join(root, c.name), Size: size, Mode: int64(c.mode), ModTime: c.at, Uname: "root", Gname: "root"})
	}); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func writeZip(file io.Writer, root string, contents func() ([]packed, error)) error {
	w := zip.NewWriter(file)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	if err := archive(contents, func(c packed, _ int64) (io.Writer, error) {
		header := &zip.FileHeader{Name: path.Join(root, c.name), Method: zip.Deflate, Modified: c.at}
		header.SetMode(c.mode)
		return w.CreateHeader(header)
	}); err != nil {
		return err
	}
	return w.Close()
}

// archive hands each file to add, which begins an entry and says where its content goes.
func archive(contents func() ([]packed, error), add func(c packed, size int64) (io.Writer, error)) error {
	all, err := contents()
	if err != nil {
		return err
	}
	for _, c := range all {
		content, err := os.ReadFile(c.source)
		if err != nil {
			return err
		}
		w, err := add(c, int64(len(content)))
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return nil
}
