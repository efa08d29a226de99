// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/apis/wellknown"
)

var (
	cloudColumn   = label("CLOUD", "cloud")
	regionColumn  = label("REGION", regionLabel)
	versionColumn = column{"VERSION", func(c cluster) string { return c.Status.Version.Kubernetes }}
)

// claim returns a column with the clusters' values of the ClusterClaim.
func claim(title, name string) column {
	return column{title, func(c cluster) string {
		for _, claim := range c.Status.ClusterClaims {
			if claim.Name == name {
				return claim.Value
			}
		}
		return ""
	}}
}

// score returns a column with the clusters' values of the score.
func score(title, name string) column {
	return column{title, func(c cluster) string {
		for _, item := range c.scores.Status.Scores {
			if item.Name == name {
				return fmt.Sprint(item.Value)
			}
		}
		return ""
	}}
}

// examples are Placements with expressions, from the proposal "Select clusters with CEL expressions".
var examples = []struct {
	name, text string
	columns    []column
}{
	{"field", "1. Clusters by any field of a ManagedCluster: here by the Kubernetes version in the status. The lines with a\n" +
		"   bar are the expressions of a Placement.", []column{cloudColumn, regionColumn, versionColumn}},
	{"label", "2. By a regular expression, on a label", []column{cloudColumn, label("LABEL version", "version")}},
	{"claim", "   or on a claim, which a cluster makes about itself. (These claims have a v in front.)",
		[]column{cloudColumn, claim("CLAIM kubeversion", "kubeversion.open-cluster-management.io")}},
	{"semver", "3. By comparing versions: newer than v1.30.0.", []column{cloudColumn, regionColumn, versionColumn}},
	{"scores", "4. By scores, which an agent writes for each cluster: here the CPUs and the memory that are left. Some\n" +
		"   clusters have no scores; a condition of the Placement counts and names them.",
		[]column{cloudColumn, {"QUANTITIES", func(c cluster) string { return c.scores.Annotations[setscores.QuantitiesAnnotation] }}}},
	{"json", "5. By what is inside of the text of a claim: a list with commas, and JSON. (? is for a key that may be missing.)",
		[]column{cloudColumn, claim("NODES", nodeClaim), claim("GPUS", gpusClaim)}},
}

// RunPlacement shows how Placements select from 200 clusters. The hub must have the CRDs of package test/hub, and
// celset-placement must run.
func RunPlacement(ctx context.Context, options Options) error {
	d, err := newHub(ctx, options, newClusters(time.Now()))
	if err != nil {
		return err
	}
	return acts(ctx, d.expressions, d.recovery, d.weights, d.spread, d.mistake)
}

// expressions prints the clusters, and then runs each of the Placements in examples.
func (d *demo) expressions(ctx context.Context) error {
	n := 0
	for _, c := range d.clusters {
		if c.Labels[clusterv1beta2.ClusterSetLabel] == production {
			n++
		}
	}
	d.say("A hub: an API server that knows %d clusters of three clouds. A Placement on it says which clusters a", len(d.clusters))
	d.say("workload may run on; celset-placement decides it, and writes the clusters into PlacementDecisions.")
	d.say("%d clusters are in the set %q, which the namespace %q may select from. The others are in", n, production, Team)
	d.say("the set \"staging\", out of its reach. celset-placement has the rights in manifests/placement/rbac.yaml.\n")
	d.table(d.clusters, cloudColumn, regionColumn, versionColumn, label("SET", clusterv1beta2.ClusterSetLabel))
	for _, e := range examples {
		d.say("%s\n", e.text)
		start := time.Now()
		got, err := d.decide(ctx, e.name, e.name)
		if err != nil {
			return err
		}
		took := time.Since(start)
		d.lines(bar, strings.Join(got.placement.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions, "\n"))
		d.table(d.selected(got), e.columns...)
		if failed := got.message(wellknown.ConditionEvaluationFailed); failed != "" {
			d.lines(bar, failed)
		}
		d.say("   %d of %d clusters. PlacementDecisions: %d. It took %.2f s.\n", len(got.clusters), n, got.objects, took.Seconds())
	}
	return nil
}

// decide applies the manifest of a Placement, and waits until its PlacementDecisions are up to date.
func (d *demo) decide(ctx context.Context, file, name string) (decision, error) {
	if err := d.apply(ctx, "placement/"+file+".yaml"); err != nil {
		return decision{}, err
	}
	return d.decided(ctx, Team, name, func(decision) bool { return true })
}

// selected returns the clusters in a decision, in the order of d.clusters.
func (d *demo) selected(got decision) []cluster {
	return slices.DeleteFunc(slices.Clone(d.clusters), func(c cluster) bool {
		return !slices.ContainsFunc(got.clusters, func(one clusterv1beta1.ClusterDecision) bool { return one.ClusterName == c.Name })
	})
}

