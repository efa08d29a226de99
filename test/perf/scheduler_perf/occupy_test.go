// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/topology"
)

const (
	driver = "mesh.example.com"
	// concurrentRequests is the maximum number of concurrent requests while a cluster is created.
	concurrentRequests = 16
	// maxResults is the maximum number of devices in one claim.
	maxResults = 32
)

// An occupancy holds the parameters of a workload that describe the devices of each node, and the devices in use at the start.
type occupancy struct {
	devices, halfPerCent, fullPerCent, fragmentedPerCent int
}

func occupancyOf(w *perf.Workload) (o occupancy, err error) {
	for name, value := range map[string]*int{
		"devices": &o.devices, "halfPerCent": &o.halfPerCent, "fullPerCent": &o.fullPerCent, "fragmentedPerCent": &o.fragmentedPerCent,
	} {
		if *value, err = w.GetParam(name); err != nil {
			return o, err
		}
	}
	return o, nil
}

// meshOf returns a mesh of devices with four columns, or eight for many devices. Each device has a number, and the number of
// its quad (a square of four devices).
func meshOf(devices int) (topology.Topology, error) {
	cols := 4
	if devices > 32 {
		cols = 8
	}
	return topology.NewMesh(topology.Family{Driver: driver, Prefix: "mesh"}, devices/cols, cols)
}

// slicesOf returns the ResourceSlices of a node with the mesh.
func slicesOf(mesh topology.Topology, node string) ([]*resourceapi.ResourceSlice, error) {
	published, err := mesh.ResourceSlices(node)
	index := int64(0)
	for _, slice := range published {
		for i := range slice.Spec.Devices {
			attributes := slice.Spec.Devices[i].Attributes
			row, col := *attributes[topology.AttributeRow].IntValue, *attributes[topology.AttributeCol].IntValue
			attributes["index"] = resourceapi.DeviceAttribute{IntValue: ptr.To(index)}
			attributes["quad"] = resourceapi.DeviceAttribute{IntValue: ptr.To(row/2*int64(mesh.Cols) + col/2)}
			attributes["model"] = resourceapi.DeviceAttribute{StringValue: ptr.To("mesh-accelerator-2")}
			attributes["firmware"] = resourceapi.DeviceAttribute{VersionValue: ptr.To("2.4.1")}
			index++
		}
	}
	return published, err
}

// inUse returns the numbers of the devices in use on the i-th node.
func (o occupancy) inUse(mesh topology.Topology, i int) []int {
	all := make([]int, len(mesh.Devices))
	for d := range all {
		all[d] = d
	}
	at := func(d int) topology.Coordinates { return mesh.Devices[d].Coordinates }
	switch {
	case i*o.fullPerCent/100 != (i+1)*o.fullPerCent/100:
		return all
	case i*o.fragmentedPerCent/100 != (i+1)*o.fragmentedPerCent/100:
		// The devices in use are the black squares of a chessboard on one node, and the white squares on the next.
		return slices.DeleteFunc(all, func(d int) bool { return (at(d).Row+at(d).Col+i)%2 == 0 })
	case i*o.halfPerCent/100 != (i+1)*o.halfPerCent/100:
		r := rand.New(rand.NewPCG(0xce15e7, uint64(i)))
		if i%2 == 0 {
			return halfOfSquares(mesh, all, r)
		}
		r.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		return slices.Sorted(slices.Values(all[:len(all)/2]))
	default:
		return nil
	}
}

// halfOfSquares returns the devices of a random half of the quads.
func halfOfSquares(mesh topology.Topology, all []int, r *rand.Rand) []int {
	squares := r.Perm(len(all) / 4)
	taken := squares[:len(squares)/2]
	return slices.DeleteFunc(all, func(d int) bool {
		at := mesh.Devices[d].Coordinates
		return !slices.Contains(taken, at.Row/2*(mesh.Cols/2)+at.Col/2)
	})
}

// occupy publishes the devices of the nodes, and creates allocated claims for the devices in use. Like the claims that the
// scheduler_perf operation allocResourceClaims creates, they have no pods.
func (o occupancy) occupy(ctx context.Context, client kubernetes.Interface, mesh topology.Topology, nodes []corev1.Node) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "occupied"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentRequests)
	for i := range nodes {
		group.Go(func() error {
			published, err := slicesOf(mesh, nodes[i].Name)
			if err != nil {
				return err
			}
			for _, slice := range published {
				if _, err := client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			for part := range slices.Chunk(o.inUse(mesh, i), maxResults) {
				name := fmt.Sprintf("%s-%d", nodes[i].Name, part[0])
				if err := allocate(ctx, client, name, published[0], mesh, part); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// allocate creates a claim that is allocated with devices of the slice.
func allocate(ctx context.Context, client kubernetes.Interface, name string, slice *resourceapi.ResourceSlice, mesh topology.Topology, devices []int) error {
	claims := client.ResourceV1().ResourceClaims("occupied")
	claim, err := claims.Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name:    "devices",
			Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driver, Count: int64(len(devices))},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: onlyNode(*slice.Spec.NodeName)}
	for _, d := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "devices", Driver: driver, Pool: slice.Spec.Pool.Name, Device: mesh.Devices[d].Name,
		})
	}
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

func onlyNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}}
}
