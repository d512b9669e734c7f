// Command house measures the rooms of the product: how large each is, how its functions are
// named, and how its files depend on each other. Anybody can rerun it; it needs Go and the
// module cache, no network. A room is the folder of one package; the ground floor comes first.
// Test support, which is what stands below internal/testkit, has no row: its lines are tests.
//
// Files and lines are those of all Go files of the folder that are no tests, comments and
// empty lines included; code leaves those two out. Tests are the lines of its tests; those of
// all rooms, and of test support, are in the total. The rest is of the files that this platform
// builds, without tests:
//
//   - Exported: declarations and methods whose name other rooms can use.
//   - Functions are declared functions and methods; main is left out.
//   - One word: unexported functions whose name has no upper-case letter and no underscore, in
//     percent of the unexported ones. A search for such a name finds too much.
//   - Shared: unexported functions whose name three or more unexported functions of the room
//     have (in the row of the total: of all rooms), in percent of the unexported ones.
//   - Arrows: file A has an arrow to file B of the same room if A uses anything that B declares
//     at the level of the package: a constant, a type, a variable, a function or a method.
//     However often A uses B, it is one arrow. Fields and the methods of interfaces are parts
//     of their types and no declarations of their own.
//   - Upward: the files are put into an order in which as few arrows as possible lead back,
//     and the arrows that do are upward. Files that use each other in a circle, directly or by
//     others (a strongly connected component), are ordered by the heuristic of Eades, Lin and
//     Smyth; between two such groups no arrow leads back. The result depends on the arrows
//     alone: of equal files the one whose name comes first is taken.
//   - In circles: the files that are part of any circle.
//
// It is a module of its own and must not import the product.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := runTool(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "house: error:", err)
		os.Exit(1)
	}
}

func runTool(args []string, out io.Writer) error {
	var rooms []string
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	root := flags.String("C", "../..", "folder of the go.mod of the product")
	asJSON := flags.Bool("json", false, "print JSON")
	arrows := flags.Bool("arrows", false, "also list the arrows that run upward")
	flags.Func("room", "measure the room in this folder, as internal/fleet (repeatable; default: all)", func(room string) error {
		rooms = append(rooms, strings.TrimSuffix(room, "/"))
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	packages, err := loadRooms(*root, rooms)
	if err != nil {
		return err
	}
	report := measureRooms(packages)
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	printTable(out, report)
	if *arrows {
		printArrows(out, report)
	}
	return nil
}
