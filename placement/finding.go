// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/apis/nearest"
)

// findings collects what filters and prioritizers find besides their answers.
type findings struct {
	// warnings are to be recorded as events.
	warnings []Warning
	// outOfRange maps the name of a prioritizer to the number of candidates whose values are out of range.
	outOfRange map[string]int
	// missing has messages about names that the Placement reads and that no cluster has.
	missing []string
	// next is the earliest time at which an answer may be another one though no object changes.
	next horizon
	// keys, scores and sets tell that a message names labels or claims of clusters, AddOnPlacementScores, or
	// ManagedClusterSets that the Placement does not read. A change of any of these changes the message.
	keys, scores, sets bool
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

// warn adds a warning about subjects, if there are any. format has a %s for them.
func (f *findings) warn(reason, plugin, format string, subjects []string) {
	if len(subjects) > 0 {
		f.warnings = append(f.warnings, Warning{reason, plugin, fmt.Sprintf(format, firstOf(subjects))})
	}
}

// warnOutOfRange warns about subjects with values that are out of their range, and counts
// them.
func (f *findings) warnOutOfRange(reason, plugin, format string, subjects []string) {
	f.warn(reason, plugin, format, subjects)
	if len(subjects) > 0 {
		if f.outOfRange == nil {
			f.outOfRange = map[string]int{}
		}
		f.outOfRange[plugin] += len(subjects)
	}
}

// addMissing adds a name that no cluster has, with the names that there are instead.
func (f *findings) addMissing(what, name string, there sets.Set[string]) {
	if len(f.missing) >= mostMissing {
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
	f.missing = append(f.missing, message)
}

// addMissingScore adds the name of an AddOnPlacementScore that no cluster has. there is nil if the names that there are
// instead can't be listed.
func (f *findings) addMissingScore(what, name string, there sets.Set[string]) {
	f.scores = f.scores || there != nil
	f.addMissing(what, name, there)
}

// lacks returns the first messages about missing names as the end of a message.
func (f *findings) lacks() string {
	if len(f.missing) == 0 {
		return ""
	}
	return "; " + strings.Join(f.missing[:min(mostMissing, len(f.missing))], "; ")
}

// mostMissing is the number of missing names in a condition.
const mostMissing = 8

// mostNamed is the number of things that a message names if there are many.
const mostNamed = 3

// firstOf names the first few of many things and counts the others.
func firstOf(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}

// horizon is the earliest of several times, zero if there is none.
type horizon struct {
	time time.Time
}

// at adds a time; zero adds nothing.
func (h *horizon) at(t time.Time) {
	if !t.IsZero() && (h.time.IsZero() || t.Before(h.time)) {
		h.time = t
	}
}

// after adds the first moment after a time.
func (h *horizon) after(t time.Time) { h.at(t.Add(time.Nanosecond)) }
