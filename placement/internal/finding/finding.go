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

// Findings collects warnings, messages about missing names, and wakeup times while the steps of a decision run.
type Findings struct {
	// Warnings holds the warnings that are recorded as events.
	Warnings []Warning
	// OutOfRange maps the name of a prioritizer to the number of candidates whose values are out of its range.
	OutOfRange map[string]int
	// Missing holds messages about names that the Placement reads but no cluster has.
	Missing []string
	// Next is the earliest time at which the outcome may change although no object changes.
	Next Wakeup
	// Keys, Scores and Sets are set if a message lists existing names that the Placement does not read: Keys for labels or claims
	// of clusters, Scores for AddOnPlacementScores, Sets for ManagedClusterSets. A change of such a name then changes the message.
	Keys, Scores, Sets bool
}

// Warning describes a problem that does not prevent a decision. It is recorded as an event.
type Warning struct {
	// Reason is one of [wellknown.ReasonScoreExpired] and the constants after it.
	Reason string
	// Plugin is the name of the filter or prioritizer that found the problem.
	Plugin string
	// Message describes the problem and names the first few objects that have it.
	Message string
}

// Warn adds a warning about subjects, which are names of objects. It does nothing if there are no subjects. format has a %s for
// the names.
func (f *Findings) Warn(reason, plugin, format string, subjects []string) {
	if len(subjects) > 0 {
		f.Warnings = append(f.Warnings, Warning{reason, plugin, fmt.Sprintf(format, firstOf(subjects))})
	}
}

// WarnOutOfRange is like Warn. It also counts subjects as objects with values out of range.
func (f *Findings) WarnOutOfRange(reason, plugin, format string, subjects []string) {
	f.Warn(reason, plugin, format, subjects)
	if len(subjects) > 0 {
		if f.OutOfRange == nil {
			f.OutOfRange = map[string]int{}
		}
		f.OutOfRange[plugin] += len(subjects)
	}
}

// AddMissing adds a message about a name that no cluster has. there has existing names, and the message suggests a similar one.
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
		message += "; existing names: " + firstOf(names)
	}
	f.Missing = append(f.Missing, message)
}

// AddMissingScore adds a message about an AddOnPlacementScore that no cluster has. there has the existing names, or is nil if
// the names can't be listed.
func (f *Findings) AddMissingScore(what, name string, there sets.Set[string]) {
	f.Scores = f.Scores || there != nil
	f.AddMissing(what, name, there)
}

// Lacks returns the first few messages about missing names as one text, which becomes the end of another message.
func (f *Findings) Lacks() string {
	if len(f.Missing) == 0 {
		return ""
	}
	return "; " + strings.Join(f.Missing[:min(mostMissing, len(f.Missing))], "; ")
}

// mostMissing is the maximum number of missing names that a condition reports.
const mostMissing = 8

// MostNamed is the maximum number of objects that a message names.
const MostNamed = 3

// firstOf returns the first MostNamed names, and the number of other names.
func firstOf(names []string) string {
	if len(names) <= MostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNamed], ", "), len(names)-MostNamed)
}

// Wakeup finds the earliest of several times.
type Wakeup struct {
	// Time is the earliest time so far, or zero if no time was added.
	Time time.Time
}

// At takes a time into account. It ignores the zero time.
func (w *Wakeup) At(t time.Time) {
	if !t.IsZero() && (w.Time.IsZero() || t.Before(w.Time)) {
		w.Time = t
	}
}

// After takes the first moment after t into account.
func (w *Wakeup) After(t time.Time) { w.At(t.Add(time.Nanosecond)) }
