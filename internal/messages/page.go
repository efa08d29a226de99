// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"fmt"
	"regexp"
	"strings"
)

// Page writes the catalogue as Markdown, with an anchor for each id and a line for each entry.
func (c *Catalogue) Page() string {
	var page strings.Builder
	page.WriteString(c.Introduction)
	for _, group := range c.Groups {
		fmt.Fprintf(&page, "\n## %s\n", group.Title)
		if group.Introduction != "" {
			fmt.Fprintf(&page, "\n%s\n", group.Introduction)
		}
		page.WriteString("\n")
		for _, entry := range group.Entries {
			fmt.Fprintf(&page, "- <a id=\"%[1]s\"></a>**%[1]s**: %[2]s<br>%[3]s *Fix:* %[4]s\n", entry.ID, entry.shown(), entry.Cause, entry.Cure)
		}
	}
	return page.String()
}

var directive = regexp.MustCompile(`%\[?\d*\]?[a-zA-Z]`)

// shown are the texts of an entry, as code.
func (e *Entry) shown() string {
	var texts []string
	for _, text := range e.Texts {
		texts = append(texts, code(shown(text)))
	}
	return strings.Join(texts, "; ")
}

// code is a text between backquotes, of which it may have some itself. A line break is a space.
func code(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// shown is a text as a user sees it, but for what differs.
func shown(text string) string { return directive.ReplaceAllString(text, Gap) }
