// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// A choice is a line in a scheduler's log about victims on a node for a preemptor.
type choice struct {
	at              time.Time
	preemptor, node string
	victims         []string
}

// An ended is a line in a scheduler's log about the end of a pod's hold.
type ended struct {
	at       time.Time
	pod, how string
}

// decisions are the log lines of schedulers about preemption.
type decisions struct {
	choices []choice
	ends    []ended
}

var (
	podPattern = regexp.MustCompile(`pod [a-z0-9/-]+`)
	// A line of klog: I1125 04:05:06.123456   4711 file.go:12] "Message" key="value" …
	stampPattern  = regexp.MustCompile(`^[IWE](\d{4} \d{2}:\d{2}:\d{2}\.\d{6}) `)
	choicePattern = regexp.MustCompile(`"Devices are held for a pod for which others are evicted" pod="[^"/]*/([^"]*)" node="([^"]*)" .*victims=\[([^\]]*)\]`)
	noWaitPattern = regexp.MustCompile(`"A pod stopped waiting for the devices that are held for it" pod="[^"/]*/([^"]*)" .*why="([^"]*)"`)
	endPattern    = regexp.MustCompile(`"Devices are no longer held for a pod" pod="[^"/]*/([^"]*)" .*end="([^"]*)"`)
)

// readLogs reads the logs of schedulers. The logs lack the year, so the caller gives it.
func readLogs(year int, paths ...string) (decisions, error) {
	var d decisions
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return d, err
		}
		for line := range strings.Lines(string(content)) {
			d.enter(year, line)
		}
	}
	return d, nil
}

func (d *decisions) enter(year int, line string) {
	stamp := stampPattern.FindStringSubmatch(line)
	if stamp == nil {
		return
	}
	at, err := time.ParseInLocation("2006 0102 15:04:05.000000", fmt.Sprintf("%d %s", year, stamp[1]), time.Local)
	if err != nil {
		return
	}
	if found := choicePattern.FindStringSubmatch(line); found != nil {
		c := choice{at: at, preemptor: found[1], node: found[2]}
		for _, victim := range strings.Split(found[3], ",") {
			_, name, _ := strings.Cut(strings.Trim(victim, `"{} `), "/")
			c.victims = append(c.victims, name)
		}
		d.choices = append(d.choices, c)
	}
	if found := noWaitPattern.FindStringSubmatch(line); found != nil {
		d.ends = append(d.ends, ended{at: at, pod: found[1], how: "not waited for: " + podPattern.ReplaceAllString(found[2], "pod")})
	}
	if found := endPattern.FindStringSubmatch(line); found != nil {
		d.ends = append(d.ends, ended{at: at, pod: found[1], how: found[2]})
	}
}

const (
	// slack is the maximal delay of an informer behind a log.
	slack = time.Second
	// lag is the time that a scheduler on a busy machine may need to see that a pod is bound. A scheduler that is killed in this
	// time does not log the end of a hold.
	lag = 10 * time.Second
	// unexplained marks an eviction without a visible reason.
	unexplained = "unexplained"
)

// choiceOf returns the last choice with this victim before its eviction, or nil.
func (d decisions) choiceOf(victim *life) (chosen *choice) {
	for i := range d.choices {
		c := &d.choices[i]
		if slices.Contains(c.victims, victim.name) && c.at.Before(victim.evicted.Add(slack)) && (chosen == nil || c.at.After(chosen.at)) {
			chosen = c
		}
	}
	return chosen
}