// recovery adds a taint to the cluster where a shop runs, so that the Placement moves the shop to the backup. Then it removes
// the taint.
func (d *demo) recovery(ctx context.Context) error {
	d.say("6. Disaster recovery. A shop runs on one of two clusters: the one with the higher score \"workload\".\n")
	start := time.Now()
	if err := d.apply(ctx, "placement/recovery.yaml"); err != nil {
		return err
	}
	primary, err := d.shopRunsOn(ctx, "primary", start)
	if err != nil {
		return err
	}
	d.say("   The primary becomes unreachable: it gets the taint that a hub gives such clusters.\n")
	start = time.Now()
	primary.Spec.Taints = []clusterv1.Taint{{Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect}}
	if err := d.client.Update(ctx, primary); err != nil {
		return err
	}
	if _, err := d.shopRunsOn(ctx, "backup", start); err != nil {
		return err
	}
	d.say("   The primary is back. (With the prioritizer Steady the shop would stay where it is.)\n")
	start = time.Now()
	primary.Spec.Taints = nil
	if err := d.client.Update(ctx, primary); err != nil {
		return err
	}
	_, err = d.shopRunsOn(ctx, "primary", start)
	return err
}

// shopRunsOn waits until the Placement selects the cluster with the role. It prints the primary and the backup, and returns the
// selected cluster.
func (d *demo) shopRunsOn(ctx context.Context, role string, start time.Time) (*clusterv1.ManagedCluster, error) {
	isSelected := func(got decision) bool {
		selected := d.selected(got)
		return len(selected) == 1 && selected[0].Labels[shopLabel] == role
	}
	got, err := d.decided(ctx, "shop", "shop", isSelected)
	if err != nil {
		return nil, err
	}
	took, selected := time.Since(start), d.selected(got)[0]
	shops := slices.DeleteFunc(slices.Clone(d.clusters), func(c cluster) bool { return c.Labels[shopLabel] == "" })
	d.table(shops, label("ROLE", shopLabel), score("SCORE", "workload"),
		column{"TAINT", func(c cluster) string {
			if len(c.Spec.Taints) == 0 {
				return ""
			}
			return c.Spec.Taints[0].Key
		}},
		column{"SELECTED", func(c cluster) string {
			if c.Name == selected.Name {
				return "<--"
			}
			return ""
		}})
	d.say("   The shop is on the %s. It took %.2f s.\n", role, took.Seconds())
	return selected.ManagedCluster, nil
}

// weights shows two Placements: the first selects the clusters with the highest scores, the second the clusters with the
// lowest.
func (d *demo) weights(ctx context.Context) error {
	d.say("7. Weights. The three clusters with the highest score \"cpuratio\" (the share of CPUs that is idle),\n")
	if _, err := d.rank(ctx, "most", "most"); err != nil {
		return err
	}
	d.say("   and, with weight -1, the three with the lowest. SCORE is the weighted one.\n")
	_, err := d.rank(ctx, "least", "least")
	return err
}

// spread shows two Placements that select ten clusters each: the first by scores only, the second spread over all regions.
func (d *demo) spread(ctx context.Context) error {
	for _, p := range []struct{ file, text string }{
		{"regions", "8. Spreading. The ten clusters with the highest scores are all in one region:"},
		{"spread", "   With a spreadPolicy no region may have two clusters more than another:"},
	} {
		d.say("%s\n", p.text)
		clusters, err := d.rank(ctx, p.file, "regions")
		if err != nil {
			return err
		}
		bars := ""
		for _, r := range regions {
			bars += fmt.Sprintf("%-12s ", r.name)
			for _, c := range clusters {
				if c.Labels[regionLabel] == r.name {
					bars += "#"
				}
			}
			bars += "\n"
		}
		d.lines(margin, bars)
	}
	return nil
}

// rank applies a Placement and prints the selected clusters, the highest score first.
func (d *demo) rank(ctx context.Context, file, name string) ([]cluster, error) {
	got, err := d.decide(ctx, file, name)
	if err != nil {
		return nil, err
	}
	scores := map[string]int64{}
	for _, one := range got.clusters {
		scores[one.ClusterName] = one.Score
	}
	clusters := d.selected(got)
	slices.SortStableFunc(clusters, func(a, b cluster) int { return cmp.Compare(scores[b.Name], scores[a.Name]) })
	d.table(clusters, cloudColumn, regionColumn, score("cpuratio", "cpuratio"),
		column{"SCORE", func(c cluster) string { return fmt.Sprint(scores[c.Name]) }})
	return clusters, nil
}

// mistake changes a Placement so that its expression uses an unknown variable. It shows that the existing decisions stay.
func (d *demo) mistake(ctx context.Context) error {
	d.say("9. A mistake. Somebody misspells the variable in the Placement of 1. The condition PlacementMisconfigured of")
	d.say("   the Placement says where, and what was meant. The clusters stay selected until it is mended:\n")
	got, err := d.decide(ctx, "mistake", "field")
	if err != nil {
		return err
	}
	d.lines(bar, got.message(clusterv1beta1.PlacementConditionMisconfigured))
	d.say("   %d clusters are still selected.\n", len(got.clusters))
	return nil
}
