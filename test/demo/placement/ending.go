// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mistake misspells the variable in a Placement that has decisions.
func (d *demo) mistake(ctx context.Context) error {
	key := client.ObjectKey{Namespace: namespace, Name: "field"}
	before, err := d.await(ctx, key)
	if err != nil {
		return err
	}
	d.say("9. A mistake. Somebody misspells the variable in the Placement of 1. The condition PlacementMisconfigured of")
	d.say("   the Placement says where, and what was meant. The clusters stay selected until it is mended:\n")
	if err := d.apply(ctx, "mistake.yaml"); err != nil {
		return err
	}
	got, err := d.await(ctx, key, says(clusterv1beta1.PlacementConditionMisconfigured, "True", "<input>:2:1: undeclared reference to 'managedClusterr' (in container ''); did you mean \"managedCluster\"?"))
	if err != nil {
		return err
	}
	if difference := cmp.Diff(before.places(), got.places()); difference != "" {
		return fmt.Errorf("the PlacementDecisions of Placement %s have changed (-before +after):\n%s", key, difference)
	}
	d.quote(got.message(clusterv1beta1.PlacementConditionMisconfigured))
	d.say("")
	if err := d.apply(ctx, "field.yaml"); err != nil {
		return err
	}
	if _, err := d.await(ctx, key, says(clusterv1beta1.PlacementConditionMisconfigured, "False", "")); err != nil {
		return err
	}
	d.say("   The same %d clusters in the same PlacementDecision, checked.\n", len(got.names))
	return nil
}

// places are the clusters by the object that they are in. Scores are left out: those
// of others may change them at any time.
func (o *outcome) places() map[string][]string {
	result := map[string][]string{}
	for _, object := range o.objects {
		key := object.Name + " " + string(object.UID)
		result[key] = []string{}
		for _, decision := range object.Status.Decisions {
			result[key] = append(result[key], decision.ClusterName)
		}
	}
	return result
}

// maxClusters is how many clusters one PlacementDecision may have.
const maxClusters = 100

// nothingElse checks all decisions on the hub: whom they are for, and that no
// cluster is out of reach or twice in one Placement.
func (d *demo) nothingElse(ctx context.Context) error {
	all, err := d.members(ctx)
	if err != nil {
		return err
	}
	labels := map[string]map[string]string{}
	for _, m := range all {
		labels[m.Name] = m.Labels
	}
	var list clusterv1beta1.PlacementDecisionList
	if err := d.client.List(ctx, &list); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, object := range list.Items {
		if err := inReach(object, labels, seen); err != nil {
			return fmt.Errorf("PlacementDecision %s/%s: %w", object.Namespace, object.Name, err)
		}
	}
	d.say("In all, %d decisions in %d PlacementDecisions, none of them for a cluster that is out of reach. All of the", len(seen), len(list.Items))
	d.say("above was read back from the API server, and checked without CEL.")
	return nil
}

func inReach(object clusterv1beta1.PlacementDecision, labels map[string]map[string]string, seen map[string]bool) error {
	if n := len(object.Status.Decisions); n > maxClusters {
		return fmt.Errorf("it has %d clusters", n)
	}
	for _, decision := range object.Status.Decisions {
		of, found := labels[decision.ClusterName]
		reachable := of[clusterv1beta2.ClusterSetLabel] == bound
		if object.Namespace == "shop" {
			reachable = of[shopLabel] != ""
		}
		if !found || !reachable {
			return fmt.Errorf("cluster %s is in no set that is bound", decision.ClusterName)
		}
		key := object.Namespace + "/" + object.Labels[clusterv1beta1.PlacementLabel] + "/" + decision.ClusterName
		if seen[key] {
			return fmt.Errorf("cluster %s is selected twice", decision.ClusterName)
		}
		seen[key] = true
	}
	return nil
}
