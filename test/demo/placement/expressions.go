// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
)

// namespace of all Placements but that of the story of recovery.
const namespace = "team"

// example is a Placement with expressions, and what they say in Go.
type example struct {
	name    string
	title   string
	columns []column
	matches func(member) bool
	// fails tells on which clusters they can't be evaluated; nil is on none.
	fails func(member) bool
}

// examples are those of the proposal "Select clusters with CEL expressions".
var examples = []example{
	{
		name: "field", title: "1. Clusters by any field of a ManagedCluster: here by the Kubernetes version in the status. The lines with a\n   bar are the expressions of a Placement.",
		columns: []column{cloudOf, regionOf, versionOf},
		matches: func(m member) bool { return m.Status.Version.Kubernetes == "v1.30.0" },
	},
	{
		name: "label", title: "2. By a regular expression, on a label",
		columns: []column{cloudOf, label("LABEL version", versionLabel)},
		matches: func(m member) bool { return isMinor(m.Labels[versionLabel], "30", "31") },
	},
	{
		name: "claim", title: "   or on a claim, which is what a cluster says of itself. (These claims have a v in front.)",
		columns: []column{cloudOf, {"CLAIM kubeversion", func(m member) string { return claimOf(m, versionClaim) }}},
		matches: func(m member) bool {
			version, hasV := strings.CutPrefix(claimOf(m, versionClaim), "v")
			return hasV && isMinor(version, "30", "31")
		},
	},
	{
		name: "semver", title: "3. By comparing versions: newer than v1.30.0.",
		columns: []column{cloudOf, regionOf, versionOf},
		matches: func(m member) bool { return isNewerThan(m.Status.Version.Kubernetes, "v1.30.0") },
	},
	{
		name: "scores", title: "4. By scores, which an agent writes for each cluster: here the CPUs and the memory that are left. Some\n   clusters have no scores; a condition of the Placement counts and names them.",
		columns: []column{cloudOf, amount("CPU", cpuScore), amount("MEMORY", memoryScore)},
		matches: func(m member) bool { return hasMore(m, cpuScore, "4") && hasMore(m, memoryScore, "100Mi") },
		fails:   func(m member) bool { return m.scores[defaultScores] == nil },
	},
	{
		name: "json", title: "5. By what is inside of the text of a claim: a list with commas, and JSON. (? is for a key that may be missing.)",
		columns: []column{cloudOf,
			{"NODES", func(m member) string { return claimOf(m, nodesClaim) }},
			{"NC96ads_H100_v4", func(m member) string { return fmt.Sprint(gpusOf(m, "H100", gpuPool)) }},
		},
		matches: func(m member) bool {
			return slices.Contains(strings.Split(claimOf(m, nodesClaim), ","), "g6.xlarge") &&
				slices.Contains(gpusOf(m, "H100", gpuPool), 2)
		},
	},
}

func amount(title, score string) column {
	return column{title, func(m member) string {
		amount, _ := amountOf(m, score)
		return amount.String()
	}}
}

// gpuPool is the kind of node that example 5 asks for.
const gpuPool = "Standard_NC96ads_H100_v4"

// expressions shows the examples.
func (d *demo) expressions(ctx context.Context) error {
	all, err := d.members(ctx)
	if err != nil {
		return err
	}
	for _, e := range examples {
		if err := d.show(ctx, e, available(all)); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

func (d *demo) show(ctx context.Context, e example, from []member) error {
	want := choose(from, e.matches)
	if len(want) == 0 || len(want) == len(from) {
		return errors.New("the example selects none of the clusters, or all")
	}
	d.say("%s\n", e.title)
	start := time.Now()
	if err := d.apply(ctx, e.name+".yaml"); err != nil {
		return err
	}
	checks := []check{selects(want)}
	if e.fails != nil {
		text := fmt.Sprintf("The evaluation failed on %d clusters", len(choose(from, e.fails)))
		checks = append(checks, says(wellknown.ConditionEvaluationFailed, "True", text))
	} else {
		checks = append(checks, says(wellknown.ConditionEvaluationFailed, "False", ""))
	}
	got, err := d.await(ctx, client.ObjectKey{Namespace: namespace, Name: e.name}, checks...)
	if err != nil {
		return err
	}
	took := since(start)
	d.quote(strings.Join(got.placement.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions, "\n"))
	d.say("")
	d.draw(got.of(from), e.columns...)
	if e.fails != nil {
		d.say("")
		d.quote(got.message(wellknown.ConditionEvaluationFailed))
	}
	d.say("\n%s%d of %d clusters in %s, checked. It took %s.\n", margin, len(got.names), len(from), objects(len(got.objects)), took)
	return nil
}

func objects(n int) string {
	if n == 1 {
		return "a PlacementDecision"
	}
	return fmt.Sprintf("%d PlacementDecisions", n)
}

// since is a duration as people read it.
func since(start time.Time) string {
	return fmt.Sprintf("%.2f s", time.Since(start).Seconds())
}
