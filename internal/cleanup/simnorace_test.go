//go:build !race

package cleanup_test

// seedsOfATest is how many seeds `go test` plays.
const seedsOfATest = 500
