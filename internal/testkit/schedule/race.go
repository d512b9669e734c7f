//go:build race

package schedule

// DefaultSeeds is how many seeds a simulation plays by default. They are fewer under the
// race detector, which makes each many times slower.
const DefaultSeeds = 60
