package config

// distinct collects values in the order in which they come, each once.
type distinct[T comparable] struct {
	list []T
	seen map[T]bool
}

func (d *distinct[T]) add(v T) {
	if d.seen[v] {
		return
	}
	if d.seen == nil {
		d.seen = map[T]bool{}
	}
	d.seen[v] = true
	d.list = append(d.list, v)
}
