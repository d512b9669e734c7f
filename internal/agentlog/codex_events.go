package agentlog

import (
	"cmp"

	"sbx/internal/jsontext"
)

// readEvent reads what the client reports.
func (l *codexLine) readEvent() {
	id := l.text("call_id")
	switch kind := l.text("type"); kind {
	case "user_message":
		l.addMessage(UserMessage, l.text("message"), fromEvent)
	case "agent_message":
		l.addMessage(AssistantMessage, l.text("message"), fromEvent)
	case "exec_command_end":
		made := l.calls[id]
		made.command = commandOf(l.fields)
		l.addDone(id, made, l.text("aggregated_output", "stdout", "stderr"), l.number("exit_code"), fromEvent)
	case "patch_apply_end":
		l.readPatchEnd(id)
		if isTrue(l.fields, "success") {
			l.addChanges(joinID("patch", id), l.value("changes"), fromEvent)
		}
	case "mcp_tool_call_end":
		l.readMCP(id)
	case "web_search_end":
		l.readSearch(l.text("query"), fromEvent)
	case "item_completed":
		l.readTurnItem(object(l.value("item")))
	case "task_complete", "turn_complete":
		var d data
		d.boolean("success", true)
		l.add(Completed, joinID("end", l.text("turn_id")), &d)
	case "turn_aborted":
		var d data
		d.boolean("success", false)
		d.text("stop_reason", l.text("reason"))
		l.add(Completed, joinID("end", l.text("turn_id")), &d)
	case "error", "stream_error":
		var d data
		d.text("error", l.text("message"))
		l.add("agent.error", "", &d)
	case "thread_rolled_back":
		l.addMessage(SystemMessage, "turns that were rolled back: "+l.text("num_turns"), fromItem)
	}
}

// readPatchEnd reads whether a patch was applied, which its later output does not always tell.
func (l *codexLine) readPatchEnd(id string) {
	made := l.calls[id]
	var d data
	d.text("tool", cmp.Or(made.tool, "apply_patch"))
	d.text("tool_use_id", id)
	d.text("tool_response", l.text("stdout", "stderr"))
	if !isTrue(l.fields, "success") {
		d.boolean("is_error", true)
	}
	l.addEcho(ToolCompleted, "done", cmp.Or(made.command, id), id, fromEvent, &d)
}

// readMCP reads the answer of a tool of an MCP server, which a later item repeats with its id.
func (l *codexLine) readMCP(id string) {
	var d data
	d.text("tool", cmp.Or(l.calls[id].tool, object(l.value("invocation")).text("tool")))
	d.text("tool_use_id", id)
	result := object(l.value("result"))
	if failure := result.text("Err", "err"); failure != "" {
		d.text("error", failure)
	} else {
		answer := object(result.first("Ok", "ok"))
		d.raw("tool_response", answer.value("content"))
		if isTrue(answer, "is_error") || isTrue(answer, "isError") {
			d.boolean("is_error", true)
		}
	}
	l.addEcho(ToolCompleted, "done", id, id, fromEvent, &d)
}

// readTurnItem reads an item of a turn, as the client reports it from 0.147 on. Its id need not be that of the call.
func (l *codexLine) readTurnItem(item fields) {
	id := item.text("id")
	switch item.text("type") {
	case "UserMessage":
		l.addMessage(UserMessage, itemText(item), fromTurn)
	case "AgentMessage":
		l.addMessage(AssistantMessage, itemText(item), fromTurn)
	case "CommandExecution":
		made := call{tool: "exec_command", command: commandOf(item)}
		var d, in data
		d.text("tool", made.tool)
		in.text("command", made.command)
		d.raw("input", in.end())
		l.addEcho(ToolUse, "use", made.command, id, fromTurn, &d)
		code := item.number("exit_code")
		if code == nil && item.text("status") != "completed" {
			code = new(int64(-1)) // it was declined or failed
		}
		l.addDone(id, made, item.text("aggregated_output", "stdout"), code, fromTurn)
	case "FileChange":
		if item.text("status") == "completed" {
			l.addChanges(joinID("item patch", id), item.value("changes"), fromTurn)
		}
	case "WebSearch":
		l.readSearch(item.text("query"), fromTurn)
	}
}

func itemText(item fields) string {
	if text := item.text("text", "message"); text != "" {
		return text
	}
	return allText(item.value("content"))
}

// addChanges adds the changes of files that were applied: {path: {type, content or unified_diff, move_path}}.
func (l *codexLine) addChanges(id string, raw []byte, from origin) {
	members, err := jsontext.Members(nil, raw)
	if err != nil {
		return
	}
	changes := make([]fileChange, 0, len(members))
	for _, member := range members {
		f := object(member.Value)
		path := within(l.folder, member.Key)
		switch kind := f.text("type", "kind"); kind {
		case "add":
			changes = append(changes, newChange(path, changeCreated, wholeFile('+', f.text("content"))))
		case "delete":
			changes = append(changes, newChange(path, changeDeleted, wholeFile('-', f.text("content"))))
		default:
			change := changeModified
			if to := f.text("move_path"); to != "" {
				path, change = within(l.folder, to), changeMoved
			}
			changes = append(changes, newChange(path, change, f.text("unified_diff")))
		}
	}
	l.steps = append(l.steps, changeSteps(changes, id, l.raw.Source, l.raw.At, from)...)
}
