package store

import "sync"

// board is where the goroutines of one process wait for news of a task. News may
// come without a change, and a change of another process without news: whoever hears
// looks.
type board struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool // by topic
}

// hear gives a channel on which something comes after news of the topic, until
// leave.
func (b *board) hear(topic string) (heard <-chan struct{}, leave func()) {
	news := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string]map[chan struct{}]bool{}
	}
	if b.waiting[topic] == nil {
		b.waiting[topic] = map[chan struct{}]bool{}
	}
	b.waiting[topic][news] = true
	return news, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting[topic], news)
		if len(b.waiting[topic]) == 0 {
			delete(b.waiting, topic)
		}
	}
}

// tell wakes those who wait for a topic, and never waits for them.
func (b *board) tell(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wake(b.waiting[topic])
}

// tellAll wakes everybody: news may have been missed.
func (b *board) tellAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiting := range b.waiting {
		wake(waiting)
	}
}

func wake(waiting map[chan struct{}]bool) {
	for news := range waiting {
		select {
		case news <- struct{}{}:
		default: // it has news that it did not read yet
		}
	}
}
