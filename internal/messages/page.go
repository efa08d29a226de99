// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"fmt"
	"regexp"
	"strings"
)

// introduction is what the page says before the entries.
const introduction = `# Errors and other messages

<!-- Written by "make generate-docs" from package internal/messages. -->

Each text that celset has for users, with cause and cure. %[1]s stands for what differs. Texts about pods are in the
events of the pod (%[2]skubectl describe pod%[2]s); kube-scheduler cuts events at about one kilobyte, and the condition
%[2]sPodScheduled%[2]s in the status of the pod has all of it. Most texts begin with where: the claim, the constraint and
the object that defines it, the request, the node, the devices.

Messages about Placements are in [Selecting clusters](placement.md).
`

// Page writes the catalogue as Markdown.
func Page(groups []Group) string {
	var page strings.Builder
	fmt.Fprintf(&page, introduction, Gap, "`")
	for _, group := range groups {
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
