// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// A scheduler creates a claim for the extended resources of a pod. Containers of the pod may share devices: an init container
// reuses the devices of later containers, and gets additional devices only if these are not enough. So the devices of one
// container may belong to several requests, and the defaults of a class apply to these requests together. The pod says which
// requests serve which container. A scheduler has the pod only before the claim is stored. Until then an annotation of the
// claim holds the mapping.

const (
	// UnstoredClaimName is the name of a claim for extended resources that is not stored yet. It is not a valid object name.
	UnstoredClaimName = "<extended-resources>"
	// containersAnnotation holds the names of the requests of each container, as a JSON list of lists. It is ignored unless the
	// claim has the name UnstoredClaimName, because otherwise the author of a claim could use it to weaken the defaults of a
	// class.
	containersAnnotation = AttributeDomain + "/containers"
)

// WithContainers returns a copy of a claim with the name [UnstoredClaimName], annotated with the names of the requests of each
// container. A request may serve several containers. Names of requests that the claim does not have are ignored.
func WithContainers(claim *resourceapi.ResourceClaim, containers [][]string) *resourceapi.ResourceClaim {
	text, err := json.Marshal(containers)
	if err != nil {
		// Marshalling strings can't fail.
		panic(err)
	}
	return withAnnotation(claim, string(text))
}

// WithContainersOf returns a copy of claim with the containers annotation of other, a claim for the same pod.
func WithContainersOf(claim, other *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	text := ContainersOf(other)
	if text == "" {
		return claim
	}
	return withAnnotation(claim, text)
}

func withAnnotation(claim *resourceapi.ResourceClaim, text string) *resourceapi.ResourceClaim {
	result := *claim
	result.Annotations = maps.Clone(claim.Annotations)
	if result.Annotations == nil {
		result.Annotations = map[string]string{}
	}
	result.Annotations[containersAnnotation] = text
	return &result
}

// ContainersOf returns the value of the containers annotation. It returns "" if the claim is stored or has no annotation. Then
// the defaults of a class apply to each request alone.
func ContainersOf(claim *resourceapi.ResourceClaim) string {
	if claim.Name != UnstoredClaimName {
		return ""
	}
	return claim.Annotations[containersAnnotation]
}

// setsOf returns the requests to which defaults may apply. Requests that serve the same container become one entry with the
// names of all of them, because a default applies to their devices together. Any other request is an entry of its own.
func setsOf(devices *resourceapi.DeviceClaim, containers string) []requestOfClass {
	all := requestsOf(devices)
	var names [][]string
	if containers == "" || json.Unmarshal([]byte(containers), &names) != nil {
		return all
	}
	var merged []requestOfClass
	serves := map[string]bool{}
	for _, of := range names {
		set, found := requestOfClass{}, 0
		for i := range all {
			if !slices.Contains(of, all[i].fullName) {
				continue
			}
			serves[all[i].fullName] = true
			if found++; found == 1 {
				set = all[i]
				continue
			}
			set.names, set.isOfSeveral = append(slices.Clip(set.names), all[i].fullName), true
		}
		if found > 0 {
			merged = append(merged, set)
		}
	}
	alone := slices.DeleteFunc(all, func(r requestOfClass) bool { return serves[r.fullName] })
	return append(merged, alone...)
}
