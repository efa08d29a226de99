// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hangingscheduler is celset-scheduler with a plugin that hangs when it comes to a pod
// with a certain annotation. The test of the watchdog runs it.
package main

import (
	"context"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/cli"
	fwk "k8s.io/kube-scheduler/framework"
	kubeapp "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/celset/celset/cmd/celset-scheduler/app"
)

const (
	// name is the plugin's.
	name = "Hang"
	// annotation is on pods that it hangs for.
	annotation = "test.celset.dev/hang"
)

func main() { os.Exit(cli.Run(app.NewCommand(kubeapp.WithPlugin(name, newHang)))) }

type hang struct{}

func newHang(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return hang{}, nil }

func (hang) Name() string { return name }

// PreFilter does not look at its context, as code that nobody expected to take long.
func (hang) PreFilter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if _, hangs := pod.Annotations[annotation]; hangs {
		select {}
	}
	return nil, nil
}

func (hang) PreFilterExtensions() fwk.PreFilterExtensions { return nil }
