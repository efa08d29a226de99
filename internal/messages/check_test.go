// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a catalogue without mistakes, for a code that says what said has.
const small = `
introduction: Read this first.
groups:
- title: The pod waits
  introduction: Nothing is wrong.
  entries:
  - id: too-few
    texts:
    - "%d of %d devices"
    - "request %s: %d of %d devices"
    cause: Fewer are free.
    cure: Wait.
  - id: refused
    texts:
    - "admission denied"
    elsewhere: true
    cause: Kubernetes says so.
    cure: Ask Kubernetes.
places:
- "claim %s: %w"
notMessages:
- "up to %d"
`

var said = map[string][]string{
	"%d of %d devices": {"a.go"}, "request %s: %d of %d devices": {"a.go", "b.go"},
	"claim %s: %w": {"a.go"}, "up to %d": {"a.go"},
}

// TestCheck: what is wrong with an entry is said, and nothing else.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		// old and replacement are the mistake that small gets.
		old, replacement string
		want             []string
	}{
		"none":        {want: nil},
		"no title":    {"title: The pod waits", `title: ""`, []string{"group 1 has no title"}},
		"no entries":  {"\nplaces:", "\n- title: Nothing\nplaces:", []string{`group "Nothing" has no entries`}},
		"no id":       {"id: refused", `id: ""`, []string{`entry 2 of group "The pod waits" has no id`}},
		"no link":     {"id: refused", "id: Refused", []string{"entry Refused: the id has other than small letters and digits with dashes between them"}},
		"dash at end": {"id: refused", "id: refused-", []string{"entry refused-: the id has other than small letters and digits with dashes between them"}},
		"id twice":    {"id: refused", "id: too-few", []string{"entry too-few: there are two with this id"}},
		"no texts":    {`- "admission denied"`, "", []string{"entry refused has no texts"}},
		"cause":       {"Fewer are free.", "Fewer are free", []string{`entry too-few: the cause "Fewer are free" is no sentence`}},
		"no cause":    {"cause: Kubernetes says so.", "", []string{`entry refused: the cause "" is no sentence`}},
		"cure":        {"Wait.", "Wait", []string{`entry too-few: the cure "Wait" is no sentence`}},
		"no cure":     {"cure: Ask Kubernetes.", "", []string{`entry refused: the cure "" is no sentence`}},
		"elsewhere":   {"elsewhere: true", "", []string{`entry refused: the code does not say "admission denied"`}},
		"not elsewhere": {"cause: Fewer are free.", "cause: Fewer are free.\n    elsewhere: true", []string{
			`entry too-few: "%d of %d devices" is not from elsewhere, [a.go] says it`,
			`entry too-few: "request %s: %d of %d devices" is not from elsewhere, [a.go b.go] says it`,
		}},
		"text twice": {`- "admission denied"`, "- \"admission denied\"\n    - \"admission denied\"", []string{
			`entry refused: "admission denied" is a text of entry refused already`,
		}},
		"text of two entries": {`"admission denied"`, `"%d of %d devices"`, []string{
			`entry refused: "%d of %d devices" is a text of entry too-few already`,
			`entry refused: "%d of %d devices" is not from elsewhere, [a.go] says it`,
		}},
		"another text": {"request %s: ", "request: ", []string{
			`entry too-few: the code does not say "request: %d of %d devices"`,
			`[a.go b.go]: "request %s: %d of %d devices" has no entry: add one with cause and cure to internal/messages/catalogue.yaml`,
		}},
		"another place": {"claim %s", "claim", []string{
			`places and notMessages: the code does not say "claim: %w"`,
			`[a.go]: "claim %s: %w" has no entry: add one with cause and cure to internal/messages/catalogue.yaml`,
		}},
		"another log line": {"up to %d", "up to %s", []string{
			`places and notMessages: the code does not say "up to %s"`,
			`[a.go]: "up to %d" has no entry: add one with cause and cure to internal/messages/catalogue.yaml`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Read([]byte(strings.Replace(small, test.old, test.replacement, 1)))
			require.NoError(t, err)
			if err := c.Check(said); test.want != nil {
				require.EqualError(t, err, strings.Join(test.want, "\n"))
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// TestRead: a slip of the pen is no text that is silently left out.
func TestRead(t *testing.T) {
	for name, test := range map[string]struct{ old, replacement, want string }{
		"unknown field":    {"cure: Wait.", "remedy: Wait.", `unknown field "remedy"`},
		"field twice":      {"cure: Wait.", "cure: Wait.\n    cure: Wait.", `key "cure" already set in map`},
		"text not quoted":  {`"claim %s: %w"`, "claim %s: x", "cannot unmarshal object into Go struct field Catalogue.places of type string"},
		"texts not a list": {"- \"up to %d\"", `  "up to %d"`, "cannot unmarshal string into Go struct field Catalogue.notMessages"},
		"no YAML":          {"groups:", "groups: [", "did not find expected"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(strings.Replace(small, test.old, test.replacement, 1)))
			require.ErrorContains(t, err, "read the catalogue of messages: ")
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestPage(t *testing.T) {
	c, err := Read([]byte(small))
	require.NoError(t, err)
	require.Equal(t, `Read this first.
## The pod waits

Nothing is wrong.

- <a id="too-few"></a>**too-few**: `+"`… of … devices`; `request …: … of … devices`<br>"+`Fewer are free. *Fix:* Wait.
- <a id="refused"></a>**refused**: `+"`admission denied`<br>"+`Kubernetes says so. *Fix:* Ask Kubernetes.
`, c.Page())
}
