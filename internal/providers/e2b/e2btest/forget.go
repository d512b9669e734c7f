package e2btest

// Forget drops a sandbox's record and the edge's entry while its VM runs on, as a
// DELETE does that its node has refused.
func (f *Fake) Forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.known(id)
	b.orphan = true
	f.end(b, f.o.Now())
}
