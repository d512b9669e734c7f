//go:build !race

package schedule

// DefaultSeeds is how many seeds a simulation plays by default.
const DefaultSeeds = 500
