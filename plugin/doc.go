// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin is the scheduler plugin DynamicResourcesCEL. It extends upstream's DynamicResources plugin: if a claim of a
// pod has a CEL device constraint or a preference, package allocator finds the devices.
//
//	command := app.NewSchedulerCommand(app.WithPlugin(plugin.Name, plugin.NewFactory(utilfeature.DefaultFeatureGate)))
//
// Other programs, such as autoscalers, create the plugin with [New].
//
// Two more plugins belong to it. DynamicResourcesCELPreference scores each node by the values of the claims' preferences for
// the devices found on that node (package preference). TopologyPlacementGeneratorCEL chooses the nodes of PodGroups (package
// gang).
//
// This package contains the extension points, the exchange of the allocator, and the parts that all profiles share.
// Each package below plugin imports only packages named before it in this order: plugin/arguments, plugin/enrichment, plugin/guard,
// plugin/preparation and plugin/demand, plugin/cycle, plugin/preference, plugin/observe, plugin/preempt, plugin/gang.
//
// In a scheduler profile, the plugin replaces DynamicResources. A profile with both can't start. See manifests/ for a
// configuration.
//
// All other work at the extension points is done by upstream's code on upstream's state. After PreFilter, the plugin exchanges
// only the allocator in that state ([exchange]). Package plugin/metrics measures the allocator.
//
// While one pod is scheduled, all other pods wait, in all profiles of the process. So the plugin also checks selectors and ends
// attempts that take too long (package plugin/guard). With the argument "allocator: Upstream" the plugin only does these two
// things, and schedules the profile's pods as kube-scheduler does.
package plugin
