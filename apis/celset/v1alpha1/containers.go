// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// A scheduler makes a claim for the extended resources of a pod. An init container reuses the devices of later
// containers and gets more of its own only if these are not enough. So the devices of one container may be those of
// several requests, and the defaults of a class hold for these requests together. Which requests serve which container
// follows from the pod. A scheduler knows the pod only before the claim is stored. Until then the claim carries the
// mapping in an annotation.

const (
	// UnstoredClaimName is the name of a claim for extended resources that is not stored. No object can have it.
	UnstoredClaimName = "<extended-resources>"
	// containersAnnotation has the names of the requests of each container, as a JSON list of lists. It counts only on a
	// claim with the name UnstoredClaimName: the author of a claim must not weaken the defaults of a class.
	containersAnnotation = AttributeDomain + "/containers"
)

// WithContainers returns a copy of a claim with the name [UnstoredClaimName] that has the names of the requests of each
// container. A request may serve several containers. Requests that the claim does not have are ignored.
func WithContainers(claim *resourceapi.ResourceClaim, containers [][]string) *resourceapi.ResourceClaim {
	text, err := json.Marshal(containers)
	if err != nil {
		// Strings can be written.
		panic(err)
	}
	return withAnnotation(claim, string(text))
}

// WithContainersOf returns the claim with the containers of another claim for the same pod.
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

// ContainersOf returns the containers of a claim as text, and "" if each request stands for itself.
func ContainersOf(claim *resourceapi.ResourceClaim) string {
	if claim.Name != UnstoredClaimName {
		return ""
	}
	return claim.Annotations[containersAnnotation]
}

// setsOf returns the requests for which defaults hold, each with the names of the requests whose devices are judged
// together. Requests that serve containers are merged. Other requests stand for themselves.
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
