//go:build race

package cleanup_test

// seedsOfATest are fewer under the race detector, which makes each many times slower.
const seedsOfATest = 60
