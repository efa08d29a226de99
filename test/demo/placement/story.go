// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recovery taints the cluster on which a shop runs, and takes the taint away.
func (d *demo) recovery(ctx context.Context) error {
	d.say("6. Disaster recovery. A shop runs on one of two clusters: the one with the higher score \"workload\".\n")
	if err := d.apply(ctx, "recovery.yaml"); err != nil {
		return err
	}
	primary, err := d.serves(ctx, "primary", time.Time{})
	if err != nil {
		return err
	}
	d.say("   The primary becomes unreachable: it gets the taint that a hub gives such clusters.\n")
	start := time.Now()
	if err := change(ctx, d, primary.ManagedCluster, func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = []clusterv1.Taint{{
			Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.Now(),
		}}
	}); err != nil {
		return err
	}
	if _, err := d.serves(ctx, "backup", start); err != nil {
		return err
	}
	d.say("   The primary is back. (With the prioritizer Steady the shop would stay where it is.)\n")
	start = time.Now()
	if err := change(ctx, d, primary.ManagedCluster, func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil }); err != nil {
		return err
	}
	_, err = d.serves(ctx, "primary", start)
	return err
}

// serves waits until the cluster with a role is the selected one, and checks that it
// has to be.
func (d *demo) serves(ctx context.Context, role string, since time.Time) (member, error) {
	all, err := d.members(ctx)
	if err != nil {
		return member{}, err
	}
	from := choose(all, func(m member) bool { return m.Labels[shopLabel] != "" })
	want := best(untainted(from), 1, 1, recoveryScores, roleScore)
	if len(from) != 2 || len(want) != 1 || want[0].Labels[shopLabel] != role {
		return member{}, fmt.Errorf("the shop should be served by the %s, but the clusters say %v", role, namesOf(want))
	}
	got, err := d.await(ctx, client.ObjectKey{Namespace: "shop", Name: "shop"}, selects(want))
	if err != nil {
		return member{}, err
	}
	took := ""
	if !since.IsZero() {
		took = fmt.Sprintf(" It took %.2f s.", time.Since(since).Seconds())
	}
	d.draw(from, roleOf, taintsOf, column{"SCORE", func(m member) string {
		return fmt.Sprint(valueOf(m, recoveryScores, roleScore))
	}}, column{"SELECTED", func(m member) string { return mark(slices.Contains(got.names, m.Name)) }})
	d.say("\n   The shop is on the %s, checked.%s\n", role, took)
	return want[0], nil
}

func mark(selected bool) string {
	if selected {
		return "<--"
	}
	return ""
}

// weights selects the clusters with the highest and with the lowest scores.
func (d *demo) weights(ctx context.Context) error {
	all, err := d.members(ctx)
	if err != nil {
		return err
	}
	from := available(all)
	for _, end := range []struct {
		name, title string
		weight      int
	}{
		{"most", "7. Weights. The three clusters with the highest score \"cpuratio\" (the share of CPUs that is idle),", 1},
		{"least", "   and, with weight -1, the three with the lowest. SCORE is the weighted one.", -1},
	} {
		d.say("%s\n", end.title)
		want := best(from, 3, end.weight, defaultScores, ratioScore)
		if _, err := d.ranked(ctx, end.name+".yaml", end.name, want, selects(want)); err != nil {
			return err
		}
		d.say("")
	}
	d.say("   Checked.\n")
	return nil
}

// ranked applies a Placement by "cpuratio" and draws the clusters, which are given in
// the order of their rank; without them the selected ones are drawn by name.
func (d *demo) ranked(ctx context.Context, file, name string, ranked []member, checks ...check) (*outcome, error) {
	if err := d.apply(ctx, file); err != nil {
		return nil, err
	}
	got, err := d.await(ctx, client.ObjectKey{Namespace: namespace, Name: name}, checks...)
	if err != nil {
		return nil, err
	}
	all, err := d.members(ctx)
	if err != nil {
		return nil, err
	}
	if ranked == nil {
		ranked = got.of(all)
	}
	d.draw(ranked, cloudOf, regionOf,
		column{"cpuratio", func(m member) string { return fmt.Sprint(valueOf(m, defaultScores, ratioScore)) }},
		column{"SCORE", got.score})
	return got, nil
}

// regions spreads the best clusters over all regions.
func (d *demo) regions(ctx context.Context) error {
	all, err := d.members(ctx)
	if err != nil {
		return err
	}
	from := available(all)
	d.say("8. Spreading. The ten clusters with the highest scores are all in one region:\n")
	want := best(from, 10, 1, defaultScores, ratioScore)
	got, err := d.ranked(ctx, "regions.yaml", "regions", want, selects(want))
	if err != nil {
		return err
	}
	before := countByRegion(got.of(from), from)
	d.say("")
	d.drawCounts(before)
	if within(before, 1) == nil {
		return errors.New("the best clusters are spread without being told to be")
	}
	d.say("\n   With a spreadPolicy no region may have two clusters more than another:\n")
	got, err = d.ranked(ctx, "spread.yaml", "regions", nil, spread(from, 10))
	if err != nil {
		return err
	}
	d.say("")
	d.drawCounts(countByRegion(got.of(from), from))
	d.say("\n   Ten clusters, the best of each region, checked.\n")
	return nil
}

// spread checks that n clusters are selected, as many in each region as in any other
// but for one, and in each region the best ones.
func spread(from []member, n int) check {
	return func(o *outcome) error {
		selected := o.of(from)
		counts := countByRegion(selected, from)
		if len(selected) != n || len(o.names) != n {
			return fmt.Errorf("%d clusters are selected, not %d", len(o.names), n)
		}
		if err := within(counts, 1); err != nil {
			return err
		}
		for region, count := range counts {
			in := func(m member) bool { return m.Labels[regionLabel] == region }
			want := namesOf(best(choose(from, in), count, 1, defaultScores, ratioScore))
			slices.Sort(want)
			if got := namesOf(choose(selected, in)); !slices.Equal(want, got) {
				return fmt.Errorf("the best clusters in region %s are %v, but %v are selected", region, want, got)
			}
		}
		return nil
	}
}

// within checks that no region has more clusters than another one and the skew.
func within(counts map[string]int, skew int) error {
	values := slices.Sorted(maps.Values(counts))
	if len(values) == 0 || values[len(values)-1]-values[0] > skew {
		return fmt.Errorf("the counts by region %v differ by more than %d", counts, skew)
	}
	return nil
}
