// Package providertest is the conformance suite of the provider contract, which every provider passes.
//
// A check uses the provider through the contract only, and what it makes of a sandbox is the verdict of
// the program itself (fleet, triage). Config has what a check needs beyond it, such as
// how a sandbox is made where the provider has no create. No knowledge of any one provider enters this
// package.
package providertest

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// T is the part of testing.TB that checks use; see Attempt for another implementation.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
	Skipf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
}

// Config configures the suite for one provider.
type Config struct {
	// New opens a new provider for one check.
	New func(t T) providers.Provider
	// Start starts one running sandbox and returns its id. Nil: Create with spec, with the
	// Command `sleep 600` where it has none.
	Start func(t T, p providers.Provider, spec sandbox.Spec) string
	// Write starts a running sandbox that has written the given lines to stdout, each a single
	// word. Nil: a `sh -c` with echoes.
	Write func(t T, p providers.Provider, lines []string) string
	// Paused makes a paused sandbox; nil = the provider has no pause.
	Paused func(t T, p providers.Provider) string
	// Orphan makes a sandbox that runs and has no record, as after an end that its node refused;
	// nil = not possible.
	Orphan func(t T, p providers.Provider) string
	// Simulated says that programs are simulated: they see no arguments, files or signals.
	Simulated bool
	everyEnd  bool
	// Many is a number of sandboxes that exceeds one page of a listing; 0 = 3.
	Many int
	// Limit is the limit of each wait; 0 = 10 s.
	Limit time.Duration
	// EndLimit is the limit of each wait for an end that was acknowledged, or for its proof; 0 = Limit.
	EndLimit time.Duration
	// Eventually waits until ok is true; false after the limit; nil = it polls every few
	// milliseconds.
	Eventually func(limit time.Duration, ok func() bool) bool
	// Foreign adds a running sandbox that sbx has not made, and in which nothing runs; nil = there is
	// none.
	Foreign func(t T, p providers.Provider) string
	// Secrets are credentials that no error may contain.
	Secrets []string
}

// Check is one rule of the contract.
type Check struct {
	Name    string
	Ability string // that it needs, by its name in providers.Abilities; "" = none
	Run     func(t T, s *Subject)
}

// Checks lists every check.
func Checks() []Check { return slices.Concat(basicChecks(), abilityChecks(), programChecks()) }

// basicChecks are the checks of the methods of every provider, and of logs.
func basicChecks() []Check {
	return []Check{
		{"list_contains_what_was_created", "", checkListContains},
		{"list_reads_every_page_once", "", checkListPages},
		{"list_can_be_read_again", "", checkListTwice},
		{"list_stops_with_its_consumer", "", checkListStops},
		{"list_narrows_without_losing", "", checkListQuery},
		{"ids_are_references", "", checkIDs},
		{"get_agrees_with_list", "", checkGetAgreesWithList},
		{"get_answers_about_the_id_that_was_asked", "", checkGetID},
		{"get_of_unknown_is_not_found", "", checkUnknown("get")},
		{"terminate_of_unknown_is_not_found", "", checkUnknown("terminate")},
		{"times_are_not_in_the_future", "", checkTimes},
		{"terminate_ends", "", checkTerminate},
		{"terminate_with_delete_leaves_nothing", "", checkDelete},
		{"terminate_twice_is_gone", "", checkTerminateTwice},
		{"terminate_ends_one_only", "", checkTerminateOne},
		{"ended_is_not_listed_as_running", "", checkEndedListing},
		{"canceled_calls_return_at_once", "", checkCanceled},
		{"a_passed_deadline_is_a_timeout", "", checkDeadline},
		{"list_ends_with_ctx", "", checkListContext},
		{"reading_changes_nothing", "", checkReadsChangeNothing},
		{"reading_wakes_nothing", "", checkReadsWakeNothing},
		{"errors_are_faults", "", checkErrors},
		{"no_goroutine_is_left", "", checkGoroutines},
		{"logs_tell_everything_in_order", "logs", checkLogs},
		{"logs_tail", "logs", checkLogsTail},
		{"logs_since", "logs", checkLogsSince},
		{"logs_of_unknown_is_not_found", "logs", checkLogsUnknown},
		{"follow_ends_with_the_sandbox", "logs", checkFollowEnd},
		{"follow_ends_with_ctx", "logs", checkFollowCanceled},
	}
}

