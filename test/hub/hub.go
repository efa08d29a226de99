// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub installs the kinds of Open Cluster Management that placement needs into a local control plane, without
// controllers.
//
//	err := hub.Install(ctx, controlPlane.RESTConfig())
package hub

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/manifests/placement/crds"
	"github.com/celset/celset/test/controlplane"
)

// Install creates the CustomResourceDefinitions of package crds, and waits until the API server serves the kinds.
func Install(ctx context.Context, config *rest.Config) error {
	files, err := crds.Files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, file := range files {
		manifest, err := crds.Files.ReadFile(file.Name())
		if err != nil {
			return err
		}
		if err := InstallDefinitions(ctx, config, manifest); err != nil {
			return fmt.Errorf("install %s: %w", file.Name(), err)
		}
	}
	return nil
}

// InstallDefinitions creates the CustomResourceDefinitions in a manifest, and waits until the API server serves the kinds.
func InstallDefinitions(ctx context.Context, config *rest.Config, manifest []byte) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		objects, err := controlplane.Apply(ctx, config, manifest, controlplane.ApplyOptions{})
		if err != nil {
			return false, err
		}
		for _, object := range objects {
			if !established(object) {
				return false, nil
			}
		}
		return true, nil
	})
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}
