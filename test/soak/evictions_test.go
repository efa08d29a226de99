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

// A choice is a line in a scheduler's log: the scheduler has chosen victims on a node for a preemptor.
type choice struct {
	at              time.Time
	preemptor, node string
	victims         []string
}

// An ended is a line in a scheduler's log: the hold of devices for a pod has ended.
type ended struct {
	at       time.Time
	pod, how string
}

// decisions holds the lines about preemption in the logs of all schedulers.
type decisions struct {
	choices []choice
	ends    []ended
}

var (
	podPattern = regexp.MustCompile(`pod [a-z0-9/-]+`)
	// The format of a line of klog is: I1125 04:05:06.123456 4711 file.go:12] "Message" key="value" …
	stampPattern  = regexp.MustCompile(`^[IWE](\d{4} \d{2}:\d{2}:\d{2}\.\d{6}) `)
	choicePattern = regexp.MustCompile(`"Devices are held for a pod for which others are evicted" pod="[^"/]*/([^"]*)" node="([^"]*)" .*victims=\[([^\]]*)\]`)
	noWaitPattern = regexp.MustCompile(`"A pod stopped waiting for the devices that are held for it" pod="[^"/]*/([^"]*)" .*why="([^"]*)"`)
	endPattern    = regexp.MustCompile(`"Devices are no longer held for a pod" pod="[^"/]*/([^"]*)" .*end="([^"]*)"`)
)

// readLogs reads the logs of schedulers. The times in logs have no year, so the caller passes the year.
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
	// slack is the maximum delay between a log line and the corresponding watch event.
	slack = time.Second
	// lag is the maximum time that a scheduler on a busy machine needs to see that a pod is bound. If the scheduler is killed
	// in this time, the log has no line about the end of the hold.
	lag = 10 * time.Second
	// unexplained begins the explanation of an eviction without a valid reason.
	unexplained = "unexplained"
)

// choiceOf returns the last choice before the eviction that contains the victim, or nil.
func (d decisions) choiceOf(victim *life) (chosen *choice) {
	for i := range d.choices {
		c := &d.choices[i]
		if slices.Contains(c.victims, victim.name) && c.at.Before(victim.evicted.Add(slack)) && (chosen == nil || c.at.After(chosen.at)) {
			chosen = c
		}
	}
	return chosen
}

// explain returns why a pod was evicted, and what became of the preemptor.
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
	// A choice is valid until the next choice for the same preemptor, if there is one.
	again := ""
	for _, other := range d.choices {
		if other.preemptor == preemptor.name && other.node != chosen.node && other.at.After(chosen.at) && other.at.Before(until) {
			until, again = other.at, ": others were evicted for "+preemptor.name+" on "+other.node+", too"
		}
	}
	for _, end := range d.ends {
		// If the hold moved because of the next choice, the move does not explain the eviction.
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

// explained maps an explanation to the number of evictions.
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

// A spending adds up the evictions for one preemptor, or for all preemptors that use one claim.
type spending struct {
	// sets is the number of sets of victims that were necessary. size is the number of victims in the largest set.
	sets, size int
	// last is the time of the last choice of victims.
	last time.Time
	// evicted holds the names of the victims that were evicted.
	evicted []string
}

// tooMany returns a complaint for each preemptor that caused too many evictions. The limit is the size of the largest set of
// victims that was chosen for it. Preemptors that use one claim count as one. A second set is allowed if a pod of the claim was
// bound (and perhaps evicted again), if the preemptor was deleted, or if a pod of a higher priority has ended the hold.
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

// spendings adds up the choices by key. over maps a key to times. If such a time lies between two choices of the key, the later
// choice counts as another set.
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

// story returns the lines about a pod in the logs.
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

// unexplained returns a text for each explanation that begins with the constant unexplained: the number of evictions and the
// explanation.
func (e explained) unexplained() []string {
	var all []string
	for _, why := range slices.Sorted(maps.Keys(e)) {
		if strings.HasPrefix(why, unexplained) {
			all = append(all, fmt.Sprintf("%d evictions: %s", e[why], why))
		}
	}
	return all
}

// TestDecisionsAreReadFromLogs checks that readLogs can parse the messages of plugin/preempt and plugin/profiles.go, as klog
// formats them.
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

// TestTooManyEvictionsAreFound checks that tooMany finds preemptors with two sets of victims if one set would have sufficed.
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
