//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
	"github.com/rogpeppe/go-internal/testscript"

	"sbx/internal/testkit/stagedfleet"
)

// staged sets the stage of internal/testkit/stagedfleet for a script, or holds what a verb says of
// it against what is so:
//
//	staged [idle]                        serve it, and put it into the environment
//	staged stuck FILE EXPRESSION         the expression gives the refs of the 26, in any order
//	staged causes FILE EXPRESSION        it gives "REF CAUSE" of each of the 26
//	staged unjudged FILE EXPRESSION      it gives the refs of the 10
//	staged ref ROLE                      $REF is one sandbox of the role
//	staged running PROVIDER              $RUNNING is how many VMs run there, in truth
func staged(ts *testscript.TestScript, neg bool, args []string) {
	worlds, ok := ts.Value(remotesKey{}).(*remotes)
	if !ok || neg {
		ts.Fatalf("usage: staged [idle|stuck|causes|unjudged|ref|running]")
	}
	if worlds.stage == nil {
		worlds.stage = stagedfleet.New(worlds, stagedfleet.Options{Idle: slices.Contains(args, "idle"), Few: true})
		for key, value := range worlds.stage.Listen() {
			ts.Setenv(key, value)
		}
		return
	}
	stage := worlds.stage
	word := strings.Join(args[:min(1, len(args))], "")
	switch {
	case word == "ref" && len(args) == 2:
		refs := stage.Refs(func(r stagedfleet.Role) bool { return string(r) == args[1] })
		ts.Setenv("REF", refs[0])
	case word == "running" && len(args) == 2:
		running := map[string]func() int{"e2b": stage.E2B.Running, "novita": stage.Novita.Running, "monotask": stage.MonoTask.Running}
		ts.Setenv("RUNNING", strconv.Itoa(running[args[1]]()))
	case len(args) == 3:
		compareStage(ts, stage, word, ts.ReadFile(args[1]), args[2])
	default:
		ts.Fatalf("staged knows no %v", args)
	}
}

// compareStage holds a list that an expression gives against the stage.
func compareStage(ts *testscript.TestScript, stage *stagedfleet.Fleet, word, document, expression string) {
	var want []string
	for _, m := range stage.Members {
		switch {
		case word == "stuck" && m.Role.Stuck(), word == "unjudged" && m.Role.Unjudged():
			want = append(want, m.Ref.String())
		case word == "causes" && m.Role.Stuck():
			want = append(want, m.Ref.String()+" "+string(m.Role))
		}
	}
	slices.Sort(want)
	var input any
	ts.Check(json.Unmarshal([]byte(document), &input))
	query, err := gojq.Parse(expression)
	ts.Check(err)
	result, _ := query.Run(input).Next()
	list, ok := result.([]any)
	if !ok {
		ts.Fatalf("%s gives no list: %v", expression, result)
	}
	got := make([]string, 0, len(list))
	for _, item := range list {
		got = append(got, fmt.Sprint(item))
	}
	slices.Sort(got)
	if slices.Equal(got, want) {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(got, s) })
	more := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return slices.Contains(want, s) })
	ts.Fatalf("%s: %d named, %d are so\nnot named: %q\nnamed and not so: %q", word, len(got), len(want), missing, more)
}
