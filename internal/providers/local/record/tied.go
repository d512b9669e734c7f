package record

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sbx/internal/hostfile"
	"sbx/internal/providers/local/plain"
)

// Creator is the process to which a sandbox is tied: it ends, with its record, when that is gone.
type Creator struct {
	Host  string `json:"host"` // on which PID and birth mean something
	PID   int    `json:"pid"`
	Birth string `json:"birth"` // identity.Birth
}

// tiedDir has a file for each sandbox that is tied to a process, so that a sweep without any reads no record.
const tiedDir = ".tied"

func (s Store) tie(id string) string { return filepath.Join(s.Root, tiedDir, id) }

// Tie ties a sandbox to a process, until it is removed.
func (s Store) Tie(id string, to Creator) error {
	raw, err := json.Marshal(to)
	if err == nil {
		err = os.MkdirAll(filepath.Join(s.Root, tiedDir), 0o700)
	}
	if err != nil {
		return err
	}
	return hostfile.Replace(s.tie(id), raw, 0o600)
}

// Ties are the sandboxes that are tied to a process. A file that cannot be read ties none.
func (s Store) Ties() (map[string]Creator, error) {
	files, err := os.ReadDir(filepath.Join(s.Root, tiedDir))
	if err != nil {
		return nil, ignoreError(err, fs.ErrNotExist)
	}
	ties := map[string]Creator{}
	for _, f := range files {
		var to Creator
		raw, err := plain.Read(s.tie(f.Name()), MaxBytes)
		if err == nil && !strings.HasPrefix(f.Name(), ".") && json.Unmarshal(raw, &to) == nil {
			ties[f.Name()] = to
		}
	}
	return ties, nil
}

// untie forgets the process of a sandbox that is removed.
func (s Store) untie(id string) error {
	err := os.Remove(s.tie(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
