// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-scheduler is kube-scheduler with the plugin DynamicResourcesCEL
// registered. It takes kube-scheduler's flags; the plugin does something only in
// profiles that enable it in place of DynamicResources.
package main

import (
	"os"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/celset/celset/plugin"
)

func main() {
	utilruntime.Must(plugin.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	command := app.NewSchedulerCommand(app.WithPlugin(plugin.Name, plugin.NewFactory(utilfeature.DefaultFeatureGate)))
	os.Exit(cli.Run(command))
}