func abilityChecks() []Check {
	return []Check{
		{"usage_is_nil_where_unknown", "usage", checkUsage},
		{"usage_of_unknown_is_not_found", "usage", checkUnknown("usage")},
		{"exec_returns_code_and_streams", "exec", checkExecStreams},
		{"exec_returns_the_commands_own_code", "exec", checkExecOwnCodes},
		{"exec_reads_stdin", "exec", checkExecStdin},
		{"exec_passes_env", "exec", checkExecEnv},
		{"exec_of_missing_command", "exec", checkExecMissing},
		{"exec_in_unknown_is_not_found", "exec", checkUnknown("exec")},
		{"exec_ends_with_ctx", "exec", checkExecCanceled},
		{"create_applies_the_spec", "create", checkCreateSpec},
		{"create_gives_each_an_id", "create", checkCreateIDs},
		{"create_hides_env_values", "create", checkCreateSecrets},
		{"create_keeps_the_callers_marks", "create", checkCreateLabels},
		{"create_of_missing_program", "create", checkCreateMissingProgram},
		{"labels_change_and_the_others_stay", "labels", checkEditLabels},
		{"labels_of_unknown_is_not_found", "labels", checkUnknown("labels")},
		{"extend_moves_the_end_and_never_shortens", "extend", checkExtend},
		{"extend_wakes_nothing", "extend", checkExtendWakesNothing},
		{"extend_of_unknown_is_not_found", "extend", checkUnknown("extend")},
		{"probe_of_running_and_ended", "probe", checkProbe},
		{"events_are_in_order", "events", checkEvents},
		{"stats_count_or_are_nil", "stats", checkStats},
		{"sweep_spares_the_living", "sweep", checkSweep},
		{"doctor_finds_something", "doctor", checkDoctor},
		{"follow_shows_an_open_line", "logs", checkFollowOpen},
		{"exit_tells_how_a_program_ended", "exit", checkExitCode},
		{"exit_is_the_programs_own", "exit", checkExitOwnCodes},
		{"exit_is_nil_while_it_runs", "exit", checkExitRunning},
		{"exit_of_unknown_is_not_found", "exit", checkExitUnknown},
		{"admission_is_yes_or_a_reason", "admit", checkAdmission},
		{"quota_tells_sane_limits", "quota", checkQuota},
		{"records_name_what_they_are_of", "records", checkRecords},
		{"activity_lies_in_the_past", "activity", checkActivityTimes},
		{"reasons_are_for_what_is_missing", "", checkReasons},
		{"linger_keeps_the_sandbox", "exit", checkLingerKeeps},
		{"linger_ends_a_follow_with_the_program", "logs", checkLingerFollow},
		{"linger_lets_commands_in", "exec", checkLingerExec},
		{"linger_keeps_the_exit", "exit", checkLingerExit},
		{"verify_does_not_prove_what_runs", "verify", checkVerifyRunning},
		{"verify_proves_an_end", "verify", checkVerifyEnd},
		{"verify_proves_a_delete", "verify", checkVerifyDelete},
		{"verify_takes_no_forgetting_for_an_independent_witness", "verify", checkVerifyForgotten},
		{"what_was_written_is_no_silence", "logs", checkSilenceOfWriter},
		{"what_writes_lines_is_no_silence", "logs", checkSilenceOfSteadyWriter("echo tick")},
		{"what_writes_an_open_line_is_no_silence", "logs", checkSilenceOfSteadyWriter("printf .")},
		{"what_wrote_once_falls_silent", "logs", checkSilenceAfterOutput},
		{"what_another_client_runs_is_no_silence", "exec", checkSilenceOfCommand},
		{"what_has_ended_is_no_outage", "", checkEndedIsNoOutage},
		{"what_sbx_does_is_no_work", "", checkLooksAreNoWork},
		{"a_program_that_has_ended_is_no_work", "exit", checkFinished},
	}
}

// Run checks a provider; the checks run beside each other. Only checks of a missing ability are skipped.
func Run(t *testing.T, c Config) {
	t.Helper()
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel() // each check has a provider of its own
			runCheck(t, c, check)
		})
	}
}

