package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"sbx/internal/fault"
	plainfile "sbx/internal/providers/local/plain"
)

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
		return trustRecord{}, damagedRecord(path, err)
	case record.Schema != trustSchema:
		return trustRecord{}, damagedRecord(path, errors.New("its schema is not "+trustSchema))
	}
	return record, nil
}

func damagedRecord(path string, err error) error {
	return fault.New(fault.KindRefused, "%s: the record of trusted files cannot be used: %w", path, withoutPath(err)).
		WithHint("remove it and trust your project files again with sbx config trust")
}
