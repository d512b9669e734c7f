package vercel

import "sync"

// names keeps which sandbox a session belonged to that was asked to be deleted:
// once it is gone nobody else can tell, and its end is proved by the name.
type names struct {
	mu sync.Mutex
	of map[string]string
}

func (n *names) note(session, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]string{}
	}
	n.of[session] = name
}

func (n *names) get(session string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[session]
}
