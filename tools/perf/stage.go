package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stage is where sandboxes are made and measured: a home and a state folder of
// its own, below a temporary one.
type stage struct {
	programs
	dir string
}

func (s stage) state() string { return filepath.Join(s.dir, "state") }

// command prepares a program with nothing of the caller's environment but PATH.
func (s stage) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "SBX_STATE_DIR=" + s.state()}
	return cmd
}

// sbxRun runs the product and returns what it printed and how long the whole
// process took, in milliseconds.
func (s stage) sbxRun(args ...string) (string, float64, error) { return s.timed(s.sbx, args...) }

func (s stage) timed(program string, args ...string) (string, float64, error) {
	cmd := s.command(program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begun := time.Now()
	err := cmd.Run()
	took := time.Since(begun)
	if err != nil {
		return "", 0, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), float64(took.Microseconds()) / 1000, nil
}

// probeRun runs the probe and returns its figures by name.
func (s stage) probeRun(args ...string) (map[string][]float64, error) {
	text, _, err := s.timed(s.probe, args...)
	if err != nil {
		return nil, err
	}
	return parseFigures(text)
}

func parseFigures(text string) (map[string][]float64, error) {
	figures := map[string][]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("the probe said %q", line)
		}
		figures[name] = append(figures[name], n)
	}
	return figures, nil
}

// keeper is who looks after a sandbox.
type keeper struct {
	Supervisor struct {
		PID int `json:"pid"`
	} `json:"supervisor"`
	Stub struct {
		PID int `json:"pid"`
	} `json:"stub"`
	Limits struct {
		Enforcement string `json:"enforcement"`
		Isolation   string `json:"isolation"`
	} `json:"limits"`
}

func (s stage) keeper(ref string) (keeper, error) {
	var k keeper
	_, id, _ := strings.Cut(ref, "/")
	raw, err := os.ReadFile(filepath.Join(s.state(), "local", id, "record.json"))
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(raw, &k); err != nil {
		return k, err
	}
	if k.Supervisor.PID == 0 || k.Stub.PID == 0 {
		return k, fmt.Errorf("%s: the record names no supervisor or stub", ref)
	}
	return k, nil
}

// end leaves no sandbox behind.
func (s stage) end() error {
	refs, _, err := s.sbxRun("ls", "--all", "-o", "name")
	if err != nil || refs == "" {
		return err
	}
	_, _, err = s.sbxRun(append([]string{"terminate", "--delete", "--yes", "--grace", "1s"}, strings.Fields(refs)...)...)
	return errors.Join(err, os.RemoveAll(s.state()))
}
