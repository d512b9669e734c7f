// Command pack writes one artefact of a release from the list of what a package
// holds (deploy/package.yaml, in the form of nfpm):
//
//	pack LIST FORMAT OUT
//
// FORMAT is deb, rpm, tar.gz or zip. OUT is a file, or for deb and rpm the folder
// of one that is named as their tools expect. An archive has the files of the
// package below one folder, without the leading /usr, so that unpacking it into
// /usr/local installs it. The variables that the list names are read from the
// environment. Every file has the time SOURCE_DATE_EPOCH (seconds) and a mode
// that does not depend on the checkout: equal input gives equal bytes. It is a
// module of its own and must not import the product.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack: error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: pack LIST FORMAT OUT")
	}
	list, format, out := args[0], args[1], args[2]
	config, err := nfpm.ParseFileWithEnvMapping(list, os.Getenv)
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	info := nfpm.WithDefaults(&config.Info)
	if info.MTime.IsZero() {
		return fmt.Errorf("SOURCE_DATE_EPOCH is not set: the artefact would have the time of its build")
	}
	for _, c := range info.Contents {
		if c.FileInfo == nil && c.Type != files.TypeDir {
			c.FileInfo = &files.ContentFileInfo{Mode: 0o644}
		}
	}
	if packager, err := nfpm.Get(format); err == nil {
		out = filepath.Join(out, packager.ConventionalFileName(info))
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := write(info, format, file); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return file.Close()
}

func write(info *nfpm.Info, format string, file *os.File) error {
	root := strings.TrimSuffix(filepath.Base(file.Name()), "."+format)
	switch format {
	case "tar.gz":
		packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
		if err != nil {
			return err
		}
		w := tar.NewWriter(packed)
		if err := archive(info, root, func(name string, c *files.Content, size int64) (io.Writer, error) {
			return w, w.WriteHeader(&tar.Header{Name: name, Size: size, Mode: int64(c.Mode()), ModTime: c.ModTime(), Uname: "root", Gname: "root"})
		}); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return packed.Close()
	case "zip":
		w := zip.NewWriter(file)
		w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
		if err := archive(info, root, func(name string, c *files.Content, _ int64) (io.Writer, error) {
			header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: c.ModTime()}
			header.SetMode(c.Mode())
			return w.CreateHeader(header)
		}); err != nil {
			return err
		}
		return w.Close()
	default:
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		// What rpm's own build marks as documentation; the list cannot, since a pattern has no type.
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		for _, c := range info.Contents {
			if format == "rpm" && c.Type == files.TypeFile && (strings.HasPrefix(c.Destination, "/usr/share/doc/") || strings.HasPrefix(c.Destination, "/usr/share/man/")) {
				c.Type = files.TypeRPMDoc
			}
		}
		return packager.Package(info, file)
	}
}

// archive hands each file of the list to add, which begins an entry and says
// where its content goes. Below /usr/lib are units for systemd, which only
// Linux has.
func archive(info *nfpm.Info, root string, add func(name string, c *files.Content, size int64) (io.Writer, error)) error {
	contents, err := files.PrepareForPackager(info.Contents, info.Umask, "archive", false, info.MTime)
	if err != nil {
		return err
	}
	for _, c := range contents {
		if c.Type != files.TypeFile || info.Platform != "linux" && strings.HasPrefix(c.Destination, "/usr/lib/") {
			continue
		}
		content, err := os.ReadFile(c.Source)
		if err != nil {
			return err
		}
		w, err := add(path.Join(root, strings.TrimPrefix(c.Destination, "/usr/")), c, int64(len(content)))
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return nil
}
