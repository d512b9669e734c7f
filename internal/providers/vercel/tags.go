package vercel

import (
	"maps"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// mostTags is how many tags a sandbox may have (Vercel Sandbox documentation,
// Tags).
const mostTags = 5

// spellings is the one table between labels of sbx and tags of the API, the only
// labels it has. Which characters a tag's key may have is written down nowhere, so
// there is no slash in ours. All other keys are the same on both sides.
func spellings() map[string]string {
	return map[string]string{
		sandbox.LabelOwner: "sbx-owner", sandbox.LabelName: "sbx-name", sandbox.LabelTask: "sbx-task", sandbox.LabelAgentType: "sbx-agent-type", sandbox.LabelKeep: "sbx-keep",
		sandbox.LabelNonce: "sbx-nonce", sandbox.LabelKeptUntil: "sbx-kept-until",
	}
}

// tags makes tags of labels.
func tags(labels map[string]string) map[string]string {
	out, known := map[string]string{}, spellings()
	for key, value := range labels {
		if tag := known[key]; tag != "" {
			key = tag
		}
		out[key] = value
	}
	return out
}

// labels makes labels of tags; nil of none.
func labels(tags map[string]string) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	out := maps.Clone(tags)
	for label, tag := range spellings() {
		if value, there := out[tag]; there {
			delete(out, tag)
			out[label] = value
		}
	}
	return out
}

// tagged gives the tags of a new sandbox; fault.KindUsage where there are too many.
func (c *Client) tagged(spec sandbox.Spec) (map[string]string, error) {
	out := tags(spec.CreateLabels())
	if len(out) > mostTags { // the task's own record says it, too
		delete(out, spellings()[sandbox.LabelKeptUntil])
	}
	if len(out) > mostTags {
		return nil, fault.Usage("a sandbox has %d tags at most, and these are %d: labels, owner, name, task and agent type", mostTags, len(out)).
			At(c.name, "create").WithHint("leave out a --label")
	}
	return out, nil
}