// explain returns the reason and the result of an eviction.
func explain(victim *life, lives map[string]*life, d decisions, kills []time.Time) string {
	killedIn := func(from, to time.Time) bool {
		return slices.ContainsFunc(kills, func(at time.Time) bool { return at.After(from) && at.Before(to) })
	}
	chosen := d.choiceOf(victim)
	if chosen == nil {
		if killedIn(victim.evicted.Add(-slack), victim.evicted.Add(slack)) {
			return "the scheduler was killed before it said for whom"
		}
		return unexplained + ": no scheduler says for whom"
	}
	preemptor := lives[chosen.preemptor]
	if preemptor == nil {
		return unexplained + ": for a pod that there never was"
	}
	until := preemptor.bound
	switch {
	case until.IsZero() && !preemptor.deleted.IsZero():
		return "its preemptor was deleted before it was bound"
	case until.IsZero():
		return unexplained + ": its preemptor " + preemptor.name + " was not bound"
	case preemptor.node == chosen.node && until.After(chosen.at):
		return "its preemptor was bound there"
	}
	if killedIn(chosen.at, until.Add(lag)) {
		return "the scheduler was killed, and its preemptor bound elsewhere"
	}
	// The choice applies until the next choice for this preemptor, if any.
	again := ""
	for _, other := range d.choices {
		if other.preemptor == preemptor.name && other.node != chosen.node && other.at.After(chosen.at) && other.at.Before(until) {
			until, again = other.at, ": others were evicted for "+preemptor.name+" on "+other.node+", too"
		}
	}
	for _, end := range d.ends {
		// The next choice itself ends the hold.
		caused := again == "" || end.how != "moved" || end.at.Before(until)
		if end.pod == preemptor.name && end.how != "bound" && caused && end.at.After(chosen.at) && end.at.Before(until.Add(slack)) {
			return "its preemptor was bound elsewhere, what was held for it ended: " + end.how
		}
	}
	if again != "" {
		return unexplained + again
	}
	return unexplained + ": its preemptor " + preemptor.name + " was bound elsewhere"
}

// explained counts evictions by explanation.
type explained map[string]int

func explainAll(lives map[string]*life, d decisions, kills []time.Time) explained {
	counts := explained{}
	for _, l := range lives {
		if !l.evicted.IsZero() {
			counts[explain(l, lives, d, kills)]++
		}
	}
	return counts
}

func (e explained) total() (total int) {
	for _, n := range e {
		total += n
	}
	return total
}

// A spending holds the evictions for a pod, or for all pods that use one claim.
type spending struct {
	// sets is the number of needed sets of victims. size is the size of the largest of them.
	sets, size int
	// last is the time of the last choice.
	last time.Time
	// evicted are the names of the evicted victims.
	evicted []string
}

// tooMany returns a complaint for each pod with more evictions than one set of devices needs, which is the size of its largest
// chosen set of victims. Pods that use one claim count as one. Another set may be needed in three cases: a pod of the claim was
// bound (and perhaps evicted again), the pod with the hold was deleted, or a pod of a higher priority has broken the hold.
func tooMany(lives map[string]*life, d decisions) (complaints []string) {
	key := func(pod string) string {
		if l := lives[pod]; l != nil && l.claim != "" {
			return "claim " + l.claim
		}
		return "pod " + pod
	}
	over := map[string][]time.Time{}
	for _, l := range lives {
		if !l.bound.IsZero() {
			over[key(l.name)] = append(over[key(l.name)], l.bound)
		}
	}
	for _, end := range d.ends {
		if end.how == "broken" || end.how == "deleted" {
			over[key(end.pod)] = append(over[key(end.pod)], end.at)
		}
	}
	spent := spendings(d, key, over)
	for _, l := range lives {
		if l.evicted.IsZero() {
			continue
		}
		if chosen := d.choiceOf(l); chosen != nil {
			s := spent[key(chosen.preemptor)]
			s.evicted = append(s.evicted, l.name)
		}
	}
	for _, whom := range slices.Sorted(maps.Keys(spent)) {
		if s := spent[whom]; len(s.evicted) > s.size*s.sets {
			slices.Sort(s.evicted)
			complaints = append(complaints, fmt.Sprintf("%s: %d pods were evicted, %d would have done: %v", whom, len(s.evicted), s.size*s.sets, s.evicted))
		}
	}
	return complaints
}

// spendings returns the choices for each key. over contains the times after which a key needs another set.
func spendings(d decisions, key func(pod string) string, over map[string][]time.Time) map[string]*spending {
	spent := map[string]*spending{}
	choices := slices.Clone(d.choices)
	slices.SortStableFunc(choices, func(a, b choice) int { return a.at.Compare(b.at) })
	for _, c := range choices {
		s := spent[key(c.preemptor)]
		if s == nil {
			s = &spending{sets: 1}
			spent[key(c.preemptor)] = s
		} else if slices.ContainsFunc(over[key(c.preemptor)], func(at time.Time) bool { return at.After(s.last) && !at.After(c.at) }) {
			s.sets++
		}
		s.last, s.size = c.at, max(s.size, len(c.victims))
	}
	return spent
}

// story returns the log lines about a pod.
func story(pod string, paths ...string) (lines []string) {
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return append(lines, err.Error())
		}
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, "/"+pod+`"`) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// unexplained returns the explanations that must not occur.
func (e explained) unexplained() []string {
	var all []string
	for _, why := range slices.Sorted(maps.Keys(e)) {
		if strings.HasPrefix(why, unexplained) {
			all = append(all, fmt.Sprintf("%d evictions: %s", e[why], why))
		}
	}
	return all
}

