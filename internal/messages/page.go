// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"fmt"
	"regexp"
	"strings"
)

// Page writes the catalogue as Markdown.
func (c *Catalogue) Page() string {
	var page strings.Builder
	page.WriteString(c.Introduction)
	for _, group := range c.Groups {
		fmt.Fprintf(&page, "\n## %s\n", group.Title)
		if group.Introduction != "" {
			fmt.Fprintf(&page, "\n%s\n", group.Introduction)
		}
		for _, entry := range group.Entries {
			fmt.Fprintf(&page, "\n### %s\n\n", entry.ID)
			for _, text := range entry.Texts {
				fmt.Fprintf(&page, "    %s\n", shown(text))
			}
			fmt.Fprintf(&page, "\n%s\n\n*Cure:* %s\n", entry.Cause, entry.Cure)
		}
	}
	return page.String()
}

var directive = regexp.MustCompile(`%\[?\d*\]?[a-zA-Z]`)

// shown is a text as a user sees it, but for what differs.
func shown(text string) string { return directive.ReplaceAllString(text, Gap) }
