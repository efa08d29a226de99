// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
)

// The files in testdata contain hubs, Placements, and the expected results. "go test ./placement -rewrite" updates the results.
// The commands are:
//
//	hub       starts a new hub. Its set "global" has all clusters and is bound to the namespace of the Placement.
//	change    changes the named objects. null removes an object.
//	place     gives the Placement another spec and decides it
//	each      does the same as place for each line
//	decide    decides the Placement again
//	forget    drops all verdicts about clusters
//	unchanged reports whether the last result is still valid, without a decision
//	validate  lists the mistakes in a spec
//
// The argument at=... sets the time relative to [now]. apply writes the result to the hub. Other arguments select views on the
// result (see [transcript.view]). Without such an argument, the output is the whole result.

func TestPredicates(t *testing.T)   { replayFile(t, "predicates") }
func TestFailures(t *testing.T)     { replayFile(t, "failures") }
func TestMistakes(t *testing.T)     { replayFile(t, "mistakes") }
func TestSets(t *testing.T)         { replayFile(t, "sets") }
func TestTaints(t *testing.T)       { replayFile(t, "taints") }
func TestSpread(t *testing.T)       { replayFile(t, "spread") }
func TestPrioritizers(t *testing.T) { replayFile(t, "prioritizers") }
func TestAddOnScores(t *testing.T)  { replayFile(t, "scores") }
func TestDecisions(t *testing.T)    { replayFile(t, "decisions") }
func TestSlices(t *testing.T)       { replayFile(t, "slices") }
func TestTime(t *testing.T)         { replayFile(t, "time") }
func TestUnchanged(t *testing.T)    { replayFile(t, "unchanged") }
func TestRemembered(t *testing.T)   { replayFile(t, "remembered") }
func TestMissing(t *testing.T)      { replayFile(t, "missing") }

// transcript has a hub, and one Scheduler for all decisions of a file.
type transcript struct {
	*hub
	scheduler *placement.Scheduler
	object    *clusterv1beta1.Placement
	at        time.Time
	versions  int
	scores    *frozen
	// steps holds the steps that wrote the last result to the hub.
	steps []placement.Step
}

