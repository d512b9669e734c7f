package agentlog

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// place is where in its file an event is, with what orders and folds a session, in 32 bytes.
type place struct {
	seconds, start int64  // its time since 1970, and where its line begins, in bytes
	nanoseconds    int32  // of its time
	size, line     int32  // of its line in bytes, and which line it is, from 1
	starts, beats  bool   // it starts a run, or is a heartbeat
	step           uint16 // of a line of a transcript, which of its events it is, from 0
}

func placeOf(e *Event) place {
	return place{seconds: e.At.Unix(), nanoseconds: int32(e.At.Nanosecond()), starts: e.Type == Started, beats: e.IsHeartbeat()}
}

// at is the time of the event; zero = not known.
func (p *place) at() time.Time { return time.Unix(p.seconds, int64(p.nanoseconds)).UTC() }

// ChangedError says that the file of a session has another line where an event was.
type ChangedError struct{ Line int }

// Error names the line.
func (e *ChangedError) Error() string { return fmt.Sprintf("line %d was changed", e.Line) }

// Len is how many events a session has.
func (s *Session) Len() int { return max(len(s.Events), len(s.places)) }

// Each calls show for each event, until it fails; with Options.Places it reads them of the file. Folded: of the
// heartbeats of one run of an agent only for the last one, with all of them; a run begins with agent.started. An error
// is that of show or of the file, or a ChangedError.
func (s *Session) Each(file io.ReaderAt, folded bool, show func(e *Event, beats *Beats) error) error {
	at := func(i int) place { return placeOf(&s.Events[i]) }
	event := func(i int) (*Event, error) { return &s.Events[i], nil }
	if s.places != nil {
		r := placeReader{file: file, Decoder: Decoder{Options: Options{Diffs: s.diffs}}, translator: s.translator}
		at = func(i int) place { return s.places[i] }
		event = func(i int) (*Event, error) { return r.read(s.places[i]) }
	}
	var last map[int]*Beats
	if folded {
		last = lastBeats(s.Len(), at)
	}
	for i := range s.Len() {
		if folded && at(i).beats && last[i] == nil {
			continue
		}
		e, err := event(i)
		if err == nil {
			err = show(e, last[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastBeats are the heartbeats of each run, by the index of the last one.
func lastBeats(n int, at func(int) place) map[int]*Beats {
	all := map[int]*Beats{}
	last, beats := -1, &Beats{}
	for i := range n {
		switch p := at(i); {
		case p.starts:
			last, beats = -1, &Beats{}
		case p.beats:
			delete(all, last)
			beats.Add(p.at())
			last, all[i] = i, beats
		}
	}
	return all
}

// placeReader reads events again, most of them one behind the other.
type placeReader struct {
	Decoder

	translator translator // of a transcript; else nil
	file       io.ReaderAt
	text       []byte // of the file, from start on
	start      int64
}

func (r *placeReader) read(p place) (*Event, error) {
	const usual = 256 << 10
	size, from := int(p.size), p.start-r.start
	if from < 0 || from+int64(size) > int64(len(r.text)) {
		if size := max(usual, size); cap(r.text) != size {
			r.text = make([]byte, size)
		}
		n, err := r.file.ReadAt(r.text[:cap(r.text)], p.start)
		r.text, r.start, from = r.text[:n], p.start, 0
		if n < size {
			if errors.Is(err, io.EOF) {
				err = &ChangedError{int(p.line)}
			}
			return nil, err
		}
	}
	r.diffs = 0 // MaxDiffs is for those that are kept
	e, err := r.decode(r.text[from:][:size], int(p.step))
	if err != nil || !e.At.Equal(p.at()) {
		return nil, &ChangedError{int(p.line)}
	}
	e.Line = int(p.line)
	return &e, nil
}

// decode decodes an event of a line, of a transcript the one with an index.
func (r *placeReader) decode(line []byte, index int) (Event, error) {
	if r.translator == nil {
		return r.DecodeLine(line)
	}
	f, err := r.readObject(line)
	if err != nil {
		return Event{}, err
	}
	steps := r.translator.translate(f)
	if index >= len(steps) {
		return Event{}, ErrNoEvent
	}
	return r.Decode(steps[index].Raw), nil
}
