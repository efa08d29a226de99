// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/topology/machine"
)

// writeMachine writes what is published on node-4, an hgx-h100, and the claim finetune, which
// has a GPU of it and the rail beside it, as "kubectl get -o yaml" would.
func writeMachine(path string) error {
	m, err := machine.ByName("hgx-h100")
	if err != nil {
		return err
	}
	slices, err := m.ResourceSlices("node-4")
	if err != nil {
		return err
	}
	has := func(driver, device string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "node-4", Device: device}
	}
	objects := []any{&resourceapi.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "finetune"},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{has("gpu.nvidia.com", "gpu-5"), has("dra.net", "pci-0000-d4-00-0")},
		}}},
	}}
	for _, slice := range slices {
		objects = append(objects, slice)
	}
	var content bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		content.WriteString("---\n")
		content.Write(document)
	}
	return os.WriteFile(path, content.Bytes(), 0o600)
}