func replayFile(t *testing.T, name string) {
	x := &transcript{}
	datadriven.RunTest(t, filepath.Join("testdata", name), func(t *testing.T, d *datadriven.TestData) string {
		x.set(t, d)
		switch d.Cmd {
		case "hub":
			x.hub, x.scheduler, x.object, x.at = newHub(), newScheduler(t), placed(t, ""), now
			x.change(t, d.Input)
			return ""
		case "change":
			x.change(t, d.Input)
			return ""
		case "each":
			var lines []string
			for line := range strings.Lines(d.Input) {
				x.place(t, "{ "+line+"\n}")
				lines = append(lines, strings.ReplaceAll(x.decide(t, d, "; "), "\n", "\n    "))
			}
			return strings.Join(lines, "\n")
		case "place":
			x.place(t, d.Input)
		case "validate":
			x.place(t, d.Input)
			var places []string
			for _, one := range uninterrupted(x.scheduler.Validate(t.Context(), x.object)) {
				places = append(places, one.Plugin+" "+one.Path.String())
			}
			return strings.Join(places, "\n")
		case "unchanged":
			before := evaluations.n
			unchanged, _ := x.scheduler.Unchanged(t.Context(), x.object, x.snapshot(), x.at)
			return fmt.Sprintf("%t, evaluated %d", unchanged, evaluations.n-before)
		case "forget":
			placement.ForgetAll(x.scheduler)
			return ""
		case "decide":
		default:
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		return x.decide(t, d, "\n")
	})
}

// set evaluates the arguments of a command.
func (x *transcript) set(t *testing.T, d *datadriven.TestData) {
	for _, arg := range d.CmdArgs {
		switch value := strings.Join(arg.Vals, ""); arg.Key {
		case "at":
			after, err := time.ParseDuration(value)
			require.NoError(t, err)
			x.at = now.Add(after)
		case "tie-break":
			x.object.Annotations = map[string]string{wellknown.AnnotationTieBreak: value}
		case "uid":
			x.object.UID = types.UID(value)
		case "name":
			x.object.Name = value
		}
	}
}

// place gives the Placement another spec and a new generation.
func (x *transcript) place(t *testing.T, spec string) {
	x.object.Spec = placed(t, spec).Spec
	x.object.Generation++
	x.touch()
}

// touch gives the Placement a new resource version.
func (x *transcript) touch() {
	x.versions++
	x.object.ResourceVersion = fmt.Sprint("v", x.versions)
}

// snapshot returns a snapshot of the hub. If no score has changed, it uses the same scores object as before.
func (x *transcript) snapshot() *placement.Snapshot {
	if x.scores == nil || !maps.Equal(x.scores.of, x.hub.scores) {
		x.scores = &frozen{maps.Clone(x.hub.scores)}
	}
	snapshot := x.hub.snapshot()
	snapshot.Scores = x.scores
	return snapshot
}

// decide decides the Placement, and returns the requested views on the result, or the whole result.
func (x *transcript) decide(t *testing.T, d *datadriven.TestData, separator string) string {
	result, err := x.scheduler.Schedule(t.Context(), x.object, x.snapshot(), x.at)
	require.NoError(t, err)
	if d.HasArg("apply") {
		before := x.object.DeepCopy()
		x.steps = x.apply(x.object, result)
		if result.Decision != nil && len(x.steps) == 0 && equality.Semantic.DeepEqual(before.Status, x.object.Status) {
			x.scheduler.Confirm(before, result)
		} else {
			x.touch()
		}
	}
	var told []string
	for _, arg := range d.CmdArgs {
		if text := x.view(arg.Key, result); text != "" {
			told = append(told, text)
		}
	}
	if len(told) == 0 {
		return described(result)
	}
	return strings.Join(told, separator)
}

// view returns a view on a result as text. It returns "" if there is no view of this name.
func (x *transcript) view(name string, r *placement.Result) string {
	var all []string
	switch name {
	case "describe":
		return described(r)
	case "summary":
		return r.ScoreSummary()
	case "sets":
		return "of " + strings.Join(r.Available.Eligible, ",")
	case "selected":
		return told(r, func(s placement.Slice) string {
			return eachOf(s, func(d clusterv1beta1.ClusterDecision) string { return d.ClusterName })
		})
	case "recorded":
		return told(r, func(s placement.Slice) string {
			return eachOf(s, func(d clusterv1beta1.ClusterDecision) string { return fmt.Sprint(d.ClusterName, ":", d.Score) })
		})
	case "lengths":
		return told(r, func(s placement.Slice) string {
			return fmt.Sprint(strings.TrimPrefix(s.Name, "p-decision-"), "*", len(s.Decisions))
		})
	case "ranked":
		for _, p := range r.Prioritizers {
			all = append(all, fmt.Sprintf("%s*%d", p.Name, p.Weight))
		}
		for _, c := range r.Candidates {
			all = append(all, fmt.Sprintf("%s:%d", c.Cluster.Name, c.Total))
		}
		return strings.Join(all, " ")
	case "removed":
		for _, filtered := range r.Filters {
			for _, removal := range filtered.Removed {
				all = append(all, removal.Cluster+" "+removal.Reason.String())
			}
		}
		return strings.Join(all, "; ")
	case "satisfied":
		return conditionOf(r, clusterv1beta1.PlacementConditionSatisfied)
	case "failed":
		return conditionOf(r, wellknown.ConditionEvaluationFailed)
	case "warnings":
		return fmt.Sprint(r.Warnings, r.OutOfRange)
	case "evaluated":
		return fmt.Sprintf("evaluated %d, remembered %d", r.Evaluated, r.Remembered)
	case "requeue":
		if r.Requeue.IsZero() {
			return "never again"
		}
		return "again after " + r.Requeue.Sub(now).String()
	case "steps":
		return cmp.Or(strings.Join(stepsOf(x.steps), ", "), "nothing to write")
	case "objects":
		return inYAML(r.Decision.Objects(x.object))
	case "status":
		return inYAML(r.ApplyTo(x.object.Status))
	}
	return ""
}

func eachOf(s placement.Slice, draw func(clusterv1beta1.ClusterDecision) string) string {
	var all []string
	for _, decision := range s.Decisions {
		all = append(all, draw(decision))
	}
	return strings.Join(all, " ")
}

// told formats the slices of a decision as "name: slice slice | name: ...". If there is no decision, told returns the reason.
func told(result *placement.Result, draw func(placement.Slice) string) string {
	if result.Decision == nil {
		if len(result.Misconfigurations) > 0 {
			return meta.FindStatusCondition(result.Conditions, clusterv1beta1.PlacementConditionMisconfigured).Message
		}
		return conditionOf(result, clusterv1beta1.PlacementConditionSatisfied)
	}
	var groups []string
	for _, group := range result.Decision.Groups {
		var slices []string
		for _, slice := range group.Slices {
			slices = append(slices, draw(slice))
		}
		text := strings.Join(slices, " ")
		if text == "" {
			text = "none"
		}
		if group.Name != "" {
			text = group.Name + ": " + text
		}
		groups = append(groups, text)
	}
	return strings.Join(groups, " | ")
}

func conditionOf(result *placement.Result, kind string) string {
	condition := meta.FindStatusCondition(result.Conditions, kind)
	return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
}

func inYAML(content any) string {
	text, err := yaml.Marshal(content)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// change changes the objects of the hub that are named in text. Null removes an object.
func (x *transcript) change(t *testing.T, text string) {
	var said struct {
		Clusters  map[string]*json.RawMessage
		Sets      map[string]*clusterv1beta2.ManagedClusterSetSpec
		Bindings  []string
		Scores    map[string]*clusterv1alpha1.AddOnPlacementScoreStatus
		Decisions map[string]*struct {
			Placement, Group string
			Clusters         []string
		}
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &said))
	x.versions++
	for _, names := range slices.Sorted(maps.Keys(said.Clusters)) {
		for _, name := range expand(names) {
			x.changeCluster(t, name, said.Clusters[names])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said.Sets)) {
		x.sets = slices.DeleteFunc(slices.Clone(x.sets), func(s *clusterv1beta2.ManagedClusterSet) bool { return s.Name == name })
		if spec := said.Sets[name]; spec != nil {
			x.sets = append(x.sets, &clusterv1beta2.ManagedClusterSet{ObjectMeta: x.metadata(name), Spec: *spec})
		}
	}
	if said.Bindings != nil {
		x.bindings = nil
	}
	for _, one := range said.Bindings {
		x.bindings = append(x.bindings, binding(namespaced(one)))
	}
	for key, status := range said.Scores {
		if delete(x.hub.scores, key); status != nil {
			x.hub.scores[key] = &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: x.metadata(key), Status: *status}
		}
	}
	for key, of := range said.Decisions {
		namespace, name := namespaced(key)
		if of == nil {
			x.decisions.Delete(namespace, name)
			continue
		}
		var clusters []string
		for _, names := range of.Clusters {
			clusters = append(clusters, expand(names)...)
		}
		object := decision(namespace, of.Placement, name, clusters...)
		object.Labels[clusterv1beta1.DecisionGroupIndexLabel] = of.Group
		x.decisions.Set(object)
	}
}

