// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub makes a local control plane a hub of Open Cluster Management, as far as
// placement needs one: it has the kinds, and none of the controllers.
//
//	err := hub.Install(ctx, controlPlane.RESTConfig())
package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/internal/controlplane"
)

const apiModule = "open-cluster-management.io/api"

// Install creates the CustomResourceDefinitions that the API module carries, in the
// version that go.mod names, and returns when they are served. It takes a Go
// toolchain and the module's source tree as working directory.
func Install(ctx context.Context, config *rest.Config) error {
	manifests, err := definitions(ctx)
	if err != nil {
		return err
	}
	for file, manifest := range manifests {
		if err := install(ctx, config, manifest); err != nil {
			return fmt.Errorf("install %s: %w", file, err)
		}
	}
	return nil
}

// definitions reads the files with CustomResourceDefinitions of group cluster.
func definitions(ctx context.Context) (map[string][]byte, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", apiModule).Output()
	if err != nil {
		return nil, fmt.Errorf("find module %s: %w", apiModule, err)
	}
	dir := strings.TrimSpace(string(output))
	files, err := filepath.Glob(filepath.Join(dir, "cluster", "v1*", "*.crd.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no CustomResourceDefinitions in " + dir + "; download the module")
	}
	result := map[string][]byte{}
	for _, file := range files {
		if result[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// install applies definitions until the API server says that it serves them.
func install(ctx context.Context, config *rest.Config, manifest []byte) error {
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
