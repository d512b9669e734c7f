//go:build race

package store_test

// processes are fewer under the race detector: each is many times slower, and what
// they may wait for each other is five seconds.
const processes = 16
