// Command sbom writes the bill of materials of a Go binary as CycloneDX 1.6
// JSON: which modules are linked, in which versions, with their checksums.
//
// It reads what the Go linker recorded in the binary, so the bill cannot
// differ from the program, and it needs neither network nor installed tools.
// The same binary always gives the same bytes. It is a module of its own and
// must not import the product.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom: error:", err)
		os.Exit(1)
	}
}

// run writes the bill of args[0] to the file args[1], or to out without one.
func run(args []string, out io.Writer) error {
	if len(args) < 1 || len(args) > 2 {
		return fmt.Errorf("usage: sbom BINARY [DOCUMENT]")
	}
	bill, err := read(args[0])
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(bill, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the bill of %s: %w", args[0], err)
	}
	text = append(text, '\n')
	if len(args) == 2 {
		return os.WriteFile(args[1], text, 0o644)
	}
	_, err = out.Write(text)
	return err
}
