// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/test/controlplane"
)

// Hub is a hub for a demo that has clusters of its own.
type Hub struct{ demo *demo }

// OnHub sets up a hub with these clusters, each with the namespace of its name, and calls
// tell while the controller decides. The context of tell ends when the controller does.
func OnHub(ctx context.Context, options Options, clusters []*clusterv1.ManagedCluster, tell func(context.Context, *Hub) error) error {
	var fleet []member
	for _, cluster := range clusters {
		fleet = append(fleet, member{ManagedCluster: cluster})
	}
	return run(ctx, options, fleet, func(ctx context.Context, d *demo) error { return tell(ctx, &Hub{d}) })
}

// Client is for the hub, with all rights.
func (h *Hub) Client() client.Client { return h.demo.client }

// Decide applies the manifest of a Placement, which is in the namespace "team" to select
// from the set [fleet.ClusterSet]. It returns the name of the cluster that is selected,
// once there is one.
func (h *Hub) Decide(ctx context.Context, manifest []byte) (string, error) {
	applied, err := controlplane.Apply(ctx, h.demo.Config, manifest, controlplane.ApplyOptions{Namespace: namespace})
	if err != nil {
		return "", err
	}
	got, err := h.demo.await(ctx, client.ObjectKeyFromObject(applied[0]), func(o *outcome) error {
		if len(o.names) != 1 {
			return fmt.Errorf("one cluster should be selected, but these are: %v", o.names)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return got.names[0], nil
}

// Quote shows text as something that was read.
func (h *Hub) Quote(text string) { h.demo.quote(text) }
