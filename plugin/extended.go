// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
)

// Upstream's plugin makes the claim for extended resources in Filter, for one node, of what that
// node does not provide by itself, and hands it to the allocator. Whether constraints hold for it,
// and how nearly it was met, has to be known without a node: this is the claim for a node that
// provides nothing by itself.

// extendedClaim is nil if there is nothing to request.
func (pl *DynamicResourcesCEL) extendedClaim(pod *v1.Pod) *resourceapi.ResourceClaim {
	requests := pl.extendedRequests(pod)
	if len(requests) == 0 {
		return nil
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: "<extended-resources>",
		Annotations: map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
	}}
	for _, r := range requests {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: r.name,
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: r.class.Name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: r.count,
			},
		})
	}
	return claim
}

// extendedRequest is for what a container wants of an extended resource.
type extendedRequest struct {
	container int
	resource  v1.ResourceName
	// name is what upstream calls the request.
	name  string
	class *resourceapi.DeviceClass
	count int64
}

// extendedRequests are those that the claim has, in its order. What an init container wants that
// ends before others start it takes from theirs, and only what is missing is requested, for all of
// these once.
func (pl *DynamicResourcesCEL) extendedRequests(pod *v1.Pod) []extendedRequest {
	if !pl.features.EnableDRAExtendedResource {
		return nil
	}
	var lasting, passing []extendedRequest
	for i, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		wanted := pl.extendedRequestsOf(i, container.Resources.Requests)
		if i < len(pod.Spec.InitContainers) && ptr.Deref(container.RestartPolicy, "") != v1.ContainerRestartPolicyAlways {
			passing = append(passing, wanted...)
		} else {
			lasting = append(lasting, wanted...)
		}
	}
	all := append(lasting, mostMissing(passing, lasting)...)
	slices.SortFunc(all, func(a, b extendedRequest) int { return cmp.Compare(a.name, b.name) })
	return all
}

func (pl *DynamicResourcesCEL) extendedRequestsOf(container int, wanted v1.ResourceList) []extendedRequest {
	names := make([]v1.ResourceName, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	var requests []extendedRequest
	for i, name := range names {
		quantity := wanted[name]
		count, ok := quantity.AsInt64()
		if !ok || count <= 0 {
			continue
		}
		if class := pl.claims.DeviceClassResolver().GetDeviceClass(name); class != nil {
			requests = append(requests, extendedRequest{container, name, fmt.Sprintf("container-%d-request-%d", container, i), class, count})
		}
	}
	return requests
}

// mostMissing are, for each resource, the request with the most that is missing in those of the
// containers after it.
func mostMissing(passing, lasting []extendedRequest) []extendedRequest {
	most := map[v1.ResourceName]extendedRequest{}
	for _, r := range passing {
		for _, other := range lasting {
			if other.resource == r.resource && other.container >= r.container {
				r.count -= other.count
			}
		}
		if r.count > max(0, most[r.resource].count) {
			most[r.resource] = r
		}
	}
	var requests []extendedRequest
	for _, r := range most {
		requests = append(requests, r)
	}
	return requests
}

// providesExtended tells whether the node has an extended resource of the pod without devices, so
// that the claim which is made for this node is another one.
func (pl *DynamicResourcesCEL) providesExtended(pod *v1.Pod, node fwk.NodeInfo) bool {
	return slices.ContainsFunc(pl.extendedRequests(pod), func(r extendedRequest) bool {
		return node.GetAllocatable().GetScalarResources()[r.resource] > 0
	})
}
