package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"sbx/internal/fault"
)

// Log is a journal that was read.
type Log struct {
	Run     string
	Entries []Entry
	Torn    bool   // the last line was not written whole: the run was cut off there
	Broken  string // why the chain does not hold; "" = it does

	size int64 // of what can be trusted
}

// Read reads the journal of a run; one that does not exist is
// fault.KindNotFound.
func Read(d Disk, run string) (Log, error) {
	if strings.ContainsAny(run, `/\`) || strings.HasPrefix(run, ".") {
		return Log{}, fault.Usage("%q is no run", run).WithHint("`sbx cleanup runs` lists them")
	}
	text, err := d.Read(run + suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Log{}, fault.New(fault.KindNotFound, "no run is called %q", run).WithHint("`sbx cleanup runs` lists them")
	case err != nil:
		return Log{}, fault.New(fault.KindUnknown, "the journal of %s cannot be read: %w", run, err)
	}
	return parse(run, text), nil
}

// parse reads as far as the chain holds.
func parse(run string, text []byte) Log {
	log := Log{Run: run}
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			log.Torn = true
			return log
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			if len(rest) == 0 { // a line end may be older bytes of the disk
				log.Torn = true
				return log
			}
			log.Broken = fmt.Sprintf("line %d is no entry: %v", len(log.Entries)+1, err)
			return log
		}
		if log.Broken = log.wrong(e); log.Broken != "" {
			return log
		}
		log.Entries = append(log.Entries, e)
		log.size += int64(len(line)) + 1
		text = rest
	}
	return log
}

// wrong says why an entry does not continue the chain.
func (l Log) wrong(e Entry) string {
	n := len(l.Entries)
	switch {
	case e.Run != l.Run:
		return fmt.Sprintf("line %d belongs to %q", n+1, e.Run)
	case e.Seq != n+1:
		return fmt.Sprintf("line %d says that it is number %d", n+1, e.Seq)
	case e.Hash != e.digest():
		return fmt.Sprintf("line %d was changed after it was written", n+1)
	case n > 0 && e.Prev != l.Entries[n-1].Hash:
		return fmt.Sprintf("line %d does not follow the one before it", n+1)
	}
	return ""
}

// Runs names the runs with a journal, oldest first.
func Runs(d Disk) ([]string, error) {
	names, err := d.Names()
	if err != nil {
		return nil, fault.New(fault.KindUnknown, "the journals cannot be listed: %w", err)
	}
	runs := make([]string, 0, len(names))
	for _, name := range names {
		runs = append(runs, strings.TrimSuffix(name, suffix))
	}
	return runs, nil
}

// lastHash is where the newest run stands; "" without one. A newest run that
// cannot be read or trusted is passed by: its own reading says so.
func lastHash(d Disk) (string, error) {
	runs, err := Runs(d)
	if err != nil || len(runs) == 0 {
		return "", err
	}
	log, _ := Read(d, runs[len(runs)-1]) // one odd file does not stop every run to come
	if len(log.Entries) == 0 {
		return "", nil
	}
	return log.Entries[len(log.Entries)-1].Hash, nil
}

// Follows says whether a run began where the run before it stood. Unknown
// beginnings, such as that of the oldest run that is kept, are in order.
func (l Log) Follows(before Log) bool {
	if len(l.Entries) == 0 || len(before.Entries) == 0 {
		return true
	}
	for _, e := range before.Entries {
		if e.Hash == l.Entries[0].Prev {
			return true
		}
	}
	return false
}

// Prune removes the journals of all but the newest keep runs, oldest first.
func Prune(d Disk, keep int) error {
	runs, err := Runs(d)
	if err != nil {
		return err
	}
	for _, run := range runs[:max(0, len(runs)-keep)] {
		if err := d.Remove(run + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.New(fault.KindUnknown, "the journal of %s cannot be removed: %w", run, err)
		}
	}
	return nil
}
