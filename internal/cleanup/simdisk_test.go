package cleanup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/testkit/schedule"
)

// disk stores the journals of one machine. Unsynced data may be lost with the process that
// wrote it.
type disk struct {
	files map[string]*simFile
	full  bool
}

type simFile struct {
	data   []byte
	synced int
	writer *incarnation
}

// mount is a process's view of the disk.
type mount struct{ inc *incarnation }

var _ journal.Disk = mount{}

// use begins a disk operation; the simulation is locked where it returns nil.
func (m mount) use(what string) error {
	m.inc.s.mu.Lock()
	if !m.inc.s.step(m.inc, what) {
		m.inc.s.mu.Unlock()
		return errDead
	}
	return nil
}

func (m mount) Create(name string) (journal.File, error) {
	if err := m.use("create " + name); err != nil {
		return nil, err
	}
	defer m.inc.s.mu.Unlock()
	d := m.inc.s.disk
	if _, there := d.files[name]; there {
		return nil, fs.ErrExist
	}
	if d.full {
		return nil, errFull
	}
	d.files[name] = &simFile{writer: m.inc}
	return &handle{m, name}, nil
}

var errFull = errors.New("no space left on device")

func (m mount) Extend(name string, size int64) (journal.File, error) {
	if err := m.use("extend " + name); err != nil {
		return nil, err
	}
	defer m.inc.s.mu.Unlock()
	f := m.inc.s.disk.files[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	if !m.inc.s.mut.keepsTornLines {
		f.data = f.data[:size]
	}
	f.synced, f.writer = len(f.data), m.inc
	return &handle{m, name}, nil
}

func (m mount) Open(name string) (io.ReadCloser, error) {
	if err := m.use("read " + name); err != nil {
		return nil, err
	}
	defer m.inc.s.mu.Unlock()
	f := m.inc.s.disk.files[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(slices.Clone(f.data))), nil
}

func (m mount) Names() ([]string, error) {
	if err := m.use("list the journals"); err != nil {
		return nil, err
	}
	defer m.inc.s.mu.Unlock()
	return slices.Sorted(maps.Keys(m.inc.s.disk.files)), nil
}

func (m mount) Remove(name string) error {
	if err := m.use("remove " + name); err != nil {
		return err
	}
	defer m.inc.s.mu.Unlock()
	delete(m.inc.s.disk.files, name)
	return nil
}

type handle struct {
	m    mount
	name string
}

func (h *handle) Write(text []byte) (int, error) {
	if err := h.m.use("write " + h.name); err != nil {
		return 0, err
	}
	s := h.m.inc.s
	defer s.mu.Unlock()
	f := s.disk.files[h.name]
	if s.disk.full {
		f.data = append(f.data, text[:len(text)/2]...)
		s.Logf("%s: the disk is full", h.m.inc)
		return len(text) / 2, errFull
	}
	f.data = append(f.data, text...)
	return len(text), nil
}

func (h *handle) Sync() error {
	if err := h.m.use("sync " + h.name); err != nil {
		return err
	}
	s := h.m.inc.s
	f := s.disk.files[h.name]
	upTo := len(f.data)
	s.mu.Unlock()
	took := 200*time.Microsecond + time.Duration(float64(30*time.Millisecond)*s.Roll("sync", h.m.inc.n, upTo))
	if h.m.inc.verb != "reconcile" { // reconcile waits for the disk under a lock, and virtual time stands still then
		schedule.Sleep(context.WithoutCancel(h.m.inc.ctx), took) // the disk ignores signals
	}
	if err := h.m.use("synced " + h.name); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if !s.mut.neverSyncs {
		f.synced = max(f.synced, upTo)
	}
	return nil
}

func (h *handle) Close() error { return nil }

// lose drops what a dead process had not synced: a random part of it remains, perhaps
// followed by zeros.
func (d *disk) lose(s *sim, inc *incarnation) {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		if f.writer != inc || f.synced == len(f.data) {
			continue
		}
		lost := len(f.data) - f.synced
		keep := int(float64(lost+1) * s.Roll("keeps", inc.n, name))
		f.data = f.data[:f.synced+keep]
		if s.Roll("zeros", inc.n, name) < 0.2 {
			f.data = append(f.data, make([]byte, lost-keep)...)
		}
		s.Logf("the disk loses %d of %d bytes of %s", lost-keep, lost, name)
		f.synced = len(f.data)
	}
}

// latch is the lock of one machine: the kernel releases it with its holder.
type latch struct{ holder *incarnation }

// take waits for the lock, as internal/lock does.
func (inc *incarnation) take(ctx context.Context, wait time.Duration) (release func(), err error) {
	s := inc.s
	deadline := time.Now().Add(wait)
	for {
		s.mu.Lock()
		if !s.step(inc, "take the lock") {
			s.mu.Unlock()
			return nil, errDead
		}
		if s.latch.holder == nil || s.mut.lockAlwaysGrants {
			s.latch.holder = inc
			inc.acting = true
			s.mu.Unlock()
			return inc.release, nil
		}
		s.mu.Unlock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !time.Now().Before(deadline) {
			return nil, fault.New(fault.KindLocked, "another run is active")
		}
		schedule.Sleep(ctx, 50*time.Millisecond)
	}
}

func (inc *incarnation) release() {
	inc.s.mu.Lock()
	defer inc.s.mu.Unlock()
	if inc.dead {
		return
	}
	inc.acting = false
	if inc.s.latch.holder == inc {
		inc.s.latch.holder = nil
	}
}
