// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/models"
	"github.com/celset/celset/internal/machine"
)

// input has the objects of a case.
type input struct {
	Setting
	state *clusterstate.State
	// hub is nil unless the case is about a Placement.
	hub *placements.Hub
	// warnings are warnings about objects, for example about a misspelt kind.
	warnings []string
}

// input reads the objects of a setting.
func (r *reader) input(ctx context.Context, s Setting) (*input, error) {
	s.Namespace = cmp.Or(s.Namespace, metav1.NamespaceDefault)
	if s.Claim != nil {
		s.Subject = clusterstate.ClaimKind + "/" + claimName
	}
	documents, err := r.documents(&s)
	if err == nil {
		documents, err = clusterstate.WithPods(documents)
	}
	if err != nil {
		return nil, err
	}
	in := &input{Setting: s}
	if in.isAboutPlacements(documents) {
		own := make([]clusterstate.Document, len(documents))
		for i, d := range documents {
			own[i] = clusterstate.Document{Source: d.Source, Object: d.Object.DeepCopy()}
		}
		if in.hub, err = placements.FromDocuments(own, s.Namespace); err == nil {
			in.warnings = in.hub.Warnings
		}
		return in, err
	}
	objects := &clusterstate.Objects{}
	for _, document := range documents {
		if err := objects.Add(document, s.Namespace); err != nil {
			return nil, err
		}
	}
	if s.Machine != nil {
		of, err := s.Machine.objects(ctx, objects.Nodes)
		if err != nil {
			return nil, fmt.Errorf("machine: %w", err)
		}
		objects = of.Overlay(objects)
	}
	for i := range s.InUse {
		claims, err := s.InUse[i].Claims(objects)
		if err != nil {
			return nil, fmt.Errorf("inUse[%d]: %w", i, err)
		}
		if objects.Claims = append(objects.Claims, claims...); len(objects.Claims) > maxHolders {
			return nil, fmt.Errorf("inUse: more than %d devices are in use, the limit: use fewer nodes or devices", maxHolders)
		}
	}
	objects.LimitQuantities()
	if err := objects.Enrich(ctx); err != nil {
		return nil, err
	}
	objects.WarnOfAttributes()
	in.warnings = objects.Warnings
	in.state = clusterstate.New(objects)
	return in, nil
}

// isAboutPlacements reports whether the subject is a Placement. If the field subject is empty, the subject is a Placement if
// the documents contain Placements, and neither claims, templates, pods nor groups.
func (in *input) isAboutPlacements(documents []clusterstate.Document) bool {
	if in.Subject != "" {
		kind, _, err := clusterstate.Split(in.Subject, clusterstate.PlacementKind)
		return err == nil && kind == clusterstate.PlacementKind
	}
	has := func(kinds ...string) bool {
		return slices.ContainsFunc(documents, func(d clusterstate.Document) bool { return slices.Contains(kinds, d.Object.GetKind()) })
	}
	return has("Placement") && !has("Pod", "ResourceClaim", "ResourceClaimTemplate", "PodGroup")
}

// objects returns the DeviceClasses, nodes and ResourceSlices of the machine. nodes are the Node objects of the case.
func (m *Machine) objects(ctx context.Context, nodes []*corev1.Node) (*clusterstate.Objects, error) {
	model, err := machine.ByName(m.Name)
	if err != nil {
		return nil, err
	}
	names := models.Names(m.Nodes)
	if m.Nodes == 0 {
		for _, node := range nodes {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		names = models.Names(1)
	}
	return models.Nodes(ctx, model, names)
}

const (
	// holders is the namespace of the claims that have the devices in use.
	holders = "in-use"
	// maxHolders is the maximum number of claims of a case that uses the field inUse.
	maxHolders = 100_000
)

// Claims returns an allocated claim for each device in use.
func (u *InUse) Claims(objects *clusterstate.Objects) ([]*resourceapi.ResourceClaim, error) {
	var claims []*resourceapi.ResourceClaim
	counts, names := map[string]int{}, sets.New[string]()
	wanted, on, found := sets.New(u.Devices...), sets.New(u.Nodes...), sets.New[string]()
	for _, slice := range objects.Slices {
		node := cmp.Or(ptr.Deref(slice.Spec.NodeName, ""), slice.Spec.Pool.Name)
		if len(on) > 0 && !on.Has(node) || u.Driver != "" && u.Driver != slice.Spec.Driver {
			continue
		}
		found.Insert(node)
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			names.Insert(d.Name)
			if u.Count > 0 && counts[node] >= u.Count || u.Count == 0 && !wanted.Has(d.Name) {
				continue
			}
			counts[node]++
			claim, err := u.claim(node, slice, d)
			if err != nil {
				return nil, err
			}
			claims = append(claims, claim)
		}
	}
	for _, name := range u.Nodes {
		if !found.Has(name) {
			return nil, fmt.Errorf("nodes: node %q has no devices%s", cut(name), u.where())
		}
	}
	for _, name := range u.Devices {
		if !names.Has(name) {
			return nil, fmt.Errorf("there is no device %q%s%s", cut(name), u.where(), nearest.DidYouMean("", name, slices.Values(sets.List(names))))
		}
	}
	for _, node := range sets.List(found) {
		if counts[node] < u.Count {
			return nil, fmt.Errorf("count: node %s has only %d devices%s", node, counts[node], u.where())
		}
	}
	if len(claims) == 0 {
		return nil, fmt.Errorf("there are no devices%s", u.where())
	}
	return claims, nil
}

// where returns a text about the driver of the entry.
func (u *InUse) where() string {
	if u.Driver == "" {
		return ""
	}
	return " of driver " + cut(u.Driver)
}

// claim returns a claim that has a device, or a share of it.
func (u *InUse) claim(node string, slice *resourceapi.ResourceSlice, d *resourceapi.Device) (*resourceapi.ResourceClaim, error) {
	share := map[resourceapi.QualifiedName]apiresource.Quantity{}
	for name, text := range u.Capacity {
		if _, ok := d.Capacity[resourceapi.QualifiedName(name)]; !ok || !ptr.Deref(d.AllowMultipleAllocations, false) {
			return nil, fmt.Errorf("capacity: claims can't share the capacity %q of device %s: remove it", cut(name), d.Name)
		}
		share[resourceapi.QualifiedName(name)] = apiresource.MustParse(text) // mistakes.inUse has checked it
	}
	return models.Holder(holders, node, slice, d, share), nil
}
