//go:build race

package task_test

// seedsOfATest are fewer under the race detector, which makes each many times slower.
const seedsOfATest = 60
