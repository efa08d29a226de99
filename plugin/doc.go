// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin is the scheduler plugin DynamicResourcesCEL. It is upstream's
// DynamicResources plugin with one difference: a pod that has a claim with a CEL
// device constraint, or with a preference, is served by package allocator.
//
//	command := app.NewSchedulerCommand(app.WithPlugin(plugin.Name, plugin.NewFactory(utilfeature.DefaultFeatureGate)))
//
// Programs that are no celset-scheduler, such as autoscalers, make the plugin with [New].
//
// Beside it, DynamicResourcesCELPreference scores nodes by what preferences say of the devices
// that were found there ([Preference]), and TopologyPlacementGeneratorCEL chooses the nodes of
// PodGroups (package gang).
//
// This package has the extension points, the exchange of the allocator, scores, and the parts that all profiles share. The rest is
// in packages below, each of which imports only those named before it: plugin/preparation and plugin/demand, plugin/cycle,
// plugin/observe, plugin/preempt, plugin/gang.
//
// In a scheduler profile it takes the place of DynamicResources; both in one
// profile can't start. See manifests/ for a configuration.
//
// Everything that upstream's plugin does at its extension points is upstream's
// code, running on upstream's state. Only the allocator in that state is
// exchanged, after PreFilter ([exchange]). What it does is measured: package
// plugin/metrics.
//
// What one pod takes is what all others wait, in all profiles of the process, so the plugin
// also judges selectors and ends attempts that take too long: package plugin/guard. With
// the argument "allocator: Upstream" that is all it does, for profiles whose pods are to be
// scheduled as by a kube-scheduler of Kubernetes.
package plugin
