// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// linkable is an ID that is its own anchor on the page.
var linkable = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Check says all that is wrong with the catalogue, for a code that says what [Scan]
// found.
func (c *Catalogue) Check(said map[string][]string) error {
	var problems []error
	report := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	ids, entryOf := map[string]bool{}, map[string]string{}
	for i, group := range c.Groups {
		if group.Title == "" {
			report("group %d has no title", i+1)
		}
		if len(group.Entries) == 0 {
			report("group %q has no entries", group.Title)
		}
		for j, entry := range group.Entries {
			if entry.ID == "" {
				report("entry %d of group %q has no id", j+1, group.Title)
			} else if ids[entry.ID] {
				report("entry %s: there are two with this id", entry.ID)
			}
			ids[entry.ID] = true
			entry.check(report)
			for _, text := range entry.Texts {
				if other, ok := entryOf[text]; ok {
					report("entry %s: %q is a text of entry %s already", entry.ID, text, other)
				}
				entryOf[text] = entry.ID
				if files := said[text]; entry.Elsewhere && files != nil {
					report("entry %s: %q is not from elsewhere, %v says it", entry.ID, text, files)
				} else if !entry.Elsewhere && files == nil {
					report("entry %s: the code does not say %q", entry.ID, text)
				}
			}
		}
	}
	others := slices.Concat(c.Places, c.NotMessages)
	for _, text := range others {
		if said[text] == nil {
			report("places and notMessages: the code does not say %q", text)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(said)) {
		if _, ok := entryOf[text]; !ok && !slices.Contains(others, text) {
			report("%v: %q has no entry: add one with cause and cure to internal/messages/catalogue.yaml", said[text], text)
		}
	}
	return errors.Join(problems...)
}

// check reports what is wrong with the entry, whatever the code and other entries say.
func (e *Entry) check(report func(format string, args ...any)) {
	if e.ID != "" && !linkable.MatchString(e.ID) {
		report("entry %s: the id has other than small letters and digits with dashes between them", e.ID)
	}
	if len(e.Texts) == 0 {
		report("entry %s has no texts", e.ID)
	}
	if !strings.HasSuffix(e.Cause, ".") {
		report("entry %s: the cause %q is no sentence", e.ID, e.Cause)
	}
	if !strings.HasSuffix(e.Cure, ".") {
		report("entry %s: the cure %q is no sentence", e.ID, e.Cure)
	}
}
