package cond_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// subject holds the values of a test by name; a name without a value is not reported.
type subject map[string]cond.Value

func named(name string, k cond.Kind, u cond.Unit) cond.Name[subject] {
	return cond.Name[subject]{Name: name, Kind: k, Unit: u, Meaning: name, Value: func(s subject) cond.Value { return s[name] }}
}

func testSchema() cond.Schema[subject] {
	state := named("state", cond.KindText, cond.UnitNone)
	state.Words = []string{"running", "paused", "failed"}
	cpu := named("cpu_percent", cond.KindNumber, cond.UnitPercent)
	cpu.Look = true
	return cond.Schema[subject]{
		Hint:    "`sbx help conditions` lists the names",
		Refused: map[string]string{"memory_mb": "write memory_limit_mb or usage.memory_mb"},
		Names: []cond.Name[subject]{
			state, cpu,
			named("name", cond.KindText, cond.UnitNone),
			named("age_seconds", cond.KindNumber, cond.UnitSeconds),
			named("idle_seconds", cond.KindNumber, cond.UnitSeconds),
			named("operations", cond.KindNumber, cond.UnitCount),
			named("pids", cond.KindNumber, cond.UnitCount),
			named("usage.memory_mb", cond.KindNumber, cond.UnitMiB),
			named("memory_limit_mb", cond.KindNumber, cond.UnitMiB),
			named("timeout_rate", cond.KindNumber, cond.UnitRatio),
			named("slope", cond.KindNumber, cond.UnitMiBPerMinute),
			named("stuck", cond.KindBool, cond.UnitNone),
			named("created_at", cond.KindTime, cond.UnitNone),
			named("expires_at", cond.KindTime, cond.UnitNone),
			named("labels", cond.KindLabels, cond.UnitNone),
		},
	}
}