func (x *transcript) metadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: fmt.Sprint("v", x.versions)}
}

// changeCluster replaces a cluster with a changed copy.
func (x *transcript) changeCluster(t *testing.T, name string, said *json.RawMessage) {
	x.clusters = slices.Clone(x.clusters)
	at := slices.IndexFunc(x.clusters, func(c *clusterv1.ManagedCluster) bool { return c.Name == name })
	if said == nil {
		require.GreaterOrEqual(t, at, 0, name)
		x.clusters = slices.Delete(x.clusters, at, at+1)
		return
	}
	next := managed(name)
	if at >= 0 {
		next = x.clusters[at].DeepCopy()
	}
	next.ResourceVersion = fmt.Sprint("v", x.versions)
	require.NoError(t, yaml.UnmarshalStrict(*said, next))
	if at < 0 {
		at, x.clusters = len(x.clusters), append(x.clusters, nil)
	}
	x.clusters[at] = next
}

// namespaced splits "namespace/name". Without a "/", the namespace is the one of the Placement.
func namespaced(key string) (namespace, name string) {
	if namespace, name, both := strings.Cut(key, "/"); both {
		return namespace, name
	}
	return "ns", key
}

// expand returns the names c0003 to c0007 for "c0003..c0007".
func expand(names string) []string {
	first, last, several := strings.Cut(names, "..")
	if !several {
		return []string{names}
	}
	var result []string
	var from, to int
	if _, err := fmt.Sscanf(first+" "+last, "c%d c%d", &from, &to); err != nil {
		panic(err)
	}
	for _, c := range numbered(from, to+1) {
		result = append(result, c.Name)
	}
	return result
}
