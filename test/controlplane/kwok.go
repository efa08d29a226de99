// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// KwokNodeAnnotation with the value KwokNodeValue makes kwok act as the node's kubelet: the node becomes Ready, and pods bound
	// to it become Running.
	KwokNodeAnnotation = "kwok.x-k8s.io/node"
	// KwokNodeValue is the value of KwokNodeAnnotation.
	KwokNodeValue = "fake"

	// RunForAnnotation on a pod is the duration ("30s") after which the pod succeeds on a kwok node. A pod without it runs until it
	// is deleted.
	RunForAnnotation = "celset.dev/run-for"
)

// kwokStages defines how kwok changes the status of nodes and pods. kwok has no default stages.
//
//go:embed stages.yaml
var kwokStages []byte

func (cp *ControlPlane) startKwok(ctx context.Context) error {
	ports, err := FreePorts(1)
	if err != nil {
		return err
	}
	stages := filepath.Join(cp.dir, "stages.yaml")
	if err := os.WriteFile(stages, kwokStages, 0o600); err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}
	return cp.supervisor.start(ctx, command{
		name:   Kwok,
		binary: filepath.Join(cp.binDir, Kwok),
		args: slices.Concat([]string{
			"--kubeconfig=" + cp.Kubeconfig(),
			"--manage-nodes-with-annotation-selector=" + KwokNodeAnnotation + "=" + KwokNodeValue,
			"--server-address=" + address(ports[0]),
			"--config=" + stages,
		}, cp.options.KwokArgs),
		// Without this variable, kwok would use a directory in the user's home directory.
		env:      []string{"KWOK_WORKDIR=" + filepath.Join(cp.dir, "kwok")},
		endpoint: "http://" + address(ports[0]),
		client:   cp.plainClient,
		grace:    2 * time.Second,
	}, func(p *Process) func(context.Context) error { return p.probePath("/healthz") })
}
