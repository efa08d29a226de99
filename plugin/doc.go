// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin is the scheduler plugin DynamicResourcesCEL. It extends upstream's DynamicResources plugin: if a claim of a pod
// has a CEL device constraint or a preference, package allocator finds the devices.
//
//	command := app.NewSchedulerCommand(app.WithPlugin(plugin.Name, plugin.NewFactory(utilfeature.DefaultFeatureGate)))
//
// Other programs, such as autoscalers, create the plugin with [New].
//
// Two more plugins belong to it. DynamicResourcesCELPreference scores nodes by the preferences' values for the devices that were
// found there (package preference). TopologyPlacementGeneratorCEL chooses the nodes of PodGroups (package gang).
//
// This package contains the extension points, the exchange of the allocator, and the parts that all profiles share.
// The packages below import only packages named before them: plugin/arguments, plugin/enrichment, plugin/guard,
// plugin/preparation and plugin/demand, plugin/cycle, plugin/preference, plugin/observe, plugin/preempt, plugin/gang.
//
// In a scheduler profile, the plugin replaces DynamicResources. A profile with both can't start. See manifests/ for a
// configuration.
//
// All other work at the extension points is done by upstream's code on upstream's state. Only the allocator in that state is
// exchanged, after PreFilter ([exchange]). Package plugin/metrics measures the allocator.
//
// While one pod is scheduled, all other pods wait, in all profiles of the process. So the plugin also judges selectors and ends
// attempts that take too long (package plugin/guard). With the argument "allocator: Upstream" it does only this. The pods of such
// a profile are scheduled as by kube-scheduler.
package plugin
