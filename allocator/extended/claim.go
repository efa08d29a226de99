// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extended makes the claim for the extended resources of a pod (KEP-5004) as kube-scheduler makes it. It is for
// programs that explain or simulate the scheduler:
//
//	claim := extended.Claim(pod, classOf)
//
// kube-scheduler makes the claim in Filter. The claim requests only the resources that the node itself does not provide. This
// package assumes that the node itself provides none of them.
package extended

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// ClaimName is the name of a claim that does not exist in the API server yet. No object can have this name.
const ClaimName = v1alpha1.UnstoredClaimName

// ClassOf returns the DeviceClass for an extended resource, or nil if no class has the resource.
type ClassOf func(v1.ResourceName) *resourceapi.DeviceClass

// Claim returns the claim for the extended resources of a pod, or nil if the pod needs no claim.
func Claim(pod *v1.Pod, classOf ClassOf) *resourceapi.ResourceClaim {
	requests := requestsOf(pod, classOf)
	if len(requests) == 0 {
		return nil
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: ClaimName,
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
	if sets := containers(pod, classOf); slices.ContainsFunc(sets, func(names []string) bool { return len(names) > 1 }) {
		return v1alpha1.WithContainers(claim, sets)
	}
	return claim
}

// Wants reports whether a pod requests an extended resource that has a DeviceClass. It allocates no memory.
func Wants(pod *v1.Pod, classOf ClassOf) bool {
	wants := func(containers []v1.Container) bool {
		for i := range containers {
			for name, quantity := range containers[i].Resources.Requests {
				if name != v1.ResourceCPU && name != v1.ResourceMemory && !quantity.IsZero() && classOf(name) != nil {
					return true
				}
			}
		}
		return false
	}
	return wants(pod.Spec.Containers) || wants(pod.Spec.InitContainers)
}

// Waiting returns the claims for the pods that [Waits] returns true for.
func Waiting(pods []*v1.Pod, classOf ClassOf) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, pod := range pods {
		if !Waits(pod) {
			continue
		}
		if claim := Claim(pod, classOf); claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// Waits reports whether a pod waits to be scheduled and has no claim for extended resources yet.
func Waits(pod *v1.Pod) bool {
	hasEnded := pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	return pod.Spec.NodeName == "" && !hasEnded && pod.Status.ExtendedResourceClaimStatus == nil
}

// Resources returns the sorted names of the extended resources that the pod's claim covers.
func Resources(pod *v1.Pod, classOf ClassOf) []v1.ResourceName {
	var names []v1.ResourceName
	for _, r := range requestsOf(pod, classOf) {
		names = append(names, r.resource)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// request is the number of devices that a container wants for one extended resource.
type request struct {
	container int
	resource  v1.ResourceName
	// name is the name that kube-scheduler gives to the request.
	name  string
	class *resourceapi.DeviceClass
	count int64
}

// requestsOf returns the requests of the pod's claim, in order. An init container that ends before other containers start uses
// their devices. Only its additional devices are requested, once for all such init containers.
func requestsOf(pod *v1.Pod, classOf ClassOf) []request {
	lasting, passing := wanted(pod, classOf)
	all := append(lasting, mostMissing(passing, lasting)...)
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.name, b.name) })
	return all
}

// containers returns, for each container and resource, the names of the requests whose devices the container gets.
func containers(pod *v1.Pod, classOf ClassOf) [][]string {
	lasting, passing := wanted(pod, classOf)
	missing := mostMissing(passing, lasting)
	var all [][]string
	for _, r := range lasting {
		all = append(all, []string{r.name})
	}
	for _, r := range passing {
		names, left := reused(r, lasting)
		if left > 0 {
			shared := slices.IndexFunc(missing, func(m request) bool { return m.resource == r.resource })
			names = append(names, missing[shared].name)
		}
		slices.Sort(names)
		if !slices.ContainsFunc(all, func(known []string) bool { return slices.Equal(known, names) }) {
			all = append(all, names)
		}
	}
	return all
}

// wanted returns the demands of all containers. lasting are the containers that run as long as the pod. passing are the init
// containers that end before other containers start.
func wanted(pod *v1.Pod, classOf ClassOf) (lasting, passing []request) {
	for i, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		wanted := requestsOfContainer(i, container.Resources.Requests, classOf)
		if i < len(pod.Spec.InitContainers) && ptr.Deref(container.RestartPolicy, "") != v1.ContainerRestartPolicyAlways {
			passing = append(passing, wanted...)
		} else {
			lasting = append(lasting, wanted...)
		}
	}
	return lasting, passing
}

func requestsOfContainer(container int, wanted v1.ResourceList, classOf ClassOf) []request {
	names := make([]v1.ResourceName, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	var requests []request
	for i, name := range names {
		quantity := wanted[name]
		count, ok := quantity.AsInt64()
		if !ok || count <= 0 {
			continue
		}
		if class := classOf(name); class != nil {
			requests = append(requests, request{container, name, fmt.Sprintf("container-%d-request-%d", container, i), class, count})
		}
	}
	return requests
}

// reused returns the names of the requests of later containers whose devices an init container uses. left is the number of
// further devices that the init container needs.
func reused(r request, lasting []request) (names []string, left int64) {
	left = r.count
	for _, other := range lasting {
		if left > 0 && other.resource == r.resource && other.container >= r.container {
			names, left = append(names, other.name), left-other.count
		}
	}
	return names, left
}

// mostMissing returns, for each resource, the request in passing that needs most devices besides [reused] devices.
func mostMissing(passing, lasting []request) []request {
	var requests []request
	for _, r := range passing {
		_, r.count = reused(r, lasting)
		at := slices.IndexFunc(requests, func(m request) bool { return m.resource == r.resource })
		switch {
		case r.count <= 0:
		case at < 0:
			requests = append(requests, r)
		case r.count > requests[at].count:
			requests[at] = r
		}
	}
	return requests
}
