package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/jsontext"
	plainfile "sbx/internal/providers/local/plain"
)

// Grant is what Trust recorded.
type Grant struct {
	Path   string
	SHA256 string   // of the trusted content
	Allows []string // what the file does beyond narrowing, one line each
}

// Trust records that the project file at path may widen with exactly its
// present content; "" means the nearest project file. A file that is broken is
// fault.KindUsage, a record that cannot be read or written fault.KindRefused or
// the error of the file system. Of two that trust at the same time one may be
// lost, and is asked for again.
func Trust(ctx context.Context, in Input, path string) (Grant, error) {
	path, err := in.projectAt(path)
	if err != nil {
		return Grant{}, err
	}
	in.File, in.Flags = "", nil // the question is about the project file alone
	in.Process.Environ = append(slices.Clone(in.Process.Environ), EnvConfig+"=", EnvProvider+"=", EnvStoreURL+"=")
	l, err := loadWithProject(ctx, in, path)
	if err != nil {
		return Grant{}, err
	}
	i := slices.IndexFunc(l.files, func(f File) bool { return f.Role == RoleProject && f.Ignored == "" })
	return l.grantOf(l.files[i])
}

// projectAt finds the project file that is meant by a path or a folder.
func (in Input) projectAt(path string) (string, error) {
	if path == "" {
		if path = in.projectFile(); path == "" {
			return "", fault.Usage("there is no %s from here upward", ProjectFile).WithHint("name the file: sbx config trust PATH")
		}
		return path, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(in.workingDirectory(), path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ProjectFile)
	}
	if filepath.Base(path) != ProjectFile || !filepath.IsAbs(path) {
		return "", fault.Usage("%s is not a project file: only a file named %s needs trust", path, ProjectFile).
			WithHint("user files and files named by --config are trusted already")
	}
	return filepath.Clean(path), nil
}

func (l *loader) grantOf(f File) (Grant, error) {
	record, err := l.readTrust()
	if err != nil {
		return Grant{}, err
	}
	at := time.Time{}
	if now := l.in.Process.Now; now != nil {
		at = now().UTC()
	}
	entry := trusted{Path: withoutLinks(f.Path), SHA256: f.sum, At: at}
	record.Files = slices.DeleteFunc(record.Files, func(t trusted) bool { return t.Path == entry.Path })
	record.Files = append(record.Files, entry)
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return Grant{}, err
	}
	if err := writeFile(filepath.Join(l.config.StateDir, trustName), append(text, '\n'), modeFile); err != nil {
		return Grant{}, fault.New(fault.KindUnknown, "trust cannot be recorded: %w", err).WithHint("check that the state directory %s is writable", l.config.StateDir)
	}
	return Grant{Path: f.Path, SHA256: f.sum, Allows: l.trustedWidenings()}, nil
}

// isTrusted says whether that content at that path is on record. A record that
// cannot be read trusts nothing.
func (l *loader) isTrusted(f File) bool {
	record, err := l.readTrust()
	return err == nil && slices.ContainsFunc(record.Files, func(t trusted) bool {
		return t.Path == withoutLinks(f.Path) && t.SHA256 == f.sum
	})
}

// withoutLinks is the path without links, so that one file has one name.
func withoutLinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

func sha256Hex(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

// maxTrust bounds the record of trust, in bytes: some ten thousand files.
const maxTrust = 4 << 20

const (
	trustName   = "trust.json"
	trustSchema = "sbx.trust/v1"
)

// trustRecord is the file in the state directory that says which contents of
// which project files the operator trusts.
type trustRecord struct {
	Schema string    `json:"schema"`
	Files  []trusted `json:"files"`
}

type trusted struct {
	Path   string    `json:"path"`   // absolute, without links
	SHA256 string    `json:"sha256"` // of the content, in lower-case hex
	At     time.Time `json:"at"`
}

func (l *loader) readTrust() (trustRecord, error) {
	empty := trustRecord{Schema: trustSchema}
	dir, err := l.config.State()
	if err != nil {
		return empty, err
	}
	path := filepath.Join(dir, trustName)
	text, err := plainfile.Read(path, maxTrust)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err == nil {
		return parseTrust(path, text)
	}
	return empty, damagedRecord(path, err)
}

// parseTrust refuses what this version did not write: overwriting it would lose
// what somebody trusted.
func parseTrust(path string, text []byte) (trustRecord, error) {
	record := trustRecord{}
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.DisallowUnknownFields()
	switch err := reader.Decode(&record); {
	case err != nil:
		return trustRecord{}, damagedRecord(path, errors.New(jsontext.Describe(err)))
	case record.Schema != trustSchema:
		return trustRecord{}, damagedRecord(path, errors.New("its schema is not "+trustSchema))
	}
	return record, nil
}

func damagedRecord(path string, err error) error {
	return fault.New(fault.KindRefused, "%s: the record of trusted files cannot be used: %w", path, withoutPath(err)).
		WithHint("remove it and trust your project files again with sbx config trust")
}
