package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/jsontext"
)

// Disk stores journals. It is an interface, so that a simulation can lose what was not
// synced.
type Disk interface {
	// Create makes a new file; an existing one is fs.ErrExist.
	Create(name string) (File, error)
	// Extend truncates a file to its first size bytes and opens it at their end.
	Extend(name string, size int64) (File, error)
	// Open opens a file for reading; a missing one is fs.ErrNotExist.
	Open(name string) (io.ReadCloser, error)
	// Names lists the files, sorted. A folder that does not exist is empty.
	Names() ([]string, error)
	// Remove deletes a file.
	Remove(name string) error
}

// File is a journal that is open for writing.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// suffix is the suffix of a journal's file.
const suffix = ".jsonl"

// Dir is a folder on a real disk; it is made with the first file.
type Dir string

// Create makes a new file and makes its name durable.
func (d Dir) Create(name string) (File, error) { //nolint:ireturn // as Disk wants it
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(string(d), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return f, d.syncFolder()
}

func (d Dir) syncFolder() error {
	folder, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !isUnsupported(err) {
		return err
	}
	return nil
}

// Extend truncates a file to its first size bytes and opens it at their end.
func (d Dir) Extend(name string, size int64) (File, error) { //nolint:ireturn // as Disk wants it
	path := filepath.Join(string(d), name)
	if err := os.Truncate(path, size); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

// Open opens a file for reading. Only a regular one is opened: a pipe would block.
func (d Dir) Open(name string) (io.ReadCloser, error) {
	path := filepath.Join(string(d), name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return os.Open(path)
}

// Names lists the journals in the folder.
func (d Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove deletes a file.
func (d Dir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

// Entry is one line of a journal.
type Entry struct {
	Seq  int             `json:"seq"` // from 1, without a gap
	At   time.Time       `json:"at"`  // UTC
	Kind string          `json:"entry"`
	Run  string          `json:"run"`
	Data json.RawMessage `json:"data"`
	// After names the run before, in the first line, and AfterSeq is how many lines it had; "" = there was none.
	After    string `json:"after,omitempty"`
	AfterSeq int    `json:"after_seq,omitempty"`
	Sum      string `json:"sum,omitempty"` // checksum over all the others, in hexadecimal digits

	// Of lines of versions until November 2026, in place of After and Sum:
	Prev string `json:"prev,omitempty"` // hash of the line before; of the first line, the last hash of the run before
	Hash string `json:"hash,omitempty"` // over all the others
}

// Into decodes the data of an entry.
func (e Entry) Into(v any) error {
	if err := jsontext.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("entry %d of %s (%s): %w", e.Seq, e.Run, e.Kind, err)
	}
	return nil
}

// Decode passes the data of an entry to use, where it can be read: a part of it is never used.
func Decode[T any](e Entry, use func(T)) error {
	var data T
	if err := e.Into(&data); err != nil {
		return err
	}
	use(data)
	return nil
}

// computeHash is the hash of an entry of an earlier version.
func (e Entry) computeHash() string {
	h := sha256.New()
	e.writeParts(h)
	return hex.EncodeToString(h.Sum(nil))
}

// computeSum is the checksum of an entry: CRC-32C. It finds what a disk or a crash has changed. Who may write to the file
// may write a checksum too, as he could write hashes.
func (e Entry) computeSum() string {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	e.writeParts(h)
	return hex.EncodeToString(h.Sum(nil))
}

// writeParts writes each part with its length, so that different entries are different texts.
func (e Entry) writeParts(h io.Writer) {
	for _, part := range [][]byte{
		[]byte(strconv.Itoa(e.Seq)), []byte(e.At.UTC().Format(time.RFC3339Nano)), []byte(e.Kind), []byte(e.Run), e.Data, []byte(e.Prev + e.after()),
	} {
		_, _ = fmt.Fprintf(h, "%d:", len(part)) // a hash takes everything
		_, _ = h.Write(part)
	}
}

// after is the run before and its lines, as the checksum has them; "" for a line without.
func (e Entry) after() string {
	if e.After == "" {
		return ""
	}
	return e.After + " " + strconv.Itoa(e.AfterSeq)
}

func (e Entry) encodeLine() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// compactJSON gives data one canonical encoding, so that the checksum of what is read equals
// that of what was written.
func compactJSON(data any) (json.RawMessage, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
