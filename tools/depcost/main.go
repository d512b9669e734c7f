// Command depcost measures what each dependency of the product costs: bytes of
// the stripped binary and milliseconds of start-up. Anybody can rerun it; it
// needs Go and the module cache, no network.
//
// For each file below uses/ it builds a small program that calls the library
// the way the product does, in the versions of the product's go.mod. It is a
// module of its own and must not import the product.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "depcost: error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("depcost", flag.ContinueOnError)
	root := flags.String("C", "../..", "folder of the product's go.mod")
	runs := flags.Int("runs", 200, "starts of each program")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := uses()
	if err != nil {
		return err
	}
	versions, err := required(*root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "depcost")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bench, err := newBench(*root, dir)
	if err != nil {
		return err
	}
	report, err := measure(bench, all, *runs)
	if err != nil {
		return err
	}
	report.print(out, versions)
	return nil
}
