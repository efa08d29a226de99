// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/apis/nearest"
)

// Findings collects what filters and prioritizers find besides their answers.
type Findings struct {
	// Warnings are to be recorded as events.
	Warnings []Warning
	// OutOfRange maps the name of a prioritizer to the number of candidates whose values are out of range.
	OutOfRange map[string]int
	// Missing has messages about names that the Placement reads and that no cluster has.
	Missing []string
	// Next is the earliest time at which an answer may be another one though no object changes.
	Next Wakeup
	// Keys, Scores and Sets tell that a message names labels or claims of clusters, AddOnPlacementScores, or
	// ManagedClusterSets that the Placement does not read. A change of any of these changes the message.
	Keys, Scores, Sets bool
}

// Warning is something that does not keep a Placement from being decided: an event.
type Warning struct {
	// Reason is one of [wellknown.ReasonScoreExpired] and the constants after it.
	Reason string
	// Plugin is the filter or prioritizer it is about.
	Plugin string
	// Message names the first few objects.
	Message string
}

// Warn adds a warning about subjects, if there are any. format has a %s for them.
func (f *Findings) Warn(reason, plugin, format string, subjects []string) {
	if len(subjects) > 0 {
		f.Warnings = append(f.Warnings, Warning{reason, plugin, fmt.Sprintf(format, firstOf(subjects))})
	}
}

// WarnOutOfRange warns about subjects with values that are out of their range, and counts
// them.
func (f *Findings) WarnOutOfRange(reason, plugin, format string, subjects []string) {
	f.Warn(reason, plugin, format, subjects)
	if len(subjects) > 0 {
		if f.OutOfRange == nil {
			f.OutOfRange = map[string]int{}
		}
		f.OutOfRange[plugin] += len(subjects)
	}
}

// AddMissing adds a name that no cluster has, with the names that there are instead.
func (f *Findings) AddMissing(what, name string, there sets.Set[string]) {
	if len(f.Missing) >= mostMissing {
		return
	}
	message := what + " " + strconv.Quote(name)
	names := sets.List(there)
	switch near := nearest.DidYouMean("", name, slices.Values(names)); {
	case near != "":
		message += near
	case len(names) > 0:
		message += "; there is " + firstOf(names)
	}
	f.Missing = append(f.Missing, message)
}

// AddMissingScore adds the name of an AddOnPlacementScore that no cluster has. there is nil if the names that there are
// instead can't be listed.
func (f *Findings) AddMissingScore(what, name string, there sets.Set[string]) {
	f.Scores = f.Scores || there != nil
	f.AddMissing(what, name, there)
}

// Lacks returns the first messages about missing names as the end of a message.
func (f *Findings) Lacks() string {
	if len(f.Missing) == 0 {
		return ""
	}
	return "; " + strings.Join(f.Missing[:min(mostMissing, len(f.Missing))], "; ")
}

// mostMissing is the number of missing names in a condition.
const mostMissing = 8

// MostNamed is the number of things that a message names if there are many.
const MostNamed = 3

// firstOf names the first few of many things and counts the others.
func firstOf(names []string) string {
	if len(names) <= MostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNamed], ", "), len(names)-MostNamed)
}

// Wakeup is the earliest of several times, zero if there is none.
type Wakeup struct {
	// Time is the earliest time so far.
	Time time.Time
}

// At adds a time; zero adds nothing.
func (w *Wakeup) At(t time.Time) {
	if !t.IsZero() && (w.Time.IsZero() || t.Before(w.Time)) {
		w.Time = t
	}
}

// After adds the first moment after a time.
func (w *Wakeup) After(t time.Time) { w.At(t.Add(time.Nanosecond)) }
