package output_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/process"
)

// probe is a printable type: its columns stand beside it, once.
type probe struct {
	name  string
	took  time.Duration
	bytes *int64
}

func probeColumns() []output.Column[probe] {
	return []output.Column[probe]{
		{Name: "name", Value: func(p probe) any { return p.name }},
		{Name: "took_seconds", Head: "TOOK", Value: func(p probe) any { return output.Seconds(p.took) }},
		{Name: "memory_mb", Level: output.Wide, Value: func(p probe) any { return output.MiB(p.bytes) }},
	}
}

// show runs what a command does with a printer and prints both streams.
func show(format string, tty bool, run func(p *output.Printer) error) {
	var out, errs bytes.Buffer
	f, err := output.ParseFormat(context.Background(), format)
	if err != nil {
		fmt.Println(err)
		return
	}
	printer := output.New(process.Process{
		Args:   []string{"sbx"},
		Stdout: process.Stream{Writer: &out, TTY: tty, Width: 60},
		Stderr: process.Stream{Writer: &errs},
	}, output.Options{Format: f, NoColor: true})
	err = run(printer)
	printer.Report(err) // prints nothing that a document has shown
	fmt.Printf("%s%sexit %d\n", out.String(), errs.String(), fault.ExitCode(err))
}

func listing(p *output.Printer) error {
	list, err := output.NewList(p, output.ListSpec[probe]{
		Schema: "sbx.probe/v1", Columns: probeColumns(), Empty: "nothing to probe",
	})
	if err != nil {
		return err
	}
	for _, item := range []probe{{"local", 250 * time.Millisecond, new(int64(1 << 20))}, {"prod", 90 * time.Second, nil}} {
		if err := list.Add(item); err != nil {
			return list.Close()
		}
	}
	list.Fail(fault.New(fault.KindUnavailable, "503").At("daytona", "list").WithHint("try later"))
	return list.Close()
}

func ExampleList() {
	show("table", true, listing)
	// Output:
	// NAME   TOOK
	// local  250ms
	// prod   1m30s
	// sbx: error: daytona: list: 503
	// sbx: hint: try later
	// exit 3
}

func ExampleList_csv() {
	show("csv", false, listing)
	// Output:
	// name,took_seconds,memory_mb
	// local,0.25,1
	// prod,90,
	// sbx: error: daytona: list: 503
	// sbx: hint: try later
	// exit 3
}

func ExampleList_ndjson() {
	show("ndjson", false, listing)
	// Output:
	// {"name":"local","took_seconds":0.25,"memory_mb":1}
	// {"name":"prod","took_seconds":90,"memory_mb":null}
	// {"event":"error","provider":"daytona","kind":"unavailable","message":"list: 503","hint":"try later","retryable":true,"retry_after_seconds":null}
	// {"event":"summary","items":2,"errors":1,"complete":false,"exit_code":3,"interrupted":false}
	// exit 3
}

func ExampleShowItem() {
	show("table", true, func(p *output.Printer) error {
		return output.ShowItem(p, output.ItemSpec[probe]{
			Schema:  "sbx.probe/v1",
			Columns: probeColumns(),
			Human: func(s *output.Sheet, p probe) {
				s.Section("Probe").Field("name", p.name).Field("took", p.took).Field("memory", p.bytes)
			},
		}, probe{name: "local\x1b[2J", took: 3 * time.Second})
	})
	// Output:
	// Probe
	//   name    local\x1b[2J
	//   took    3s
	//   memory  -
	// exit 0
}

func ExamplePrinter_Show() {
	show("yaml", false, func(p *output.Printer) error {
		return p.Show(output.Document{
			Schema: "sbx.drill/v1",
			Fields: output.Fields{{Key: "cases", Value: []string{"leak"}}, {Key: "left_behind", Value: 0}},
		})
	})
	// Output:
	// schema: sbx.drill/v1
	// cases:
	//   - leak
	// left_behind: 0
	// errors: []
	// interrupted: false
	// exit 0
}

func ExamplePrinter_Failed() {
	show("jq=.", false, func(p *output.Printer) error {
		return p.Failed("sbx.probe/v1", output.ShapeList, fault.New(fault.KindAuth, "no token").At("prod", ""))
	})
	show("json", false, func(p *output.Printer) error {
		return p.Failed("sbx.probe/v1", output.ShapeList, fault.Usage("no such flag"))
	})
	// Output:
	// sbx: error: prod: no token
	// exit 4
	// {"schema":"sbx.error/v1","error":{"provider":"","kind":"usage","message":"no such flag","hint":"","retryable":false,"retry_after_seconds":null},"errors":[{"provider":"","kind":"usage","message":"no such flag","hint":"","retryable":false,"retry_after_seconds":null}],"exit_code":2}
	// exit 2
}

func ExampleFormat_Refuse() {
	f, _ := output.ParseFormat(context.Background(), "json")
	err := f.Refuse("logs -f", output.Documents()...)
	fmt.Println(err)
	fmt.Println(fault.HintOf(err))
	_, err = output.ParseFormat(context.Background(), "jsno")
	fmt.Println(err, fault.ExitCode(err))
	// Output:
	// logs -f has no json output
	// formats: table|wide|csv|ndjson|name|nagios
	// unknown format "jsno" 2
}

func ExampleEscape() {
	fmt.Println(output.Escape("name\twith \x1b[31mcolour\x1b[0m and \u202eoverride"))
	// Output: name\twith \x1b[31mcolour\x1b[0m and \u202eoverride
}

func ExampleRedact() {
	fmt.Println(output.Redact("GET https://api/?key=abc: 401", []string{"abc"}))
	// Output: GET https://api/?key=[redacted]: 401
}

func ExampleShownError() {
	show("table", false, func(p *output.Printer) error {
		err := p.Failed("sbx.probe/v1", output.ShapeItem, errors.New("once"))
		return fmt.Errorf("wrapped on its way up: %w", err)
	})
	// Output:
	// sbx: error: once
	// exit 1
}