func runCheck(t T, c Config, check Check) {
	t.Helper()
	s := newSubject(t, c)
	if check.Ability != "" && !hasAbility(s.P, check.Ability) {
		t.Skipf("%s has no %s", s.P.Type(), check.Ability)
	}
	check.Run(t, s)
}

func hasAbility(p providers.Provider, ability string) bool {
	for _, a := range providers.Abilities() {
		if a.Name == ability {
			return a.Has(p)
		}
	}
	return false
}

// Verdict is the result of one check.
type Verdict struct {
	Failed   bool
	Skipped  bool
	Messages []string
}

// Attempt runs one check and returns its verdict, so that a test can check that a fault makes it
// fail. A panic counts as failed.
func Attempt(ctx context.Context, c Config, check Check) Verdict {
	return Record(ctx, func(t T) { runCheck(t, c, check) })
}

// Lie is a provider that is wrong, and the check of the suite that has to find it.
type Lie struct {
	Config Config
	Check  string
	Said   string // in a message of the check; "" = any
}

// RunLies shows that the suite can fail: each lie turns its check red. It waits up to limit for an end that
// never comes, and as long as any check for everything else.
func RunLies(t *testing.T, limit time.Duration, lies map[string]Lie) {
	t.Helper()
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lie.Config.EndLimit = limit
			i := slices.IndexFunc(Checks(), func(c Check) bool { return c.Name == lie.Check })
			require.GreaterOrEqual(t, i, 0, "no check %s", lie.Check)
			v := Attempt(t.Context(), lie.Config, Checks()[i])
			assert.True(t, v.Failed)
			assert.Contains(t, strings.Join(v.Messages, "\n"), lie.Said)
		})
	}
}

// Record runs f with its cleanups and returns the verdict instead of ending a test. A panic counts as
// failed.
func Record(ctx context.Context, f func(t T)) Verdict {
	ctx, cancel := context.WithCancel(ctx)
	r := &recorder{ctx: func() context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.runCleanups(cancel)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		f(r)
	}()
	<-done
	return r.v
}

type recorder struct {
	ctx      func() context.Context
	mu       sync.Mutex
	v        Verdict
	cleanups []func()
}

// Helper does nothing: a verdict has no line numbers.
func (r *recorder) Helper() {}

// Errorf marks the check failed.
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.v.Failed = true
	r.v.Messages = append(r.v.Messages, fmt.Sprintf(format, args...))
}

// FailNow marks the check failed and ends it.
func (r *recorder) FailNow() {
	r.mu.Lock()
	r.v.Failed = true
	r.mu.Unlock()
	runtime.Goexit()
}

// Skipf marks the check skipped and ends it.
func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	r.v.Skipped = true
	r.v.Messages = append(r.v.Messages, fmt.Sprintf(format, args...))
	r.mu.Unlock()
	runtime.Goexit()
}

// Cleanup runs f at the end of the check, last in first out.
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Context ends before the cleanups run, as in a test.
func (r *recorder) Context() context.Context { return r.ctx() }

func (r *recorder) runCleanups(cancel func()) {
	cancel()
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

// AtOnce is the number of parallel tests of a package whose tests mostly wait: for a process, a limit,
// a poll. The default of Go is one per core; with 12 the suite was its own noise, at a load of 37 on two cores.
const AtOnce = 4

// Wide runs the tests of a package with AtOnce. It is for TestMain:
//
//	os.Exit(providertest.Wide{M: m}.Run())
type Wide struct{ *testing.M }

// Run runs the tests and returns the exit code. The flag -parallel takes precedence, and so does a
// machine with more cores. Fuzzing keeps one worker per core.
func (w Wide) Run() int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if err := setParallel(flag.CommandLine, runtime.GOMAXPROCS(0)); err != nil {
		panic(err) // the flags of go test have changed
	}
	return w.M.Run()
}

// setParallel sets the flag of go test, unless it was set.
func setParallel(flags *flag.FlagSet, cores int) error {
	decided := cores >= AtOnce
	flags.Visit(func(f *flag.Flag) {
		decided = decided || f.Name == "test.parallel" || f.Name == "test.fuzz"
	})
	if decided {
		return nil
	}
	return flags.Set("test.parallel", strconv.Itoa(AtOnce))
}
