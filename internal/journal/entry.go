package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Entry is one line of a journal.
type Entry struct {
	Seq  int             `json:"seq"` // from 1, without a gap
	At   time.Time       `json:"at"`  // UTC
	Kind string          `json:"entry"`
	Run  string          `json:"run"`
	Data json.RawMessage `json:"data"`
	Prev string          `json:"prev"` // hash of the line before; of the first line, where the run before stood
	Hash string          `json:"hash"` // over all the others
}

// Into reads the data of an entry.
func (e Entry) Into(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("entry %d of %s (%s): %w", e.Seq, e.Run, e.Kind, err)
	}
	return nil
}

// digest is the hash of an entry: over each part with its length, so that no two
// entries spell the same text.
func (e Entry) digest() string {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(strconv.Itoa(e.Seq)), []byte(e.At.UTC().Format(time.RFC3339Nano)), []byte(e.Kind), []byte(e.Run), e.Data, []byte(e.Prev),
	} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (e Entry) line() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// compact gives data the one spelling that a line can hold, so that the hash of
// what is read is that of what was written.
func compact(data any) (json.RawMessage, error) {
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
