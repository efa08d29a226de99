// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"context"
	"fmt"
	"os"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/plugin"
)

const configFile = "performance-config.yaml"

func TestMain(m *testing.M) {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// prepare makes our feature gate known, and the etcd of go.mod the one that scheduler_perf
// finds.
func prepare() error {
	if err := plugin.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		return err
	}
	perf.PluginNames = append(perf.PluginNames, plugin.Name, plugin.PreferenceName)
	if err := perf.InitTests(); err != nil {
		return err
	}
	dir, err := controlplane.Build(context.Background(), "", os.Stderr, controlplane.Etcd)
	if err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func registry() frameworkruntime.Registry {
	return frameworkruntime.Registry{
		plugin.Name:           plugin.NewFactory(utilfeature.DefaultFeatureGate),
		plugin.PreferenceName: plugin.NewPreferenceFactory(utilfeature.DefaultFeatureGate),
	}
}
