package config

import "sbx/internal/sandbox"

// Size is what a task's sandbox is made of; zero and "" leave a choice to the
// provider.
type Size struct {
	MemoryBytes int64
	CPU         float64 // cores
	DiskBytes   int64
	Snapshot    string
	Image       string // where there is no snapshot
}

// Size gives what a sandbox of that profile gets. The environment variables of
// the sources, snapshots and images are meant for services: a variable that one
// agent needs there does not resize what a profile with sizes of its own runs.
func (r Run) Size(p Profile) Size {
	if p.SizedByProfile {
		return r.Here
	}
	return r.Remote
}

// Fill gives the spec of a launch what its flags leave open. Where they name a
// template, a snapshot or an image, no other is added.
func (s Size) Fill(spec sandbox.Spec) sandbox.Spec {
	if spec.MemoryBytes == 0 {
		spec.MemoryBytes = s.MemoryBytes
	}
	if spec.CPU == 0 {
		spec.CPU = s.CPU
	}
	if spec.DiskBytes == 0 {
		spec.DiskBytes = s.DiskBytes
	}
	switch {
	case spec.Template != "" || spec.Snapshot != "" || spec.Image != "":
	case s.Snapshot != "":
		spec.Snapshot = s.Snapshot
	default:
		spec.Image = s.Image
	}
	return spec
}

// Open names what the provider will choose: an agent that is killed for memory
// that nobody asked for is hard to explain, so launching and `doctor` say it.
func (s Size) Open() []string {
	var open []string
	if s.MemoryBytes == 0 {
		open = append(open, nameMemory)
	}
	if s.CPU == 0 {
		open = append(open, nameCPU)
	}
	return open
}

// remoteOnly says that the environment variable of a setting counts for services
// only.
func (s setting) remoteOnly() bool {
	switch s.name {
	case nameMemory, nameCPU, nameDisk, nameSnapshot, nameImage:
		return true
	}
	return false
}

// hereEntries keeps what files say of sizes, before the environment goes over it.
func (l *loader) hereEntries() {
	l.here = map[string]string{}
	for _, s := range runSizes() {
		l.here[s.name] = l.runText(s.name)
	}
}

func (l *loader) sizeHere() Size {
	read := func(name string) int64 { n, _ := runSettingOf(name).parseSetting(l.here[name]); return n }
	return Size{MemoryBytes: read(nameMemory), CPU: coresOf(read(nameCPU)), DiskBytes: read(nameDisk)}
}

func (l *loader) sizeRemote() Size {
	return Size{
		MemoryBytes: l.runAmount(nameMemory), CPU: coresOf(l.runAmount(nameCPU)), DiskBytes: l.runAmount(nameDisk),
		Snapshot: l.runText(nameSnapshot), Image: l.runText(nameImage),
	}
}
