package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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

// hintFolder is what to look at when a journal cannot be read.
const hintFolder = "may this user read `runs` in the state directory? `sbx config explain` says where that is"

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
		return Log{}, fault.New(fault.KindUnknown, "the journal of %s cannot be read: %w", run, err).WithHint(hintFolder)
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
		return nil, fault.New(fault.KindUnknown, "the journals cannot be listed: %w", err).WithHint(hintFolder)
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
	if err != nil {
		return "", err
	}
	for _, run := range slices.Backward(runs) {
		if log, _ := Read(d, run); len(log.Entries) > 0 { // one odd file does not stop every run to come
			return log.Entries[len(log.Entries)-1].Hash, nil
		}
	}
	return "", nil
}

// Unrooted names the runs among these that begin where no other of them ever stood, but
// for the one that began first: the journal before each is missing. A run that waited
// for the lock may follow one of a later name.
func Unrooted(logs []Log) []string {
	stood := map[string]bool{}
	for _, l := range logs {
		for _, e := range l.Entries {
			stood[e.Hash] = true
		}
	}
	var roots []Log
	for _, l := range logs {
		if len(l.Entries) > 0 && !stood[l.Entries[0].Prev] {
			roots = append(roots, l)
		}
	}
	slices.SortFunc(roots, func(a, b Log) int { return a.Entries[0].At.Compare(b.Entries[0].At) })
	var names []string
	for _, l := range roots[min(1, len(roots)):] {
		names = append(names, l.Run)
	}
	return names
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
