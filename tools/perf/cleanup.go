package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// crowd100 is how many things each program ends.
const crowd100 = 100

// entrant is one program of the contest, on its API.
type entrant struct {
	name   string
	kind   string // of world
	worlds int
	things int // in each world
	run    func(s stage, at []string) (*exec.Cmd, error)
	exact  bool // every thing must have been gone when the program ended
	last   bool // is run less often, since it takes long
}

// cleanup measures `sbx cleanup`, `kubectl delete` and `docker rm` in turn, each on a
// fake of its API with the same delays, and prints one table.
func (s stage) cleanup(runs int, out io.Writer) error {
	address, end, err := serving(worldsWord)
	if err != nil {
		return err
	}
	defer end()
	all, missing := entrants()
	before := load()
	results := make([]result, len(all))
	for i := range runs {
		for k, e := range all {
			if e.last && i >= (runs+3)/4 {
				continue
			}
			if err := s.enter(address, e, &results[k]); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	machine(out, before, "")
	printContest(out, all, results)
	for _, m := range missing {
		fmt.Fprintf(out, "\n%s is not on PATH: its rows are missing.\n", m)
	}
	return nil
}

// enter runs one program once, against worlds of its own.
func (s stage) enter(server string, e entrant, r *result) error {
	var at []string
	for range e.worlds {
		address, err := ask(http.MethodPost, fmt.Sprintf("%s/%s/%d", server, e.kind, e.things))
		if err != nil {
			return err
		}
		at = append(at, string(address))
	}
	if err := os.RemoveAll(s.state()); err != nil { // what an earlier program has recorded is not read by the next
		return err
	}
	cmd, err := e.run(s, at)
	if err != nil {
		return err
	}
	got, err := spend(cmd, "\n")
	if err != nil {
		return err
	}
	var sum tally
	for _, address := range at {
		raw, err := ask(http.MethodDelete, server+"/"+address)
		if err != nil {
			return err
		}
		var t tally
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		sum.Requests, sum.Asked, sum.Left, sum.Most = sum.Requests+t.Requests, sum.Asked+t.Asked, sum.Left+t.Left, max(sum.Most, t.Most)
	}
	if got.exit != 0 || sum.Asked != e.worlds*e.things || (e.exact && sum.Left > 0) {
		return fmt.Errorf("exit %d, %d asked, %d left: %s", got.exit, sum.Asked, sum.Left, strings.TrimSpace(got.errs))
	}
	r.add(got, sum)
	return nil
}

func ask(method, address string) ([]byte, error) {
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, address, res.Status, text)
	}
	return text, err
}

// entrants are the programs, and the names of those that are not on PATH.
func entrants() (all []entrant, missing []string) {
	all = ours()
	for _, p := range peers() {
		if _, err := exec.LookPath(p.program); err != nil {
			missing = append(missing, p.program)
			continue
		}
		all = append(all, p.entrants...)
	}
	return all, missing
}

// ours are the rows of sbx.
func ours() []entrant {
	age := []string{"--ignore-activity"}
	all := []entrant{
		{name: "sbx cleanup of 100, by age", kind: "monotask", worlds: 1, things: crowd100, run: sbx("monotask", 16, age...), exact: true},
		{name: "the same, after a look for life", kind: "monotask", worlds: 1, things: crowd100, run: sbx("monotask", 16), exact: true},
		{name: "the same on E2B's API, by age", kind: "e2b", worlds: 1, things: crowd100, run: sbx("e2b", 16, age...), exact: true},
		{name: "102 over three profiles, by age", kind: "monotask", worlds: 3, things: 34, run: sbx("monotask", 16, age...), exact: true},
		{name: "nothing to do", kind: "monotask", worlds: 1, things: 0, run: sbx("monotask", 16, age...), exact: true},
		{name: "100 by age, --concurrency 32", kind: "monotask", worlds: 1, things: crowd100, run: sbx("monotask", 32, age...), exact: true},
	}
	for _, c := range []int{8, 16, 32} {
		name := fmt.Sprintf("1,002 over three profiles, --concurrency %d", c)
		all = append(all, entrant{name: name, kind: "e2b", worlds: 3, things: 334, run: sbx("e2b", c, age...), exact: true, last: true})
	}
	return all
}

// sbx prepares a cleanup of everything that the worlds hold.
func sbx(kind string, concurrency int, more ...string) func(stage, []string) (*exec.Cmd, error) {
	return func(s stage, at []string) (*exec.Cmd, error) {
		var b strings.Builder
		fmt.Fprintln(&b, "providers:")
		args := []string{"cleanup", "--older-than", "10m", "--yes", "-q", "--max-delete", "10000", "--max-fraction", "100%", "--concurrency", fmt.Sprint(concurrency)}
		var env []string
		for i, address := range at {
			where := "url: http://" + address
			if kind == "e2b" {
				where += ", sandbox_url: http://" + address
			}
			fmt.Fprintf(&b, "  p%d: {type: %s, owned: all, token_env: KEY_%d, %s}\n", i, kind, i, where)
			env = append(env, fmt.Sprintf("KEY_%d=%s%d", i, key, i)) // one account each
			args = append(args, "--provider", fmt.Sprintf("p%d", i))
		}
		file := filepath.Join(s.dir, "cleanup.yaml")
		cmd := s.command(s.sbx, append(append(args, "--config", file), more...)...)
		cmd.Env = append(cmd.Env, env...)
		return cmd, os.WriteFile(file, []byte(b.String()), 0o600)
	}
}

// peer is a program that others wrote.
type peer struct {
	program  string
	entrants []entrant
}

func peers() []peer {
	kubectl := func(more ...string) func(stage, []string) (*exec.Cmd, error) {
		return func(s stage, at []string) (*exec.Cmd, error) {
			return s.command("kubectl", append([]string{"--server", "http://" + at[0], "delete", "pods", "--all"}, more...)...), nil
		}
	}
	docker := func(s stage, at []string) (*exec.Cmd, error) {
		cmd := s.command("docker", append([]string{"rm", "-f"}, newWorld(crowd100, epoch()).ids...)...)
		cmd.Env = append(cmd.Env, "DOCKER_HOST=tcp://"+at[0])
		return cmd, nil
	}
	return []peer{
		{"kubectl", []entrant{
			{name: "kubectl delete pods --all", kind: "pods", worlds: 1, things: crowd100, run: kubectl(), exact: true, last: true},
			{name: "kubectl delete pods --all --wait=false", kind: "pods", worlds: 1, things: crowd100, run: kubectl("--wait=false")},
		}},
		{"docker", []entrant{{name: "docker rm -f of 100", kind: "containers", worlds: 1, things: crowd100, run: docker}}},
	}
}
