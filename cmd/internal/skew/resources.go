// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Allocation lists the resources that an allocator of devices reads.
var Allocation = []schema.GroupVersionResource{
	resourceapi.SchemeGroupVersion.WithResource("deviceclasses"),
	resourceapi.SchemeGroupVersion.WithResource("resourceclaims"),
	resourceapi.SchemeGroupVersion.WithResource("resourceslices"),
}

// Missing returns the wanted resources that the API server does not serve, in their order.
func Missing(client discovery.ServerResourcesInterface, wanted ...schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	served := map[schema.GroupVersion]map[string]bool{}
	var missing []schema.GroupVersionResource
	for _, resource := range wanted {
		group := resource.GroupVersion()
		if _, known := served[group]; !known {
			names, err := resourcesOf(client, group)
			if err != nil {
				return nil, err
			}
			served[group] = names
		}
		if !served[group][resource.Resource] {
			missing = append(missing, resource)
		}
	}
	return missing, nil
}

// resourcesOf returns the names of the resources that the API server serves in a group version, or nil if it does not serve the
// group version.
func resourcesOf(client discovery.ServerResourcesInterface, group schema.GroupVersion) (map[string]bool, error) {
	list, err := client.ServerResourcesForGroupVersion(group.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask the API server for the resources of %s: %w", group, err)
	}
	names := map[string]bool{}
	for i := range list.APIResources {
		names[list.APIResources[i].Name] = true
	}
	return names, nil
}
