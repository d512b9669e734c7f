package runlog

import "bytes"

// begin takes the time for the records of one call.
func (w *Writer) begin() {
	w.at = w.now()
	w.stamp = appendStamp(w.stamp[:0], w.at)
}

// record adds one record to the batch, which goes to disk first when it is full.
func (w *Writer) record(name Stream, tag byte, text []byte) {
	if len(w.batch)+headBytes+len(text) > batchBytes {
		w.store(false)
	}
	w.batch = appendRecord(w.batch, w.stamp, name, tag, text)
	w.waiting.add(w.at, tag, text)
	w.lines[name.index()].tag = tag
}

// store brings the batch to disk, or counts it as dropped.
func (w *Writer) store(force bool) {
	if len(w.batch) == 0 {
		return
	}
	kept := w.spool.append(w.batch, w.waiting, w.at, force)
	if kept < len(w.batch) {
		w.lose(kept)
	}
	for i := range w.lines {
		l := &w.lines[i]
		if kept == len(w.batch) && l.tag != 0 {
			l.stored = l.tag
		}
		l.tag = 0
	}
	w.batch, w.waiting = w.batch[:0], amount{}
}

// lose accounts for a batch of which only the first kept bytes are on disk.
func (w *Writer) lose(kept int) {
	for record := range bytes.Lines(w.batch) {
		there := record[:min(kept, len(record))]
		kept -= len(there)
		w.loseRecord(record, there)
	}
}

// loseRecord accounts for one record, of which there is on disk. A stream whose
// last record on disk is a part is severed when the next one is lost: the end
// of its line never comes, and a reader would join another line to it.
func (w *Writer) loseRecord(record, there []byte) {
	whole, _ := parseRecord(bytes.TrimSuffix(record, []byte{'\n'}))
	l := &w.lines[whole.stream.index()]
	w.dropped += int64(len(whole.text))
	if stored, ok := parseRecord(bytes.TrimSuffix(there, []byte{'\n'})); ok {
		w.dropped -= int64(len(stored.text))
		l.stored = stored.tag
	}
	if len(there) < len(record) {
		l.sever = l.stored == part
	}
}
