// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/report"
)

// Answer is the decision that celset-placement would make for a Placement, with its reasons.
type Answer struct {
	output.Meta
	*report.Report
	// Selected are the clusters that would be selected. Added and Removed are the differences to the existing
	// PlacementDecisions. All three are empty if no new decision can be made, so that the existing decision stays.
	Selected []string `json:"selected"`
	Added    []string `json:"added,omitempty"`
	Removed  []string `json:"removed,omitempty"`

	name   string
	result *placement.Result
	Options
}

// Options select the contents of an [Answer].
type Options struct {
	// Why makes Print write the reasons for each cluster.
	Why bool `json:"-"`
	// Clusters limits the reasons to these clusters. Empty means all clusters.
	Clusters []string `json:"-"`
}

// Decide makes the decision that celset-placement would make at the time now. A deadline of ctx limits the evaluation of
// expressions. Mistakes in the Placement are in the answer. An error means that Decide itself failed.
func (h *Hub) Decide(ctx context.Context, object *clusterv1beta1.Placement, now time.Time, options Options) (*Answer, error) {
	scheduler, err := placement.NewScheduler(placement.Config{EvaluationTimeout: placement.DefaultEvaluationTimeout})
	if err != nil {
		return nil, err
	}
	result, err := scheduler.Schedule(ctx, object, h.snapshot(), now)
	if err != nil {
		return nil, err
	}
	a := &Answer{
		Meta: output.NewMeta(output.PlacementDecided), Report: report.New(object, result, nil, report.Options{All: true, Clusters: options.Clusters}),
		Selected: []string{}, name: klog.KObj(object).String(), result: result, Options: options,
	}
	if result.Decision == nil {
		return a, nil
	}
	for _, c := range result.Candidates {
		if c.Selected {
			a.Selected = append(a.Selected, c.Cluster.Name)
		}
	}
	slices.Sort(a.Selected)
	former, selected := h.former(object), sets.New(a.Selected...)
	a.Added, a.Removed = sets.List(selected.Difference(former)), sets.List(former.Difference(selected))
	return a, nil
}

// former returns the clusters in the Placement's existing PlacementDecisions.
func (h *Hub) former(object *clusterv1beta1.Placement) sets.Set[string] {
	former := sets.New[string]()
	for _, decision := range h.decisions {
		if decision.Namespace != object.Namespace || decision.Labels[clusterv1beta1.PlacementLabel] != object.Name {
			continue
		}
		for _, one := range decision.Status.Decisions {
			former.Insert(one.ClusterName)
		}
	}
	return former
}

// Positive reports whether the Placement is decided and selects a cluster.
func (a *Answer) Positive() bool { return len(a.Selected) > 0 }

// mostNames is the maximum number of cluster names in a line of the text. Structured output has all names.
const mostNames = 20

// Print writes the answer as text.
func (a *Answer) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Placement %s\n", a.name)
	switch {
	case a.KeepsFormer:
		fmt.Fprintf(&b, "  no decision can be made: the previous decision with %d clusters stays in effect\n", a.result.FormerClusters)
	case a.Undecided:
		fmt.Fprintln(&b, "  no decision can be made, and no previous decision exists: no cluster is selected")
	case len(a.Selected) == 0:
		fmt.Fprintln(&b, "  selects no cluster")
	default:
		fmt.Fprintf(&b, "  selects %d of %d clusters: %s\n", len(a.Selected), a.Available.Clusters, report.First(a.Selected, mostNames))
	}
	for _, change := range []struct {
		what  string
		names []string
	}{{"new", a.Added}, {"no longer selected", a.Removed}} {
		if len(change.names) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", change.what, report.First(change.names, mostNames))
		}
	}
	if a.Why || len(a.Selected) == 0 {
		for line := range strings.Lines(a.Text()) {
			fmt.Fprintln(&b, strings.TrimRight("  "+line, " \n"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Verdict lists the mistakes in one Placement.
type Verdict struct {
	Placement string   `json:"placement"`
	Errors    []string `json:"errors,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	// Clusters is the number of clusters that the Placement may select from, or nil if Evaluate made no decision. Selected are
	// the clusters that would be selected.
	Clusters *int     `json:"clusters,omitempty"`
	Selected []string `json:"selected,omitempty"`
}

// Check validates Placements as the webhook does. It returns an error only if ctx ends.
func Check(ctx context.Context, objects []*clusterv1beta1.Placement) ([]Verdict, error) {
	scheduler, err := placement.NewScheduler(placement.Config{})
	if err != nil {
		return nil, err
	}
	var verdicts []Verdict
	for _, object := range objects {
		verdict := Verdict{Placement: klog.KObj(object).String()}
		wrong, err := scheduler.Validate(ctx, object)
		if err != nil {
			return nil, err
		}
		for _, one := range wrong {
			verdict.Errors = append(verdict.Errors, fmt.Sprintf("%s: %v", one.Path, one.Err))
		}
		doubts, err := scheduler.Doubts(ctx, object)
		if err != nil {
			return nil, err
		}
		for _, one := range doubts {
			verdict.Warnings = append(verdict.Warnings, one.Error())
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, nil
}