// TestDecisionsAreReadFromLogs makes the logger write the messages of plugin/preempt and plugin/profiles.go.
func TestDecisionsAreReadFromLogs(t *testing.T) {
	var log bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "soak", Name: name}}
	}
	logger.Info("Devices are held for a pod for which others are evicted", "pod", klog.KObj(pod("high")), "node", klog.KRef("", "node-1"),
		"devices", "mesh-1, mesh-2", "victims", klog.KObjSlice([]*corev1.Pod{pod("a"), pod("b")}), "cost", "any", "exact", true)
	logger.Info("A pod stopped waiting for the devices that are held for it", "pod", klog.KObj(pod("high")), "node", klog.KRef("", "node-1"), "why", "pod soak/low-1 uses some of the devices")
	logger.Info("Something else", "pod", klog.KObj(pod("high")))
	logger.Info("Devices are no longer held for a pod", "pod", klog.KObj(pod("high")), "node", klog.KRef("", "node-1"), "end", "bound", "victims", 2)
	var d decisions
	for line := range bytes.Lines(log.Bytes()) {
		d.enter(time.Now().Year(), string(line))
	}
	require.Len(t, d.choices, 1)
	require.WithinDuration(t, time.Now(), d.choices[0].at, time.Minute)
	d.choices[0].at = time.Time{}
	require.Equal(t, choice{preemptor: "high", node: "node-1", victims: []string{"a", "b"}}, d.choices[0])
	require.Len(t, d.ends, 2)
	require.Equal(t, []string{"high", "not waited for: pod uses some of the devices"}, []string{d.ends[0].pod, d.ends[0].how})
	require.Equal(t, []string{"high", "bound"}, []string{d.ends[1].pod, d.ends[1].how})
}

// TestTooManyEvictionsAreFound has preemptors with two chosen sets of victims although one would suffice.
func TestTooManyEvictionsAreFound(t *testing.T) {
	now := time.Now()
	choose := func(after time.Duration, preemptor string, victims ...string) choice {
		return choice{at: now.Add(after), preemptor: preemptor, victims: victims}
	}
	twoSets := []choice{choose(1, "high", "a", "b"), choose(3, "high", "c")}
	for name, test := range map[string]struct {
		choices []choice
		ends    []ended
		bound   time.Time
		want    []string
	}{
		"one set":            {choices: []choice{choose(1, "high", "a", "b", "c")}},
		"the rest of a set":  {choices: []choice{choose(1, "high", "a", "b", "c"), choose(3, "high", "c")}},
		"two sets":           {choices: twoSets, want: []string{"pod high: 3 pods were evicted, 2 would have done: [a b c]"}},
		"bound in between":   {choices: twoSets, bound: now.Add(2)},
		"bound afterwards":   {choices: twoSets, bound: now.Add(4), want: []string{"pod high: 3 pods were evicted, 2 would have done: [a b c]"}},
		"broken in between":  {choices: twoSets, ends: []ended{{at: now.Add(2), pod: "high", how: "broken"}}},
		"deleted in between": {choices: twoSets, ends: []ended{{at: now.Add(2), pod: "high", how: "deleted"}}},
		"timeout":            {choices: twoSets, ends: []ended{{at: now.Add(2), pod: "high", how: "timeout"}}, want: []string{"pod high: 3 pods were evicted, 2 would have done: [a b c]"}},
		"two pods":           {choices: []choice{choose(1, "high", "a", "b"), choose(3, "team-1", "c")}},
		"two pods of a team": {choices: []choice{choose(1, "team-1", "a"), choose(3, "team-2", "b", "c")}, want: []string{"claim team: 3 pods were evicted, 2 would have done: [a b c]"}},
		"others were chosen": {choices: []choice{choose(1, "high", "d")}},
	} {
		lives := map[string]*life{"high": {name: "high", bound: test.bound}, "team-1": {name: "team-1", claim: "team"}, "team-2": {name: "team-2", claim: "team"}}
		for _, victim := range []string{"a", "b", "c"} {
			lives[victim] = &life{name: victim, evicted: now.Add(3)}
		}
		require.Equal(t, test.want, tooMany(lives, decisions{choices: test.choices, ends: test.ends}), name)
	}
}
