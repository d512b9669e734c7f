package schedule

import (
	"fmt"
	"iter"
	"strconv"
)

// Seeds are the seeds of one run: the known ones, then half of Total from 1 upwards, then
// the other half from From upwards.
type Seeds struct {
	Known []uint64 // seeds that once broke a rule; always played
	Total uint64   // how many are played besides Known
	From  uint64   // where the random half starts
}

// Names of the environment variables that ReadSeeds reads.
const (
	EnvTotal = "SBX_SEEDS"      // how many seeds are played
	EnvFrom  = "SBX_SEEDS_FROM" // where the random half starts
	EnvSeed  = "SBX_SEED"       // the one seed to replay
)

// ReadSeeds makes Seeds from environment variables: total unless EnvTotal is set, a random
// From unless EnvFrom is set, and one alone where EnvSeed is set. chance returns 64 random bits.
func ReadSeeds(env func(string) string, chance func() uint64, known []uint64, total uint64) (Seeds, error) {
	// Random starts stay below 2^53, so that a seed survives JSON and shells.
	s := Seeds{Known: known, Total: total, From: chance() >> 11}
	var one uint64
	for _, v := range []struct {
		name string
		into *uint64
	}{{EnvTotal, &s.Total}, {EnvFrom, &s.From}, {EnvSeed, &one}} {
		word := env(v.name)
		if word == "" {
			continue
		}
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return Seeds{}, fmt.Errorf("%s=%q is not a number of seeds: %w", v.name, word, err)
		}
		*v.into = n
	}
	if one > 0 {
		s = Seeds{Known: []uint64{one}}
	}
	return s, nil
}

// All yields every seed of the run once.
func (s Seeds) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		seen := map[uint64]bool{}
		for seed := range s.inOrder() {
			if seen[seed] || seed == 0 {
				continue
			}
			if seen[seed] = true; !yield(seed) {
				return
			}
		}
	}
}

// inOrder yields the three parts of the run, one after the other.
func (s Seeds) inOrder() iter.Seq[uint64] {
	half := s.Total / 2
	count := uint64(len(s.Known)) + s.Total
	return func(yield func(uint64) bool) {
		for n := range count {
			seed := n - uint64(len(s.Known)) + 1
			switch {
			case n < uint64(len(s.Known)):
				seed = s.Known[n]
			case seed > s.Total-half:
				seed = s.From + seed - (s.Total - half) - 1
			}
			if !yield(seed) {
				return
			}
		}
	}
}

// Batch yields every seed whose index in All is batch modulo batches, so that parallel
// tests share the run.
func (s Seeds) Batch(batch, batches int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		place := 0
		for seed := range s.All() {
			if place%batches == batch && !yield(seed) {
				return
			}
			place++
		}
	}
}

// String says how to play the same seeds again.
func (s Seeds) String() string {
	return fmt.Sprintf("%d known seeds, %d from 1, %d from %d (%s=%d)",
		len(s.Known), s.Total-s.Total/2, s.Total/2, s.From, EnvFrom, s.From)
}
