// Package journal records what a destructive run is about to do and its results: one file
// per run, one line per entry, written before the action and durable when Append returns.
//
// Each line has its number and a checksum, so that a line shows that is torn, damaged or missing.
// They prove nothing against somebody who may write to the file. The lines of versions until November
// 2026 are chained by hashes, which are checked still. The packages that write entries define their
// meaning; sandboxes, providers and decisions do not belong here.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/jsontext"
)

// Log is a journal that was read.
type Log struct {
	Run       string
	Entries   []Entry // by Read; Scan passes them on instead
	Count     int     // of entries that can be trusted
	Truncated bool    // the last line is incomplete: the run was interrupted there
	Broken    string  // why what follows cannot be trusted; "" = all can be

	size   int64 // of the part that can be trusted
	first  Entry
	last   Entry
	hashes []string
}

// maxLine bounds one line, in bytes: longer ones were not written by this package.
const maxLine = 16 << 20

// hintFolder is the hint when a journal cannot be read.
const hintFolder = "check that you may read `runs` in the state directory; `sbx doctor` shows where it is"

// Read reads the journal of a run with all of its entries; one that does not exist is
// fault.KindNotFound.
func Read(d Disk, run string) (Log, error) {
	var entries []Entry
	log, err := Scan(d, run, func(e Entry) { entries = append(entries, e) })
	log.Entries = entries
	return log, err
}

// Scan passes the entries to take one by one, as far as they can be trusted, and keeps none: a
// journal may be larger than memory. take may be nil.
func Scan(d Disk, run string, take func(Entry)) (Log, error) {
	if strings.ContainsAny(run, `/\`) || strings.HasPrefix(run, ".") {
		return Log{}, fault.Usage("%q is not a run id", run).WithHint("`sbx cleanup runs` lists them")
	}
	file, err := d.Open(run + suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Log{Run: run}, fault.New(fault.KindNotFound, "there is no run %q", run).WithHint("`sbx cleanup runs` lists them")
	case err != nil:
		return Log{Run: run}, unreadableError(run, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	log := Log{Run: run}
	if err := log.scanLines(bufio.NewReader(file), take); err != nil {
		return Log{Run: run}, unreadableError(run, err)
	}
	return log, nil
}

// ContainsText reports whether a text occurs in the journal of a run: far cheaper than reading
// it, for a search through many.
func ContainsText(d Disk, run, text string) (bool, error) {
	quoted, err := json.Marshal(text)
	if err != nil {
		return false, err
	}
	file, err := d.Open(run + suffix)
	if err != nil {
		return false, unreadableError(run, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	needle := bytes.Trim(quoted, `"`)
	for lines := bufio.NewReader(file); ; {
		line, err := readLine(lines)
		switch {
		case bytes.Contains(line, needle):
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, unreadableError(run, err)
		}
	}
}

func unreadableError(run string, err error) error {
	return fault.New(fault.KindUnknown, "the journal of %s cannot be read: %w", run, err).WithHint(hintFolder)
}

func (l *Log) scanLines(lines *bufio.Reader, take func(Entry)) error {
	for {
		line, err := readLine(lines)
		switch {
		case errors.Is(err, errLong):
			l.Broken = fmt.Sprintf("line %d is longer than %d bytes", l.Count+1, maxLine)
			return nil
		case errors.Is(err, io.EOF):
			l.Truncated = len(line) > 0
			return nil
		case err != nil:
			return err
		}
		var e Entry
		if err := jsontext.Unmarshal(line, &e); err != nil {
			if _, more := lines.Peek(1); errors.Is(more, io.EOF) { // a line end may be older bytes of the disk
				l.Truncated = true
				return nil
			}
			l.Broken = fmt.Sprintf("line %d is not an entry: %s", l.Count+1, jsontext.Describe(err))
			return nil
		}
		if l.Broken = l.lineError(e); l.Broken != "" {
			return nil
		}
		l.addEntry(e, int64(len(line))+1)
		if take != nil {
			take(e)
		}
	}
}

// addEntry counts an entry that follows the one before it. Its data is not kept.
func (l *Log) addEntry(e Entry, size int64) {
	bare := Entry{Seq: e.Seq, At: e.At, After: e.After, AfterSeq: e.AfterSeq, Hash: e.Hash, Prev: e.Prev}
	if l.Count == 0 {
		l.first = bare
	}
	l.Count, l.last, l.size = l.Count+1, bare, l.size+size
	if e.Hash != "" {
		l.hashes = append(l.hashes, e.Hash)
	}
}

var errLong = errors.New("a line is too long")

// readLine reads up to the next line end, without it; io.EOF with the rest of the file.
func readLine(lines *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errLong
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// lineError is why an entry cannot be trusted, or does not follow the one before it.
func (l *Log) lineError(e Entry) string {
	n := l.Count
	switch {
	case e.Run != l.Run:
		return fmt.Sprintf("line %d belongs to %q", n+1, e.Run)
	case e.Seq != n+1:
		return fmt.Sprintf("line %d has the number %d", n+1, e.Seq)
	case e.Hash == "" && e.Sum != e.computeSum(), e.Hash != "" && e.Hash != e.computeHash():
		return fmt.Sprintf("line %d was changed after it was written", n+1)
	case e.Hash != "" && n > 0 && e.Prev != l.last.Hash:
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

// newest is the newest run that can be read and trusted, as far as that goes; the zero Log without one. The others are
// skipped: their own reading reports that.
func newest(d Disk) (Log, error) {
	runs, err := Runs(d)
	if err != nil {
		return Log{}, err
	}
	for _, run := range slices.Backward(runs) {
		if log, _ := Scan(d, run, nil); log.Count > 0 { // one damaged file must not stop every later run
			return log, nil
		}
	}
	return Log{}, nil
}

// MissingPredecessor names the runs that begin behind lines that no log has: the journal before each is missing, or was
// cut. The oldest of them, and those that began behind the same one, have their predecessor among those that were not
// read. Where a journal is damaged, what is behind the damage is not known, so none is named. Runs that waited for the
// lock may be out of the order of names.
func MissingPredecessor(logs []Log) []string {
	lines, hashes := map[string]int{}, map[string]bool{}
	for _, l := range logs {
		if l.Broken != "" {
			return nil
		}
		lines[l.Run] = l.Count
		for _, hash := range l.hashes {
			hashes[hash] = true
		}
	}
	var roots []Log
	for _, l := range logs {
		first := l.first
		stands := hashes[first.Prev]
		if first.Hash == "" {
			stands = first.After != "" && lines[first.After] >= first.AfterSeq
		}
		if l.Count > 0 && !stands {
			roots = append(roots, l)
		}
	}
	slices.SortFunc(roots, func(a, b Log) int { return a.first.At.Compare(b.first.At) })
	var names []string
	for _, l := range roots {
		if l.first.Prev != roots[0].first.Prev || l.first.After != roots[0].first.After {
			names = append(names, l.Run)
		}
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
