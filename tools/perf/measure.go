package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// listed is how many sandboxes the listing has (issue 2).
const listed = 500

// local measures the sandboxes of this machine and returns how their limits hold.
func (s stage) local(t *table, runs int, watched time.Duration) (string, error) {
	if err := errors.Join(s.life(t, runs), s.list(t, runs)); err != nil {
		return "", err
	}
	held, err := s.rest(t, 10, watched)
	return "; limits by " + held, err
}

// starts times whole processes that do next to nothing.
func (s stage) starts(t *table, runs int) error {
	var bare, version []float64
	for range runs {
		_, b, err := s.timed(s.bare)
		if err != nil {
			return err
		}
		_, v, err := s.sbxRun("version")
		if err != nil {
			return err
		}
		bare, version = append(bare, b), append(version, v)
	}
	t.add("a bare Go program, whole process", "", "ms", bare...)
	t.add("`sbx version`, whole process", "10", "ms", version...)
	return nil
}

// life times create and end, by the command line and by calls.
func (s stage) life(t *table, runs int) error {
	var create, terminate []float64
	for range runs {
		ref, took, err := s.sbxRun("create", "--", "sh", "-c", stubborn)
		if err != nil {
			return err
		}
		create = append(create, took)
		if err := s.says(ref, "up"); err != nil {
			return err
		}
		if _, took, err = s.sbxRun("terminate", ref, "-q"); err != nil {
			return err
		}
		terminate = append(terminate, took)
		if _, _, err = s.sbxRun("terminate", "--delete", ref, "-q"); err != nil {
			return err
		}
	}
	calls, err := s.probeRun("life", s.state(), strconv.Itoa(runs))
	if err != nil {
		return err
	}
	t.add("create: the call", "25", "ms", calls["create"]...)
	t.add("create: `sbx create`, whole process", "25", "ms", create...)
	t.add("kill of a stubborn tree, verified: the calls, no grace", "15", "ms", calls["kill"]...)
	t.add("the same with the grace of 5 s that the command line gives", "15", "ms", calls["kill_grace"]...)
	t.add("the same by `sbx terminate REF`, whole process", "", "ms", terminate...)
	t.add("end of a program that TERM ends, verified: the calls", "", "ms", calls["end_polite"]...)
	return nil
}

// stubborn is the probe's: two generations that ignore TERM, one forked away.
const stubborn = `trap "" TERM; (setsid sh -c 'trap "" TERM; echo up; while :; do sleep 600; done' &) ; while :; do sleep 600; done`

// says waits until a sandbox has printed a line.
func (s stage) says(ref, line string) error {
	follow, lines, err := s.follow(ref)
	if err != nil {
		return err
	}
	defer quit(follow)
	for lines.Scan() {
		if lines.Text() == line {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%s never said %q", ref, line), lines.Err())
}

func (s stage) follow(ref string) (*exec.Cmd, *bufio.Scanner, error) {
	cmd := s.command(s.sbx, "logs", "-f", "--tail", "1", ref)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, bufio.NewScanner(out), cmd.Start()
}

func quit(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended by itself
	_ = cmd.Wait()         // killed, as meant
}

// list times a listing of many sandboxes against a bare loop over their files.
func (s stage) list(t *table, runs int) error {
	holder := s.command(s.probe, "hold", s.state(), strconv.Itoa(listed))
	holder.Stderr = os.Stderr
	in, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return err
	}
	defer func() {
		_ = in.Close()
		_ = holder.Wait() // its records go with the stage
		_ = os.RemoveAll(s.state())
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return fmt.Errorf("the probe holds nothing: %q: %w", line, err)
	}
	var table, asJSON []float64
	for range runs {
		text, took, err := s.sbxRun("ls")
		if err != nil {
			return err
		}
		if n := strings.Count(text, "\n"); n != listed {
			return fmt.Errorf("ls shows %d sandboxes", n)
		}
		table = append(table, took)
		if _, took, err = s.sbxRun("ls", "-o", "json"); err != nil {
			return err
		}
		asJSON = append(asJSON, took)
	}
	calls, err := s.probeRun("list", s.state(), strconv.Itoa(runs))
	if err != nil {
		return err
	}
	t.add("a bare Go loop over the files of 500 sandboxes", "", "ms", calls["bare_loop"]...)
	t.add("sweep and list of 500: the calls", "", "ms", calls["list"]...)
	t.add("their ratio", "2", "times", ratios(calls["list"], calls["bare_loop"])...)
	t.add("`sbx ls` of 500, whole process", "", "ms", table...)
	t.add("`sbx ls -o json` of 500, whole process", "", "ms", asJSON...)
	return nil
}

// rest weighs sandboxes that do nothing: memory and wake-ups. It returns how
// their limits hold.
func (s stage) rest(t *table, boxes int, watched time.Duration) (string, error) {
	var supervisors, stubs, loud []float64
	var last keeper
	for i := range boxes {
		script := "echo up; exec sleep 600"
		if i%2 == 1 { // one that has written 20 MB in 100-byte lines
			script = `i=0; while [ $i -lt 200 ]; do seq -f "%099.0f" 1000; i=$((i+1)); done; echo up; exec sleep 600`
		}
		ref, _, err := s.sbxRun("create", "--", "sh", "-c", script)
		if err != nil {
			return "", err
		}
		if err := s.says(ref, "up"); err != nil {
			return "", err
		}
		if last, err = s.keeper(ref); err != nil {
			return "", err
		}
		supervisor, err := anonymous(last.Supervisor.PID)
		if err != nil {
			return "", err
		}
		stub, err := anonymous(last.Stub.PID)
		if err != nil {
			return "", err
		}
		if i%2 == 1 {
			loud = append(loud, supervisor)
		} else {
			supervisors = append(supervisors, supervisor)
		}
		stubs = append(stubs, stub)
	}
	t.add("supervisor, anonymous memory", "4096", "KiB", supervisors...)
	t.add("the same after 20 MB of output", "4096", "KiB", loud...)
	t.add("stub, anonymous memory", "", "KiB", stubs...)
	return last.Limits.Enforcement + ", " + last.Limits.Isolation, s.idle(t, watched)
}

// idle counts wake-ups of a follower, its supervisor and its stub while the
// program writes nothing.
func (s stage) idle(t *table, watched time.Duration) error {
	ref, _, err := s.sbxRun("create", "--", "sh", "-c", "echo up; exec sleep 600")
	if err != nil {
		return err
	}
	follow, lines, err := s.follow(ref)
	if err != nil {
		return err
	}
	defer quit(follow)
	if !lines.Scan() {
		return errors.Join(errors.New("the follower shows nothing"), lines.Err())
	}
	k, err := s.keeper(ref)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // until the start is over: a runtime trims its memory and parks its threads
	pids := []int{follow.Process.Pid, k.Supervisor.PID, k.Stub.PID}
	var before []float64
	for _, pid := range pids {
		n, err := switches(pid)
		if err != nil {
			return err
		}
		before = append(before, n)
	}
	time.Sleep(watched)
	for i, who := range []string{"`sbx logs -f`", "supervisor", "stub"} {
		n, err := switches(pids[i])
		if err != nil {
			return err
		}
		t.add(fmt.Sprintf("wake-ups of an idle %s in %s", who, watched), "", "switches", n-before[i])
	}
	kib, err := anonymous(k.Supervisor.PID)
	if err != nil {
		return err
	}
	t.add(fmt.Sprintf("supervisor, anonymous memory after %s at rest", watched), "4096", "KiB", kib)
	return nil
}
