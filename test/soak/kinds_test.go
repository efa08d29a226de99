// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
)

// The profiles in manifests/scheduler/config.yaml.
const (
	celsetProfile = "celset-scheduler"
	stockProfile  = "default-scheduler"
)

// kindLabel says on claims of which kind they are.
const kindLabel = "celset.dev/kind"

// mesh is what each node has: 16 devices in 4 rows.
var mesh = func() topology.Topology {
	t, err := topology.NewMesh(topology.Family{Driver: "mesh.example.com", Prefix: "mesh"}, 4, 4)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return t
}()

// kind is a kind of pods, each with a claim of its own.
type kind struct {
	name, profile string
	count         int
	// expression of a CEL constraint, or attribute that must be the same.
	expression, attribute string
	holds                 func(names []string) bool
}

const span = `(devices.map(d, d.attributes['mesh.example.com'].%[1]s).max() - devices.map(d, d.attributes['mesh.example.com'].%[1]s).min() == %[2]d)`

// kinds have something for both profiles, with and without constraints.
var kinds = []*kind{
	{
		name: "grid", profile: celsetProfile, count: 4, expression: fmt.Sprintf(span+" && "+fmt.Sprintf(span, "col", 1), "row", 1),
		holds: func(names []string) bool { return mesh.IsBlock(names, 2, 2) },
	},
	{
		name: "line", profile: celsetProfile, count: 3, expression: fmt.Sprintf(span+" && "+fmt.Sprintf(span, "col", 2), "row", 0),
		holds: func(names []string) bool { return mesh.IsBlock(names, 1, 3) },
	},
	{name: "plain", profile: celsetProfile, count: 2, holds: func([]string) bool { return true }},
	{name: "stock", profile: stockProfile, count: 2, holds: func([]string) bool { return true }},
	{name: "row", profile: stockProfile, count: 3, attribute: "mesh.example.com/row", holds: inOneRow},
}

// block is for pods of a high priority: it takes half of a node.
var block = &kind{
	name: "block", profile: celsetProfile, count: 8, expression: fmt.Sprintf(span+" && "+fmt.Sprintf(span, "col", 3), "row", 1),
	holds: func(names []string) bool { return mesh.IsBlock(names, 2, 4) },
}

// kindNamed is nil if there is none.
func kindNamed(name string) *kind {
	all := append(slices.Clone(kinds), block)
	if i := slices.IndexFunc(all, func(k *kind) bool { return k.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func inOneRow(names []string) bool {
	devices, err := mesh.Select(names)
	return err == nil && !slices.ContainsFunc(devices, func(d topology.Device) bool {
		return d.Coordinates.Row != devices[0].Coordinates.Row
	})
}

// judge tells what is wrong with the devices of a claim.
func judge(claim *resourceapi.ResourceClaim) string {
	k := kindNamed(claim.Labels[kindLabel])
	if k == nil {
		return "is of no kind"
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Device)
		if result.Pool != claim.Status.Allocation.Devices.Results[0].Pool {
			return "has devices of two nodes"
		}
	}
	if len(names) != k.count || !k.holds(names) {
		return fmt.Sprintf("has %v, which is no set of a %s", names, k.name)
	}
	return ""
}

// template is what the claims of the kind are made from.
func (k *kind) template() (*resourceapi.ResourceClaimTemplate, error) {
	driver := mesh.Drivers()[0]
	spec := resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name:    "devices",
		Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driver, Count: int64(k.count)},
	}}}}
	attribute := k.attribute
	if k.expression != "" {
		attribute = v1alpha1.AttributeDomain + "/" + k.name
		raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
			Name:     k.name, Expression: k.expression,
		})
		if err != nil {
			return nil, err
		}
		spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw}},
		}}}
	}
	if attribute != "" {
		name := resourceapi.FullyQualifiedName(attribute)
		spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &name}}
	}
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: k.name},
		Spec:       resourceapi.ResourceClaimTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kindLabel: k.name}}, Spec: spec},
	}, nil
}

func (k *kind) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName:  k.profile,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &k.name}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "devices"}}},
			}},
		},
	}
}
