package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

// row is what one library costs.
type row struct {
	use     use
	alone   int64         // bytes it adds to the bare program
	onTop   int64         // bytes the program with all libraries loses without it
	startup time.Duration // what it adds to the median start of the bare program
	memory  int           // anonymous KiB that it adds to the bare program
	modules int           // modules it brings, itself included
}

// report is the result of one measurement.
type report struct {
	bare, all           program
	bareStart, allStart time.Duration
	bareMemory          int // anonymous KiB; -1 = the system does not tell
	allMemory           int
	rows                []row
	runs                int
}

// measure builds the bare program, one per library, one with all of them and
// one with all but each, and starts the first three kinds runs times in turn,
// so that a slow moment of the machine hits all alike.
func measure(b bench, list []use, runs int) (report, error) {
	r := report{runs: runs}
	var err error
	if r.bare, err = b.build("bare", nil); err != nil {
		return r, err
	}
	if r.all, err = b.build("all", list); err != nil {
		return r, err
	}
	programs := []program{r.bare, r.all}
	for i, u := range list {
		with, err := b.build("with-"+u.name, []use{u})
		if err != nil {
			return r, err
		}
		others, err := b.build("without-"+u.name, slices.Delete(slices.Clone(list), i, i+1))
		if err != nil {
			return r, err
		}
		programs = append(programs, with)
		r.rows = append(r.rows, row{use: u, alone: with.bytes - r.bare.bytes, onTop: r.all.bytes - others.bytes, modules: with.modules})
	}
	if err := r.observe(programs); err != nil {
		return r, err
	}
	slices.SortStableFunc(r.rows, func(a, b row) int { return cmp.Compare(b.alone, a.alone) })
	return r, nil
}

// observe starts the programs, the bare one and the one with all first, and
// fills in time and memory.
func (r *report) observe(programs []program) error {
	medians, err := starts(programs, r.runs)
	if err != nil {
		return err
	}
	memory, err := memories(programs)
	if err != nil {
		return err
	}
	r.bareStart, r.allStart = medians[0], medians[1]
	r.bareMemory, r.allMemory = memory[0], memory[1]
	for i := range r.rows {
		r.rows[i].startup = medians[i+2] - r.bareStart
		r.rows[i].memory = memory[i+2] - r.bareMemory
	}
	return nil
}

// memories returns the median anonymous memory of each program in 9 starts.
func memories(programs []program) ([]int, error) {
	medians := make([]int, len(programs))
	for i, p := range programs {
		var seen []int
		for range 9 {
			kib, err := p.anonymous()
			if err != nil {
				return nil, fmt.Errorf("start %s: %w", p.path, err)
			}
			seen = append(seen, kib)
		}
		medians[i] = median(seen)
	}
	return medians, nil
}

// starts returns the median start of each program.
func starts(programs []program, runs int) ([]time.Duration, error) {
	took := make([][]time.Duration, len(programs))
	for range runs {
		for i, p := range programs {
			d, err := p.start()
			if err != nil {
				return nil, fmt.Errorf("start %s: %w", p.path, err)
			}
			took[i] = append(took[i], d)
		}
	}
	medians := make([]time.Duration, len(programs))
	for i := range took {
		medians[i] = median(took[i])
	}
	return medians, nil
}

// median is the middle of the values, the upper one of two; 0 of none.
func median[T cmp.Ordered](values []T) (zero T) {
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// print writes the report as Markdown; MB are 1,000,000 bytes,
// memory is anonymous and resident.
func (r report) print(out io.Writer, versions map[string]string) {
	fmt.Fprintf(out, "%s, %s/%s, static and stripped, medians of %d starts.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, r.runs)
	fmt.Fprintln(out, "| module | version | alone MB | on top of the others MB | start ms | memory KiB | modules |")
	fmt.Fprintln(out, "|---|---|---:|---:|---:|---:|---:|")
	for _, row := range r.rows {
		version := cmp.Or(versions[row.use.module], "-")
		fmt.Fprintf(out, "| %s | %s | %.2f | %.2f | %+.2f | %+d | %d |\n", row.use.module, version, mb(row.alone), mb(row.onTop), ms(row.startup), row.memory, row.modules)
	}
	fmt.Fprintf(out, "\nBare program: %.2f MB, %.2f ms, %d KiB. With all of them: %.2f MB, %.2f ms, %d KiB, %d modules.\n",
		mb(r.bare.bytes), ms(r.bareStart), r.bareMemory, mb(r.all.bytes), ms(r.allStart), r.allMemory, r.all.modules)
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