func busy() subject {
	return subject{
		"state": cond.Text("running"), "name": cond.Text("agent-7"), "cpu_percent": cond.Number(97), "age_seconds": cond.Number(720),
		"usage.memory_mb": cond.Number(480), "memory_limit_mb": cond.Number(512), "timeout_rate": cond.Number(0.032),
		"stuck": cond.Bool(true), "created_at": cond.Time(time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC)), "pids": cond.Number(0),
		"labels":       cond.Labels(map[string]string{"team": "a", "sbx/keep": ""}),
		"idle_seconds": cond.AtLeast(300), "expires_at": cond.Unread("not looked at"),
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sandbox.Verdict{
		// numbers and units
		"cpu_percent >= 95":                       sandbox.True,
		"cpu_percent >= 95%":                      sandbox.True,
		"cpu_percent < 5%":                        sandbox.False,
		"age_seconds > 10m":                       sandbox.True,
		"age_seconds > 1h30m":                     sandbox.False,
		"age_seconds > 0.2h":                      sandbox.False,
		"age_seconds == 12m":                      sandbox.True,
		"age_seconds != 720":                      sandbox.False,
		"10m < age_seconds":                       sandbox.True,
		"10m < age_seconds < 1h":                  sandbox.True,
		"10m < age_seconds <= 11m":                sandbox.False,
		"age_seconds > 200ms":                     sandbox.True,
		"age_seconds > 2d":                        sandbox.False,
		"usage.memory_mb > 400M":                  sandbox.True,
		"usage.memory_mb > 400MiB":                sandbox.True,
		"usage.memory_mb > 1GB":                   sandbox.False,
		"usage.memory_mb > 400":                   sandbox.True,
		"timeout_rate > 5%":                       sandbox.False,
		"timeout_rate > 0.03":                     sandbox.True,
		"timeout_rate >= 3.2%":                    sandbox.True,
		"usage.memory_mb > 90% * memory_limit_mb": sandbox.True,
		"usage.memory_mb / memory_limit_mb > 90%": sandbox.True,
		"usage.memory_mb/memory_limit_mb > 0.95":  sandbox.False,
		"memory_limit_mb - usage.memory_mb < 64M": sandbox.True,
		"age_seconds > 2 * 5m + 1m":               sandbox.True,
		"age_seconds / 60 > 10":                   sandbox.True,
		"age_seconds > -(5)":                      sandbox.True,
		"cpu_percent / pids > 1":                  sandbox.Unknown, // a division by zero
		"age_seconds > 1 / 0":                     sandbox.Unknown,
		"timeout_rate >= 3.%":                     sandbox.True,
		"age_seconds\u00a0>\u00a010m":             sandbox.True, // spaces as a page is copied with
		"pids == 0":                               sandbox.True,
		"pids in [0, 1]":                          sandbox.True,
		"age_seconds in [10m, 12m]":               sandbox.True,
		// texts
		`state == "running"`:                sandbox.True,
		`state == 'running'`:                sandbox.True,
		"state != `running`":                sandbox.False,
		`"running" == state`:                sandbox.True,
		`state in ["paused", "failed"]`:     sandbox.False,
		`state not in ["paused", "failed"]`: sandbox.True,
		`name contains "gent"`:              sandbox.True,
		`name startsWith "agent-"`:          sandbox.True,
		`name not startsWith "agent-"`:      sandbox.False,
		`name endsWith "8"`:                 sandbox.False,
		`name matches "^agent-[0-9]+$"`:     sandbox.True,
		`len(name) > 6`:                     sandbox.True,
		`len(name) == 7 and len(labels)==2`: sandbox.True,
		`labels contains "leak"`:            sandbox.False,
		`labels.team == "a"`:                sandbox.True,
		`labels["team"] != "a"`:             sandbox.False,
		`labels["sbx/keep"] == ""`:          sandbox.True,
		`"sbx/keep" in labels`:              sandbox.True,
		`"sbx/keep" not in labels`:          sandbox.False,
		`labels.nobody == "x"`:              sandbox.Unknown,
		`labels.nobody == nil`:              sandbox.True,
		// true and false
		"stuck":          sandbox.True,
		"not stuck":      sandbox.False,
		"!stuck":         sandbox.False,
		"stuck == true":  sandbox.True,
		"stuck != false": sandbox.True,
		// times
		`created_at < "2026-11-22T12:00Z"`:             sandbox.True,
		`created_at > "2026-11-22"`:                    sandbox.True,
		`"2026-11-22T11:00:00+00:00" == created_at`:    sandbox.True,
		`created_at in ["2026-11-22T11:00"]`:           sandbox.True,
		`created_at < expires_at`:                      sandbox.Unknown,
		`created_at >= "2026-11-22T13:00:00.5+01:00" `: sandbox.False,
		// what is not reported
		"operations > 1000":                    sandbox.Unknown,
		"operations == 0":                      sandbox.Unknown,
		"operations != 0":                      sandbox.Unknown,
		"not (operations > 1000)":              sandbox.Unknown,
		"operations == nil":                    sandbox.True,
		"operations != nil":                    sandbox.False,
		"nil == operations":                    sandbox.True,
		"cpu_percent != nil":                   sandbox.True,
		"expires_at == nil":                    sandbox.Unknown, // nobody looked
		`expires_at > "2026-11-22"`:            sandbox.Unknown,
		"operations in [1, 2]":                 sandbox.Unknown,
		"cpu_percent >= 95 and operations > 1": sandbox.Unknown,
		"cpu_percent < 1 and operations > 1":   sandbox.False,
		"operations > 1 and cpu_percent < 1":   sandbox.False,
		"cpu_percent >= 95 or operations > 1":  sandbox.True,
		"operations > 1 || cpu_percent >= 95":  sandbox.True,
		"cpu_percent < 1 or operations > 1":    sandbox.Unknown,
		"operations + pids > 1 or true":        sandbox.True,
		"operations * 2 > 10":                  sandbox.Unknown,
		// a lower bound
		"idle_seconds > 4m":          sandbox.True,
		"idle_seconds > 5m":          sandbox.Unknown,
		"idle_seconds >= 5m":         sandbox.True,
		"idle_seconds < 5m":          sandbox.False,
		"idle_seconds <= 4m":         sandbox.False,
		"idle_seconds < 6m":          sandbox.Unknown,
		"idle_seconds == 4m":         sandbox.False,
		"idle_seconds == 5m":         sandbox.Unknown,
		"idle_seconds != 4m":         sandbox.True,
		"4m < idle_seconds":          sandbox.True,
		"5m > idle_seconds":          sandbox.False,
		"idle_seconds == nil":        sandbox.False,
		"idle_seconds * 2 > 1m":      sandbox.Unknown,
		"idle_seconds in [1m, 2m]":   sandbox.False,
		"age_seconds > idle_seconds": sandbox.Unknown,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c, err := cond.Compile(text, testSchema())
			require.NoError(t, err)
			assert.Equal(t, want, c.Eval(busy()))
			assert.Equal(t, want, c.Explain(busy()).Verdict)
			assert.Equal(t, text, c.String())
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		message, hint string
	}{
		// names
		"age_second > 10m":             {`column 1: no name "age_second"`, "did you mean age_seconds?"},
		"cpu_percent > 5 and agee > 1": {`column 21: no name "agee"`, "did you mean age_seconds?"},
		"cpu > 5":                      {`column 1: no name "cpu"`, "did you mean cpu_percent?"},
		"weather > 5":                  {`column 1: no name "weather"`, "`sbx help conditions` lists the names"},
		"state == running":             {`column 10: no name "running"`, `a text needs quotes: "running"`},
		`state in [running]`:           {`column 11: no name "running"`, `a text needs quotes: "running"`},
		"memory_mb > 400M":             {"column 1: memory_mb is ambiguous", "write memory_limit_mb or usage.memory_mb"},
		"stats.active > 3":             {`column 1: no name "stats.active"`, "lists the names"},
		"labels.a.b == 'x'":            {`no name "labels.a.b"`, ""},
		// units
		"age_seconds > 512M":                {"column 15: age_seconds is a duration: write 10m", ""},
		"age_seconds > 5%":                  {"age_seconds is a duration: write 10m", ""},
		"5% < age_seconds":                  {"column 1: age_seconds is a duration: write 10m", ""},
		`age_seconds > "10m"`:               {"column 15: age_seconds is a duration: write 10m without quotes", ""},
		"usage.memory_mb > 10m":             {"usage.memory_mb is a size: write 512M", ""},
		"timeout_rate > 5":                  {"column 16: timeout_rate is a ratio from 0 to 1: write 5%", ""},
		"timeout_rate > 10m":                {"timeout_rate is a ratio from 0 to 1: write 5%", ""},
		"cpu_percent > 10m":                 {"cpu_percent is a percentage: write 5%", ""},
		"operations > 10m":                  {"operations is a count: write 10", ""},
		"slope > 10M":                       {"slope is in MiB per minute: write 10", ""},
		"age_seconds > cpu_percent":         {"age_seconds is a duration, and cpu_percent is a percentage", ""},
		"age_seconds + memory_limit_mb > 1": {"age_seconds is a duration, and memory_limit_mb is a size", ""},
		"age_seconds * memory_limit_mb > 1": {"gives no unit", ""},
		"age_seconds > 10minutes":           {`column 15: "10minutes" is neither a number nor a duration, size or percentage`, "durations: 200ms"},
		"age_seconds > 0m":                  {`"0m" is neither`, ""},
		"age_seconds > 5 %":                 {`"%" is not an operator`, "write 5% without a space"},
		"age_seconds > 0x10":                {`"0x10" is neither`, ""},
		// kinds
		"state == 5":                 {"column 10: state is a text: write state == \"running\"", ""},
		"state > 'running'":          {"state is a text, which cannot be compared by >", ""},
		`state == "runnin"`:          {`column 10: state is never "runnin"`, "did you mean running?"},
		`name == ""`:                 {"name is never empty: it is not reported then", "write name == nil"},
		`stuck == "true"`:            {"stuck is true, false or unknown: write stuck, or not stuck", ""},
		"stuck > false":              {"cannot be compared by >", ""},
		"created_at > 10m":           {`created_at is a time: write "2026-11-22T12:00Z"`, "age_seconds > 10m"},
		`created_at > "yesterday"`:   {`column 14: created_at is a time: write "2026-11-22T12:00Z"`, "a relative time would mean another time"},
		`labels == "x"`:              {`labels is a labels: write "TEXT" in labels`, ""},
		"labels == labels":           {"cannot be compared by ==", ""},
		`"x" in state`:               {"state is a text, and nothing is in it", ""},
		"name contains 5":            {"5 is a number, and contains compares texts", ""},
		"5 in labels":                {"5 is a number, not a text", "quotes"},
		"age_seconds":                {"age_seconds is a number, not a condition", "compare it: age_seconds > 10m"},
		"state":                      {"state is a text, not a condition", `state == "running"`},
		"10m":                        {"10m is a number, not a condition", ""},
		"age_seconds + 10m":          {"is a number, not a condition", ""},
		"age_seconds > 10m and 5":    {"5 is a number, not a condition", ""},
		`state + "x" == "y"`:         {"state is a text, and only numbers are calculated with", ""},
		"name matches state":         {"a pattern must be a text", "quotes"},
		`name matches "a["`:          {"column 14: the pattern is malformed: missing closing ]", ""},
		"age_seconds matches 'x'":    {"age_seconds is a number, and matches compares texts", ""},
		"len(age_seconds) > 1":       {"has no length", ""},
		"len(name, name) > 1":        {"len takes one value", ""},
		"lenn(name) > 1":             {`no function "lenn"`, "did you mean len?"},
		"now() > created_at":         {`"now" is not a word of a condition`, "in quotes"},
		"all(labels, {# == 'x'})":    {"not", ""},
		"upper(name) == 'X'":         {`no function "upper"`, "the only function is len"},
		"name.upper() == 'X'":        {"not", ""},
		"age_seconds > nil":          {"nil cannot be compared by >", "NAME == nil"},
		"5 == nil":                   {"5 is no name", "NAME == nil"},
		"nil":                        {"nil can only be compared", ""},
		`state in []`:                {"the list is empty", ""},
		`state in ["running", 5]`:    {"state is a text", ""},
		`state in ["running", name]`: {"name is a name, and a list holds only values", ""},
		`state in ["running", "x"]`:  {`state is never "x"`, ""},
		"true":                       {"it uses no name", "lists the names"},
		"1 == 1 or 'a' == 'b'":       {"it uses no name", ""},
		// other languages
		"age_seconds = 10m":            {`column 13: "=" is not an operator of a condition`, "write == to compare"},
		"age_seconds > 10m AND stuck":  {`column 19: "AND" is not a word of a condition`, "write and"},
		"NOT stuck":                    {`column 1: "NOT" is not a word of a condition`, "write not"},
		"stuck OR stuck":               {`"OR" is not a word`, "write or"},
		"stuck & stuck":                {`"&" is not an operator`, "write and, or &&"},
		"age_seconds <> 10m":           {`"<>" is not an operator`, "write !="},
		"age_seconds === 10m":          {`"===" is not an operator`, "write =="},
		"name =~ 'x'":                  {`"=~" is not an operator`, "matches"},
		"name like 'x'":                {`"like" is not a word`, "write contains"},
		"operations is null":           {`"is" is not a word`, "NAME == nil"},
		"operations == null":           {`"null" is not a word`, "write nil"},
		"stuck == True":                {`"True" is not a word`, "write true"},
		"let x = 5; x > age_seconds":   {`"let" is not a word`, "no variables"},
		"if stuck {true} else {false}": {`"if" is not a word`, "no branches"},
		"stuck ? stuck : stuck":        {`"?" is not an operator`, "no branches"},
		"operations ?? 0 > 1":          {`"??" is not an operator`, "NAME == nil"},
		"stuck // it is":               {`"//" is not an operator`, "no comments"},
		"age_seconds ** 2 > 1":         {`"**" is not an operator`, ""},
		"name | len > 3":               {`"|" is not an operator`, ""},
		// shape
		"":                          {"the condition is empty", "is a shell variable unset?"},
		"  \n":                      {"the condition is empty", ""},
		"age_seconds >":             {"column 14: the condition ends here", ""},
		"(age_seconds > 10m":        {"column 19: the condition ends here", ""},
		"age_seconds > 10m)":        {`column 18: ")" is not expected here`, ""},
		"age_seconds > 10m stuck":   {`column 19: "stuck" is not expected here`, "join two comparisons with and, or"},
		"age_seconds > 10m and and": {`"and" is not expected here`, ""},
		`name == "x`:                {"column 9: the quote is not closed", ""},
		"stuck\nand agee":           {`line 2, column 5: no name "agee"`, ""},
		"labels[0] == 'x'":          {"this is not a name", ""},
		"labels[0:1] == 'x'":        {`":" is not an operator`, ""},
		"{a: 1} == labels":          {`"{" is not an operator`, ""},
		"1..3 == labels":            {`"1..3" is neither a number`, ""},
		"pids .. pids":              {`column 6: ".." is not allowed in a condition`, ""},
		"pids .. (3) == 1":          {`".." is not allowed in a condition`, ""},
		"name == 'a'; stuck":        {`column 12: ";" is not an operator`, ""},
		"::stuck":                   {`column 1: "::" is not an operator`, ""},
		"labels?.team == 'a'":       {`column 7: "?" is not an operator`, "no branches"},
		"map(labels, name) == 'a'":  {`column 1: no function "map"`, "the only function is len"},
		"all(labels) == 'a'":        {`column 11: ")" is not expected here`, ""},
		"labels. 5 == 'a'":          {`column 9: "5" is not expected here`, "join two"},
		"5m (name) == 'a'":          {`column 1: no function "5m"`, ""},
		"5[name] == 'a'":            {"this is not a name", ""},
		"labels.":                   {"column 8: the condition ends here", ""},
		"labels['a'":                {"column 11: the condition ends here", ""},
		"stuck and.5 > pids":        {`column 10: ".5" is not expected here`, "join two comparisons"},
		"name == `a``":              {"column 12: the quote is not closed", "put ` after the text"},
		"name not > 'a'":            {`column 10: ">" is not expected here`, ""},
		"$env == pids":              {`column 1: "$" is not an operator`, "no $"},
		"#":                         {`"#" is not an operator`, ""},
		"b'xx' == name":             {`column 1: "b'xx'" is not allowed in a condition`, "write a name"},
		"age_seconds > .5h":         {`column 15: ".5h" is neither a number`, ""},
		"pids > 1_000":              {`column 8: "1_000" is neither a number`, ""},
		`name == "a\q"`:             {"an escape that does not exist", `write \\ for a backslash`},
		"name == 'a\nb'":            {"column 9: the quote is not closed", ""},
		"@ == pids":                 {`column 1: "@" is not expected here`, ""},
		"pids.5 == 1":               {`column 5: ".5" is not expected here`, "join two comparisons"},
		"state in ['a' 'b']":        {`column 15: "'b'" is not expected here`, ""},
		"labels[ == 'x'":            {`column 9: "==" is not expected here`, ""},
		strings.Repeat("stuck or ", 500) + "stuck": {"", ""},
		strings.Repeat("(", 2000) + "stuck":        {"", ""},
		strings.Repeat("x", 5000):                  {"5000 bytes", ""},
	} {
		t.Run(text[:min(len(text), 40)], func(t *testing.T) {
			t.Parallel()
			c, err := cond.Compile(text, testSchema())
			require.Error(t, err)
			assert.Nil(t, c)
			require.ErrorContains(t, err, want.message)
			assert.Contains(t, fault.HintOf(err), want.hint)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			placed, ok := errors.AsType[*cond.Error](err)
			require.True(t, ok)
			assert.Positive(t, placed.Line*placed.Column*placed.Width)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestExcerptPointsAtThePlace(t *testing.T) {
	t.Parallel()
	_, err := cond.Compile("cpu_percent > 5% and age_second > 10m", testSchema())
	assert.Equal(t, []string{
		"cpu_percent > 5% and age_second > 10m",
		"                     ^^^^^^^^^^",
	}, fault.ExcerptOf(err))
	_, err = cond.Compile("name == \"café\"\nand\tage_seconds > 512M", testSchema())
	assert.Equal(t, []string{
		"and age_seconds > 512M",
		"                  ^^^^",
	}, fault.ExcerptOf(err))
	_, err = cond.Compile(strings.Repeat("stuck or ", 20)+"agee", testSchema())
	lines := fault.ExcerptOf(err)
	require.Len(t, lines, 2)
	assert.LessOrEqual(t, len(lines[0]), 80, "a long line is cut")
	assert.Equal(t, "agee", lines[0][strings.Index(lines[1], "^"):])
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		trace   string
		missing []string
	}{
		"cpu_percent >= 95":                       {"cpu_percent >= 95: 97 >= 95 true", nil},
		"cpu_percent >= 95%":                      {"cpu_percent >= 95%: 97% >= 95% true", nil},
		"operations > 1000":                       {"operations > 1000: not reported -> unknown", []string{"operations is not reported"}},
		"age_seconds > 10m and stuck":             {"age_seconds > 10m: 12m > 10m true; stuck: true true", nil},
		"cpu_percent < 1 and operations > 1":      {"cpu_percent < 1: 97 < 1 false; operations > 1: not reported -> unknown", nil},
		"cpu_percent > 1 and operations > 1":      {"cpu_percent > 1: 97 > 1 true; operations > 1: not reported -> unknown", []string{"operations is not reported"}},
		"timeout_rate > 5%":                       {"timeout_rate > 5%: 3.2% > 5% false", nil},
		"timeout_rate > 0.05":                     {"timeout_rate > 0.05: 0.03 > 0.05 false", nil},
		"usage.memory_mb > 400M":                  {"usage.memory_mb > 400M: 480M > 400M true", nil},
		"usage.memory_mb > 0.9 * memory_limit_mb": {"usage.memory_mb > 0.9 * memory_limit_mb: 480M > 460.8M true", nil},
		"usage.memory_mb / memory_limit_mb > 90%": {"usage.memory_mb / memory_limit_mb > 90%: 93.75% > 90% true", nil},
		"operations / pids > 1":                   {"operations / pids > 1: operations is not reported -> unknown", []string{"operations is not reported"}},
		"cpu_percent / pids > 1":                  {"cpu_percent / pids > 1: cpu_percent / pids > 1 cannot be calculated -> unknown", []string{"cpu_percent / pids > 1 cannot be calculated"}},
		`state in ["paused", "failed"]`:           {`state in ["paused", "failed"]: "running" false`, nil},
		`labels.team == "a"`:                      {`labels.team == "a": "a" == "a" true`, nil},
		`labels.x == "a"`:                         {`labels.x == "a": not set -> unknown`, []string{"labels.x is not set"}},
		`"team" in labels`:                        {`"team" in labels: 2 labels true`, nil},
		`created_at < "2026-11-22T12:00Z"`:        {`created_at < "2026-11-22T12:00Z": 2026-11-22T11:00:00Z < "2026-11-22T12:00Z" true`, nil},
		`expires_at > "2026-11-22"`:               {`expires_at > "2026-11-22": unknown: not looked at -> unknown`, []string{"expires_at is unknown: not looked at"}},
		"operations == nil":                       {"operations == nil: not reported true", nil},
		"idle_seconds > 10m":                      {"idle_seconds > 10m: known only as a lower bound -> unknown", []string{"idle_seconds is known only as a lower bound"}},
		"idle_seconds > 4m":                       {"idle_seconds > 4m: at least 5m > 4m true", nil},
		"(operations > 1 or stuck) and slope > 5": {"operations > 1: not reported -> unknown; stuck: true true; slope > 5: not reported -> unknown", []string{"slope is not reported"}},
		"10m < age_seconds < 11m":                 {"10m < age_seconds: 10m < 12m true; age_seconds < 11m: 12m < 11m false", nil},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c, err := cond.Compile(text, testSchema())
			require.NoError(t, err)
			got := c.Explain(busy())
			assert.Equal(t, want.trace, got.String())
			assert.Equal(t, want.missing, got.Missing)
		})
	}
}

func TestNamesAndLooks(t *testing.T) {
	t.Parallel()
	c, err := cond.Compile(`age_seconds > 10m and (stuck or age_seconds > 1h) and labels.team == "a"`, testSchema())
	require.NoError(t, err)
	assert.Equal(t, []string{"age_seconds", "stuck", "labels"}, c.Names())
	assert.False(t, c.NeedsLook())
	c, err = cond.Compile("age_seconds > 10m or cpu_percent < 1%", testSchema())
	require.NoError(t, err)
	assert.True(t, c.NeedsLook())
}

// TestATableOfTheWrongKindSelectsNothing: a value of another kind than its name states is
// unknown, and no panic.
func TestATableOfTheWrongKindSelectsNothing(t *testing.T) {
	t.Parallel()
	wrong := subject{"age_seconds": cond.Text("x"), "state": cond.Number(1), "stuck": cond.Text("true"), "labels": cond.Text("x"), "created_at": cond.Number(1)}
	for _, text := range []string{"age_seconds > 1", `state == "running"`, "stuck", "stuck == true", `labels.team == "a"`, `created_at > "2026-11-22"`, "age_seconds * 2 > 1", `state in ["running"]`, `state contains "x"`, `"x" in labels`} {
		c, err := cond.Compile(text, testSchema())
		require.NoError(t, err)
		assert.Equal(t, sandbox.Unknown, c.Eval(wrong), text)
	}
}
