//go:build race

package store_test

// processes are fewer under the race detector: each is many times slower, and they may wait
// for each other for five seconds only.
const processes = 16
